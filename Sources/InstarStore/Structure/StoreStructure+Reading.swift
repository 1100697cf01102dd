internal import GRDB
public import InstarSchema

extension StoreStructure {
  /// Reads the tables and indexes of a store, without those that SQLite reserves and those of a replicator.
  ///
  /// Takes two statements, whatever the number of tables. Views and triggers are not read. A virtual table is listed
  /// without columns, because SQLite would load its module to list them.
  ///
  /// - Parameter isReserved: Whether the format reserves a table of that name.
  /// - Throws: The database's error; `unsupported` for a schema that is too large. Nothing is written.
  static func read(
    _ db: Database, leavingOut isReserved: (String) -> Bool = { _ in false }
  ) throws -> StoreStructure {
    func isSystemTable(_ name: String) -> Bool {
      name.hasPrefix("sqlite_") || name.hasPrefix(Replicator.tablePrefix) || isReserved(name)
    }
    return StoreStructure(
      tables: try readTables(db, leavingOut: isSystemTable),
      indexes: try readIndexes(db, leavingOut: isSystemTable))
  }

  /// SHA-256 over `canonicalText`, in hexadecimal digits.
  public var fingerprint: String {
    Digest.hexadecimal(Digest.sha256(canonicalText.utf8))
  }

  private static func readTables(
    _ db: Database, leavingOut isSystemTable: (String) -> Bool
  ) throws -> [Table] {
    // A virtual table has no root page.
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT m.name, c.name, c.type
        FROM sqlite_master AS m
        LEFT JOIN pragma_table_xinfo(CASE WHEN m.rootpage > 0 THEN m.name END) AS c
        WHERE m.type = 'table' AND m.name IS NOT NULL
        """)
    var size = NameSize()
    var columns: [String: [Column]] = [:]
    while let row = try rows.next() {
      guard let table: String = row.get(0) else { continue }
      if isSystemTable(table) { continue }
      if columns[table] == nil { try size.add(table) }
      var ofTable = columns.removeValue(forKey: table) ?? []
      if let name: String = row.get(1) {
        let type: String = row.get(2) ?? ""
        try size.add(name)
        try size.add(type)
        ofTable.append(Column(name: name, type: type))
      }
      columns[table] = ofTable
    }
    return columns.map { Table(name: $0.key, columns: $0.value) }
  }

  /// Indexes of `CREATE INDEX` and of `UNIQUE` constraints, whose names SQLite makes: older Core Data stores have
  /// uniqueness only there.
  private static func readIndexes(
    _ db: Database, leavingOut isSystemTable: (String) -> Bool
  ) throws -> [Index] {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT m.name, l.name, l."unique", l.partial, x.name, x."desc", x.coll
        FROM (
          SELECT DISTINCT tbl_name AS name FROM sqlite_master
          WHERE type = 'index'
        ) AS m
        JOIN pragma_index_list(m.name) AS l
        JOIN pragma_index_xinfo(l.name) AS x
        WHERE x.key = 1 AND l.origin IN ('c', 'u')
        ORDER BY l.name, x.seqno
        """)
    var size = NameSize()
    var indexes: [Index] = []
    while let row = try rows.next() {
      guard let table: String = row.get(0), let name: String = row.get(1) else { continue }
      if isSystemTable(table) { continue }
      let isFirstColumn = indexes.last?.name != name
      if isFirstColumn {
        try size.add(name)
        try size.add(table)
        indexes.append(Index(name: name, table: table, isUnique: row.get(2) == 1, columns: []))
      }
      // Whatever no index of a layout has is appended to the column, so that the two do not compare equal.
      var column = row.get(4) ?? "(expression)"
      if row.get(5) == 1 { column += " DESC" }
      if let collation: String = row.get(6), collation != "BINARY" {
        column += " COLLATE \(collation)"
      }
      if isFirstColumn, row.get(3) == 1 {
        column = "(partial) \(column)"
      }
      try size.add(column)
      indexes[indexes.count - 1].columns.append(column)
    }
    return indexes
  }
}
