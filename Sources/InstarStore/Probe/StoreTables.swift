internal import GRDB
internal import InstarSchema

/// The structure of a store, and the tables whose rows can be read without SQLite.
struct StoreTables: Sendable {
  let structure: StoreStructure
  let fingerprint: String
  /// By the name of a table.
  let trees: [String: Tree]

  /// The b-tree of a table whose records have the values of all columns, which no index can stand in for.
  struct Tree: Sendable {
    /// The place of the table among the rows of `sqlite_schema`.
    let place: Int
    /// Where a record has each column that SQLite returns as it is stored.
    let columns: [String: Int]
  }

  /// - Parameter statements: Those of the only tables that are wanted without SQLite; `nil` for all tables.
  /// - Throws: The database's error. Nothing is written.
  init(_ db: Database, structure: StoreStructure, statements: [String]?) throws {
    self.structure = structure
    fingerprint = structure.fingerprint
    trees = try Self.trees(db, statements: statements)
  }

  /// For more objects the trees are not listed. Then SQLite reads the rows of each such store.
  private static let objectLimit = 2000

  private static func trees(_ db: Database, statements: [String]?) throws -> [String: Tree] {
    let objects = try Row.fetchAll(
      db,
      sql: """
        SELECT type = 'table' AND rootpage > 0, name, CAST(sql AS TEXT) FROM sqlite_master
        ORDER BY rowid LIMIT \(objectLimit + 1)
        """)
    guard objects.count <= objectLimit else { return [:] }
    var trees: [String: Tree] = [:]
    for (place, object) in objects.enumerated() where object.get(0) == 1 {
      guard let name: String = object.get(1), let sql: String = object.get(2),
        statements?.contains(sql) ?? true
      else { continue }
      let columns = try Row.fetchAll(
        db,
        sql: """
          SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1)
          WHERE NOT EXISTS (SELECT 1 FROM pragma_index_list(?1)) ORDER BY cid
          """, arguments: [name])
      // SQLite computes such columns, or keeps them elsewhere: each position would be another one.
      guard !columns.isEmpty, columns.allSatisfy({ $0.get(3) == 0 }) else { continue }
      var positions: [String: Int] = [:]
      for (position, column) in columns.enumerated() {
        // A primary key may be the rowid, and a whole number in a column of reals is stored as an integer.
        guard let name: String = column.get(0), column.get(2) == 0,
          ColumnAffinity(column.get(1) ?? "") != .real
        else { continue }
        positions[name] = position
      }
      trees[name] = Tree(place: place, columns: positions)
    }
    return trees
  }
}
