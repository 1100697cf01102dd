internal import GRDB
internal import InstarSchema
internal import InstarStore

/// The b-trees of a store that stages may write without writing a row of the app: the schema, and the small tables in
/// which SQLite and the format keep their books.
struct PageBaseline: Sendable {
  /// The pages of these trees, overflow pages too. Numbered from 1.
  let pages: Set<Int>
  /// The roots of all other trees, in the order of the schema's rows.
  let roots: [Int]
  let pageCount: Int
  let pageSize: Int
  /// The tables, by their names in SQL.
  let tables: [String]

  /// The tables without SQLite's own schema.
  var booksOfFormat: [String] { tables.filter { $0 != "sqlite_schema" } }

  /// Reads the trees, and no other page.
  ///
  /// - Returns: `nil` where a table of these has an index, or where SQLite cannot list pages.
  /// - Throws: The database's error.
  init?(_ db: Database, format: StoreFormat) throws {
    guard
      try Bool.fetchOne(db, sql: "SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')") == true
    else { return nil }
    let wanted = ["sqlite_sequence"] + format.bookkeepingTables
    var (roots, found): ([Int], [String]) = ([], [])
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT type, name, tbl_name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY rowid
        """)
    while let row = try rows.next() {
      let (root, name): (Int, String) = (row.get(3) ?? 0, row.get(1) ?? "")
      roots.append(root)
      guard wanted.contains(row.get(2) ?? "") else { continue }
      guard row.get(0) == "table" else { return nil }
      found.append(name)
    }
    self.roots = roots
    tables = ["sqlite_schema"] + found
    pageCount = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
    pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    // SQLite walks only the tree that the condition names.
    pages = try tables.reduce(into: []) { pages, table in
      pages.formUnion(
        try Int.fetchSet(db, sql: "SELECT pageno FROM dbstat WHERE name = ?", arguments: [table]))
    }
  }
}
