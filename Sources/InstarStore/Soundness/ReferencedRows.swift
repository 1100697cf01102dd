internal import CDatabase
package import GRDB
internal import GRDBSQLite

/// Finds out whether keys in a column reference rows that exist.
///
/// SQLite looks each key up in the table that it references. Where the key is an integer, a set of all keys tells it
/// in a sixth of the time: each table, or an index with the column, is read once.
package struct ReferencedRows {
  /// As SQL.
  private let table: String
  /// The column with the key. As SQL.
  private let key: String
  /// The column that tells which rows count, as SQL, and the values that it has in them; `nil` where all rows count.
  private let kind: (column: String, values: [Int])?

  /// - Parameters:
  ///   - table: The table that is referenced, as SQL.
  ///   - key: Its column that is referenced, as SQL.
  ///   - kind: The column that tells which rows count, as SQL, and the values that it has in them; `nil` where all rows
  ///     count.
  package init(table: String, key: String, kind: (column: String, values: [Int])?) {
    self.table = table
    self.key = key
    self.kind = kind
  }

  /// Whether each value in a column is NULL or the key of a row. `true` is certain if the store's indexes match its
  /// tables. `false` means that SQL has to look the keys up.
  ///
  /// - Parameters:
  ///   - column: As SQL.
  ///   - owner: The table with the column, as SQL.
  /// - Throws: The database's error.
  package func areAll(in column: String, of owner: String, _ db: Database) throws -> Bool {
    let tables = try IndexedTable.all(db)
    let limits = try Row.fetchOne(db, sql: "SELECT min(\(key)), max(\(key)) FROM \(table)")
    guard let least: Int64 = limits?.get(0), let greatest: Int64 = limits?.get(1) else {
      return false
    }
    let kinds = kind.map { $0.values.map(Int64.init) } ?? []
    let keys = try Source(db, tables, table, [key] + (kind.map { [$0.column] } ?? []))
    let values = try Source(db, tables, owner, [column])
    var areFound: Int32 = 0
    let code = kinds.withUnsafeBufferPointer { kinds in
      withUnsafePointer(to: keys.rows) { rows in
        var targets = instar_key_rows(
          rows: rows, key: keys.places[0], least: least, greatest: greatest,
          kind: keys.places[keys.places.count - 1], kind_count: Int32(clamping: kinds.count),
          kinds: kinds.baseAddress)
        var values = values
        return instar_find_keys(&values.rows, values.places[0], &targets, &areFound)
      }
    }
    // Where a tree cannot be read, a statement can, or has the error.
    return code == SQLITE_DONE && areFound != 0
  }

  /// Where columns of a table are read.
  private struct Source {
    var rows = instar_rows()
    /// The columns among those that are read.
    let places: [Int32]
    /// Keeps the statement.
    private var statement: Statement?

    init(_ db: Database, _ tables: [IndexedTable], _ table: String, _ columns: [String]) throws {
      let indexed = tables.first { SQLIdentifier.sql($0.name) == table }
      if let (tree, places) = indexed?.smallestTree(with: columns) {
        self.places = places
        rows.database = db.sqliteConnection
        rows.root = UInt32(clamping: tree.rootPage)
        rows.is_index = tree.isIndex ? 1 : 0
        rows.column_count = (places.max() ?? Int32(INSTAR_ROWID)) + 1
        rows.missing_is_null = tree.defaultColumns.isDisjoint(with: places) ? 1 : 0
        return
      }
      let statement = try db.makeStatement(
        sql: "SELECT \(columns.joined(separator: ", ")) FROM \(table)")
      rows.statement = statement.sqliteStatement
      self.statement = statement
      places = columns.indices.map { Int32(clamping: $0) }
    }
  }
}
