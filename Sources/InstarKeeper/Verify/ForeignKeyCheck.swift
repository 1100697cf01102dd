internal import GRDB
internal import InstarSchema
internal import InstarStore

/// Finds rows that violate a foreign key of the database.
struct ForeignKeyCheck {
  private struct Key {
    let table: String
    /// `nil` where the table or the key that it references is missing.
    let reference: RowReference?
  }

  private let keys: [Key]

  /// Reads the foreign keys of all tables.
  init(_ db: Database) throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, f.id, f."table", f."from", f."to"
        FROM sqlite_schema AS m JOIN pragma_foreign_key_list(m.name) AS f
        WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.rowid, f.id, f.seq
        """)
    var parts: [(table: String, number: Int, rows: [Row])] = []
    for row in rows {
      let (table, number): (String, Int) = (row.get(0) ?? "", row.get(1) ?? 0)
      if let last = parts.last, last.table == table, last.number == number {
        parts[parts.count - 1].rows.append(row)
      } else {
        parts.append((table, number, [row]))
      }
    }
    keys = try parts.map { key in
      let named = key.rows.compactMap { $0.get(4) as String? }
      let target = try Self.target(
        db, key.rows[0].get(2) ?? "", named.count == key.rows.count ? named : nil)
      let columns = ColumnList(
        table: SQLIdentifier.sql(key.table),
        columns: key.rows.map { SQLIdentifier.sql($0.get(3) ?? "") })
      return Key(
        table: key.table,
        reference: target.map { RowReference(columns: columns, target: $0) })
    }
  }

  /// Returns the foreign keys whose tables and columns exist, without those of some tables.
  func references(except tables: Set<String> = []) -> Set<RowReference> {
    Set(keys.filter { !tables.contains($0.table) }.compactMap(\.reference))
  }

  /// Returns columns of a table, with the names that the table gives them.
  ///
  /// - Parameter columns: `nil` for the primary key.
  /// - Returns: `nil` where there is no such table or column.
  private static func target(
    _ db: Database, _ table: String, _ columns: [String]?
  ) throws -> ColumnList? {
    let source = """
      FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
      WHERE m.type = 'table' AND m.rootpage > 0 AND m.name = ?1 COLLATE NOCASE
      """
    guard
      let name = try String.fetchOne(db, sql: "SELECT m.name \(source)", arguments: [table])
    else { return nil }
    let found: [String]
    if let columns {
      found = try columns.compactMap { column in
        try String.fetchOne(
          db, sql: "SELECT c.name \(source) AND c.name = ?2 COLLATE NOCASE",
          arguments: [table, column])
      }
      guard found.count == columns.count else { return nil }
    } else {
      found = try String.fetchAll(
        db, sql: "SELECT c.name \(source) AND c.pk > 0 ORDER BY c.pk", arguments: [table])
      guard !found.isEmpty else { return nil }
    }
    return ColumnList(table: SQLIdentifier.sql(name), columns: found.map(SQLIdentifier.sql))
  }

  /// The columns that decide which rows violate a foreign key.
  var columns: [ColumnList] {
    keys.compactMap(\.reference).flatMap { [$0.columns, $0.target] }
  }

  /// What a check of some tables found.
  struct Result {
    /// The references of the tables without a violation.
    var sound: Set<RowReference> = []
    var hasViolations = false
  }

  /// Checks the tables with a foreign key that `isUnchanged` does not answer for.
  func check(_ db: Database, except isUnchanged: (RowReference) -> Bool) throws -> Result {
    var result = Result()
    var changed = keys.filter { key in key.reference.map { !isUnchanged($0) } ?? true }
    try changed.removeAll { key in
      guard let reference = key.reference, try reference.isResolved(db) else { return false }
      result.sound.insert(reference)
      return true
    }
    for table in Set(changed.map(\.table)).sorted() {
      if try Self.violations(db, of: table) == 0 {
        result.sound.formUnion(keys.filter { $0.table == table }.compactMap(\.reference))
      } else {
        result.hasViolations = true
      }
    }
    return result
  }

  /// The rows that violate a foreign key.
  struct Violations {
    /// The number of them in each table with foreign keys that SQLite can check.
    var counts: [String: Int] = [:]
    /// The tables whose foreign keys SQLite cannot check, with its reasons: it finds columns that are not unique, so an
    /// app with foreign keys cannot write these tables either.
    var unchecked: [(table: String, reason: String)] = []

    /// Returns the number of violations in all tables but these.
    func total(except tables: Set<String> = []) -> Int {
      counts.reduce(0) { tables.contains($1.key) ? $0 : $0 + $1.value }
    }

    var uncheckedTables: Set<String> { Set(unchecked.map(\.table)) }
  }

  /// Counts the violations of all tables. One table that SQLite cannot check does not hide those of the others.
  static func violations(_ db: Database) throws -> Violations {
    var found = Violations()
    for table in try tables(db) {
      do {
        found.counts[table] = try count(db, of: table)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
        found.unchecked.append((table, error.message ?? "\(error.resultCode)"))
      }
    }
    return found
  }

  /// - Returns: `nil` where SQLite cannot check the table.
  private static func violations(_ db: Database, of table: String) throws -> Int? {
    do {
      return try count(db, of: table)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return nil
    }
  }

  private static func count(_ db: Database, of table: String) throws -> Int {
    let found = try Row.fetchCursor(
      db, sql: "PRAGMA foreign_key_check(\(SQLIdentifier.sql(table)))")
    var count = 0
    while try found.next() != nil { count += 1 }
    return count
  }

  /// The tables with foreign keys.
  private static func tables(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_schema AS m WHERE type = 'table' AND rootpage > 0
          AND EXISTS (SELECT 1 FROM pragma_foreign_key_list(m.name)) ORDER BY rowid
        """)
  }

  /// Returns the violating rows, with the keys of the first ones.
  ///
  /// - Parameter tables: Those that do not count.
  static func violatingRows(
    _ db: Database, _ violations: Violations, except tables: Set<String> = []
  ) throws -> AffectedRows {
    var keys: [String] = []
    for (table, count) in violations.counts.sorted(by: { $0.key < $1.key })
    where count > 0 && keys.count < AffectedRows.keyLimit && !tables.contains(table) {
      // A table without rowid has NULL there.
      keys += try String.fetchAll(
        db,
        sql: """
          SELECT "table" || coalesce(' ' || rowid, '') FROM pragma_foreign_key_check(?)
          LIMIT \(AffectedRows.keyLimit - keys.count)
          """, arguments: [table])
    }
    return AffectedRows(count: violations.total(except: tables), keys: keys)
  }
}
