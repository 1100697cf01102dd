internal import GRDB
internal import InstarSchema
internal import InstarStore

/// The b-trees of a store that stages may write without writing a row of the app: the schema, and the tables in which
/// SQLite and the format keep their books and the history, with their indexes.
struct PageBaseline: Sendable {
  /// The pages of these trees, overflow pages too. Numbered from 1.
  let pages: Set<Int>
  /// The roots of all trees, in the order of the schema's rows.
  let roots: [Int]
  let pageCount: Int
  let pageSize: Int
  /// The tables, by their names in the schema.
  let tables: [String]
  /// Those of these tables that are books, not history.
  let booksOfFormat: [String]
  let includesHistory: Bool

  /// More pages need much memory: then nobody compares them.
  private static let pageLimit = 1 << 20

  /// Reads the trees, and no other page.
  ///
  /// - Parameter includesHistory: Whether stages may write the history. It may be long.
  /// - Returns: `nil` where two of these trees have a page in common, where a tree is damaged, where they have too many
  ///   pages, or where SQLite cannot list pages. The check of the whole store tells whether it is damaged.
  /// - Throws: The database's error.
  init?(_ db: Database, format: StoreFormat, includesHistory: Bool) throws {
    guard
      try Bool.fetchOne(db, sql: "SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')") == true
    else { return nil }
    let books = ["sqlite_sequence"] + format.bookkeepingTables
    let wanted = books + (includesHistory ? format.stageHistoryTables : [])
    var (roots, found): ([Int], [String]) = ([], [])
    let rows = try Row.fetchCursor(
      db,
      sql: "SELECT type, name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY rowid")
    while let row = try rows.next() {
      let name: String = row.get(1) ?? ""
      roots.append(row.get(2) ?? 0)
      if row.get(0) == "table", wanted.contains(name) { found.append(name) }
    }
    self.roots = roots
    self.includesHistory = includesHistory
    tables = ["sqlite_schema"] + found
    booksOfFormat = found.filter(books.contains)
    pageCount = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
    pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    // Not the schema's column for an index's table: SQLite goes by the statement.
    let indexes = try found.flatMap {
      try String.fetchAll(db, sql: "SELECT name FROM pragma_index_list(?)", arguments: [$0])
    }
    guard let pages = try Self.pages(of: tables + indexes, db) else { return nil }
    self.pages = pages
  }

  /// - Returns: `nil` where a page is in two places, where SQLite cannot walk a tree, or where the pages are too many.
  private static func pages(of trees: [String], _ db: Database) throws -> Set<Int>? {
    var pages = Set<Int>()
    do {
      for tree in trees {
        // SQLite walks only the tree that the condition names. It may repeat a page of a damaged one without end.
        let listed = try Int.fetchCursor(
          db, sql: "SELECT pageno FROM dbstat WHERE name = ?", arguments: [tree])
        while let page = try listed.next() {
          guard pages.insert(page).inserted, pages.count <= pageLimit else { return nil }
        }
      }
    } catch let error as DatabaseError
      // SQLite reports a page number that no file can have as a full disk.
      where [.SQLITE_CORRUPT, .SQLITE_FULL].contains(error.resultCode)
    {
      return nil
    }
    return pages
  }
}
