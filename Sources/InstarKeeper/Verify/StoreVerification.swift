internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Checks a store, which nobody migrates, as a run with `verify: full` checks it before its migration. Only reads it.
///
/// A check that fails does not end the verification, except `quick_check`: where pages cannot be read, other checks
/// would report the same damage in other words.
struct StoreVerification {
  private let store: String
  /// The plan's view of the store; `nil` where no plan knows its version.
  private let inspection: StoreInspection?
  private(set) var findings: [InstarError] = []
  private(set) var indexes: Int?

  init(_ probe: StoreProbe, _ inspection: StoreInspection?) {
    store = probe.file.path
    self.inspection = inspection
  }

  /// - Throws: `unsupported` where only the app can read an index; the database's error.
  mutating func perform(_ db: Database) throws {
    guard try checkSoundness(db) else { return }
    let checked = try checkForeignKeys(db)
    guard let inspection else { return }
    let layout = try inspection.layout(of: inspection.path.first)
    try checkLinks(db, layout, except: checked)
    try checkValues(db, layout)
    if let finding = inspection.entityListFinding() {
      add(.unknownVersion, finding.message, next: finding.fix)
    }
  }

  /// - Returns: Whether all pages can be read.
  private mutating func checkSoundness(_ db: Database) throws -> Bool {
    var isReadable = false
    var found: [InstarError] = []
    try Self.collect(into: &found) { found in
      try StoreCheck.requireSound(db, "the store", path: store) {
        isReadable = true
        try Self.collect(into: &found) { _ in
          try StoreCheck.requireIndexes(db, "the store", path: store)
        }
        return false
      }
    }
    guard isReadable else {
      findings += found
      return false
    }
    indexes = try db.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'index'")
    if found.isEmpty {
      try Self.collect(into: &found) { _ in
        try StoreCheck.requireIntegrity(db, "the store", path: store)
      }
    }
    findings += found
    return true
  }

  /// Calls `check`. Damage that it reports is a finding, any other error ends the verification.
  private static func collect(
    into findings: inout [InstarError], _ check: (inout [InstarError]) throws -> Void
  ) throws {
    do {
      try check(&findings)
    } catch let error as InstarError where error.code == .corruptStore {
      findings.append(error)
    }
  }

  /// - Returns: The references that were checked here, and not as links of a relationship.
  private mutating func checkForeignKeys(_ db: Database) throws -> Set<RowReference> {
    let violations = try ForeignKeyCheck.violations(db)
    for (table, reason) in violations.unchecked {
      add(
        .brokenReferences, "the foreign keys of table '\(table)' cannot be checked: \(reason)",
        next: "let its foreign keys reference a primary key or unique columns")
    }
    let count = violations.total()
    if count > 0 {
      let rows = try ForeignKeyCheck.violatingRows(db, violations)
      add(
        .brokenReferences,
        "\(count.counted("row violates", "rows violate")) a foreign key\(rows.suffix)",
        next: "correct these rows in the app; to see all of them, run: sqlite3 -readonly "
          + "\(CommandText.quoted(store)) 'PRAGMA foreign_key_check'", rows)
    }
    return try ForeignKeyCheck(db).references(except: violations.uncheckedTables)
  }

  private mutating func checkLinks(
    _ db: Database, _ layout: any StoreLayout, except checked: Set<RowReference>
  ) throws {
    for broken in try layout.brokenLinks(db)
    where !checked.isSuperset(of: broken.statement.references) {
      add(
        .brokenReferences, broken.sentence,
        next: "set them to nil in the app, or in willMigrate of the plan", broken.rows)
    }
  }

  private mutating func checkValues(_ db: Database, _ layout: any StoreLayout) throws {
    guard let missing = try layout.firstMissingValues(db) else { return }
    add(
      .missingRequiredValues, missing.sentence, next: "write these values in the app",
      missing.rows)
  }

  private mutating func add(
    _ code: InstarError.Code, _ cause: String, next: String?, _ rows: AffectedRows? = nil
  ) {
    findings.append(
      InstarError(code, "cannot verify the store", cause: cause, next: next, rows: rows))
  }
}
