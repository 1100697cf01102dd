public import GRDB
public import InstarSchema

extension StoreStructure {
  /// Reads the tables and indexes of a store, apart from those that SQLite and the format keep for
  /// themselves.
  ///
  /// Two statements, whatever the number of tables. Views and triggers are not read. A virtual
  /// table is listed without columns: asking for them would load its module.
  ///
  /// - Throws: the database's error; `unsupported` for a schema that is too large. Nothing is
  ///   written in any case.
  public static func read(_ db: Database, format: StoreFormat) throws -> StoreStructure {
    let structure = StoreStructure(
      tables: try readTables(db, format: format), indexes: try readIndexes(db, format: format))
    return switch format {
    case .coredata: structure.withoutCoreDataConventions
    case .plain: structure
    }
  }

  /// SHA-256 over `canonicalText`, in hexadecimal digits.
  public var fingerprint: String {
    Digest.hexadecimal(Digest.sha256(canonicalText.utf8))
  }

  /// Whether the format keeps this table for itself, so that no schema speaks of it.
  ///
  /// For `coredata`: the three tables that describe the store, persistent history (`ACHANGE`,
  /// `ATRANSACTION…`) and CloudKit mirroring (`ANSCK…`). No entity's table can have such a name:
  /// those begin with `Z` and hold a letter next.
  static func isSystemTable(_ name: String, format: StoreFormat) -> Bool {
    if name.hasPrefix("sqlite_") { return true }
    switch format {
    case .plain:
      return false
    case .coredata:
      return ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(name)
        || name.hasPrefix("ACHANGE") || name.hasPrefix("ATRANSACTION") || name.hasPrefix("ANSCK")
    }
  }

  private static func readTables(_ db: Database, format: StoreFormat) throws -> [Table] {
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
      guard let table = String.fromDatabaseValue(row[0] as DatabaseValue) else { continue }
      if isSystemTable(table, format: format) { continue }
      if columns[table] == nil { try size.add(table) }
      var ofTable = columns.removeValue(forKey: table) ?? []
      if let name = String.fromDatabaseValue(row[1] as DatabaseValue) {
        let type = String.fromDatabaseValue(row[2] as DatabaseValue) ?? ""
        try size.add(name)
        try size.add(type)
        ofTable.append(Column(name: name, type: type))
      }
      columns[table] = ofTable
    }
    return columns.map { Table(name: $0.key, columns: $0.value) }
  }

  /// Indexes made by `CREATE INDEX`, and those of `UNIQUE` constraints, which have names of SQLite's
  /// making: older stores of Core Data have uniqueness only there.
  private static func readIndexes(_ db: Database, format: StoreFormat) throws -> [Index] {
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
      guard let table = String.fromDatabaseValue(row[0] as DatabaseValue),
        let name = String.fromDatabaseValue(row[1] as DatabaseValue)
      else { continue }
      if isSystemTable(table, format: format) { continue }
      let isFirstColumn = indexes.last?.name != name
      if isFirstColumn {
        try size.add(name)
        try size.add(table)
        let isUnique = Int.fromDatabaseValue(row[2] as DatabaseValue) == 1
        indexes.append(Index(name: name, table: table, isUnique: isUnique, columns: []))
      }
      // What an index of the layout never has is written behind the column, so that it does not
      // compare equal.
      var column = String.fromDatabaseValue(row[4] as DatabaseValue) ?? "(expression)"
      if Int.fromDatabaseValue(row[5] as DatabaseValue) == 1 { column += " DESC" }
      if let collation = String.fromDatabaseValue(row[6] as DatabaseValue), collation != "BINARY" {
        column += " COLLATE \(collation)"
      }
      if isFirstColumn, Int.fromDatabaseValue(row[3] as DatabaseValue) == 1 {
        column = "(partial) \(column)"
      }
      try size.add(column)
      indexes[indexes.count - 1].columns.append(column)
    }
    return indexes
  }
}
