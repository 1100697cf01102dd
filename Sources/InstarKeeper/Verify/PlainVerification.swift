internal import GRDB
internal import InstarSchema
internal import InstarStore

// The checks of rows that no model describes.

extension CloneVerification {
  /// Checks the rows of tables that no model describes, and the foreign keys of all tables.
  func requireOthers(_ db: Database, _ after: StoreCensus, _ before: StoreCensus) throws {
    if let now = after.violations, let earlier = before.violations, now > earlier {
      // A table without rowid has NULL there.
      let keys = try String.fetchAll(
        db,
        sql: """
          SELECT "table" || coalesce(' ' || rowid, '') FROM pragma_foreign_key_check
          LIMIT \(AffectedRows.keyLimit)
          """)
      let rows = AffectedRows(count: now, keys: keys)
      throw InstarError(
        .brokenReferences, Self.what,
        cause: "\(now) rows violate a foreign key\(rows.suffix); before the run \(earlier) did",
        next: "correct the rows in didMigrate; PRAGMA foreign_key_check lists them", rows: rows)
    }
    guard path.isLightweight else { return }
    for (table, earlier) in before.otherRows.sorted(by: { $0.key < $1.key }) {
      guard let now = after.otherRows[table], now != earlier else { continue }
      throw InstarError(
        .rowsLost, Self.what,
        cause: "table \(table) had \(earlier) rows and has \(now), although no stage runs code",
        next: InstarError.adviceOnDefect)
    }
  }
}
