internal import CDatabase
internal import GRDB
internal import InstarSchema

/// A table with its indexes, as the check of indexes reads it.
struct IndexedTable {
  /// An index, or the primary key of a table without rowid.
  struct Index {
    let name: String
    let isUnique: Bool
    /// The terms of the key, then what SQLite appends: the rowid, or columns of the primary key.
    let terms: [instar_index_term]
    /// The terms as SQL, which the table is read with.
    let expressions: [String]
    let keyCount: Int
    /// The condition of a partial index, as SQL.
    let condition: String?
    /// Whether it has a value of a column for each term, and an entry for each row.
    let hasStoredValues: Bool
    /// The page at which its b-tree begins; `nil` for a primary key, which is the table itself.
    let rootPage: Int?
  }

  /// SQLite's own. Apps can add others.
  fileprivate static let collations = [
    "BINARY": INSTAR_BINARY, "NOCASE": INSTAR_NOCASE, "RTRIM": INSTAR_RTRIM,
  ]

  /// A table's b-tree, where the columns of its rows can be read without a statement.
  struct Tree {
    let rootPage: Int
    /// Whether the table has no rowid: then its rows are the entries of its primary key.
    let isIndex: Bool
    /// Where a record has each column, by the column as SQL; `INSTAR_ROWID` for the rowid
    /// and for the INTEGER PRIMARY KEY, which is the rowid.
    let positions: [String: Int32]
    /// Columns with a default. Rows older than such a column have no value for it in their record.
    let defaultColumns: Set<Int32>
  }

  let name: String
  /// `nil` where only SQLite knows the values: it computes some of them.
  private(set) var tree: Tree?
  private(set) var indexes: [Index] = []

  init(name: String) { self.name = name }

  /// The table for a FROM clause. SQLite has to read the table itself, not an index that has all columns.
  ///
  /// `NOT INDEXED` forbids that only in a table with rowid.
  var source: String {
    let primaryKey = indexes.first { $0.rootPage == nil }
    return SQLIdentifier.sql(name)
      + (primaryKey.map { " INDEXED BY \(SQLIdentifier.sql($0.name))" } ?? " NOT INDEXED")
  }

  /// Returns a tree that has these columns: an index where there is one, as it has fewer pages, else the table itself.
  ///
  /// - Parameter columns: As SQL.
  /// - Returns: The tree, and where its records have the columns; `nil` where only SQLite can read one of them.
  func smallestTree(with columns: [String]) -> (tree: Tree, places: [Int32])? {
    guard let tree else { return nil }
    let wanted = columns.compactMap { tree.positions[$0] }
    guard wanted.count == columns.count else { return nil }
    let found = indexes.compactMap { index -> (tree: Tree, places: [Int32])? in
      guard let rootPage = index.rootPage, index.condition == nil else { return nil }
      let stored = index.expressions.map { tree.positions[$0] }
      let places = wanted.compactMap { stored.firstIndex(of: $0).map { Int32(clamping: $0) } }
      guard places.count == wanted.count else { return nil }
      return (Tree(ofIndexAt: rootPage), places)
    }
    return found.first ?? (tree, wanted)
  }

  /// Reads all tables that have an index or no rowid.
  ///
  /// - Throws: `unsupported` for a collation that only the app has.
  static func all(_ db: Database) throws -> [IndexedTable] {
    try known.value(of: SchemaKey.readWithPages(db)) { try readAll(db) }
  }

  private static let known = SchemaCache<[IndexedTable]>()

  private static func readAll(_ db: Database) throws -> [IndexedTable] {
    let statements = try indexStatements(db)
    var terms = try indexTerms(db)
    let columns = try listedColumns(db)
    let names = columns.mapValues { Set($0.map { $0.name.lowercased() }) }
    let lists = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, l.name, l."unique", l.origin, m.rootpage FROM sqlite_master AS m
        JOIN pragma_index_list(m.name) AS l WHERE m.type = 'table' AND m.rootpage > 0
        ORDER BY m.rowid
        """)
    // Those tables whose primary key is not the rowid, which needs no index.
    let keyed = Set(lists.filter { $0.get(3) == "pk" }.compactMap { $0.get(0) as String? })
    var tables: [IndexedTable] = []
    for row in lists {
      guard let table: String = row.get(0), let name: String = row.get(1) else { continue }
      if tables.last?.name != table { tables.append(IndexedTable(name: table)) }
      let listed = ListedIndex(
        name: name, table: table, isUnique: row.get(2) == 1, isPrimaryKey: row.get(3) == "pk",
        rowID: rowID(besides: names[table] ?? []))
      let listedTerms = terms.removeValue(forKey: name) ?? []
      let index = try listed.index(statements[name], listedTerms)
      tables[tables.count - 1].indexes.append(index)
      guard index.rootPage == nil || tables[tables.count - 1].tree == nil else { continue }
      tables[tables.count - 1].tree = Tree(
        rootPage: row.get(4) ?? 0, columns: columns[table] ?? [], rowID: listed.rowID,
        // The primary key of a table without rowid lists all columns, in the order of its records.
        primaryKey: index.rootPage == nil ? listedTerms.compactMap(\.name) : nil,
        hasKeyIndex: keyed.contains(table))
    }
    return tables
  }

  /// A column of a table.
  fileprivate struct ListedColumn {
    let name: String
    let type: String
    let isInKey: Bool
    let hasDefault: Bool
    let isComputed: Bool
  }

  private static func listedColumns(_ db: Database) throws -> [String: [ListedColumn]] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, c.name, c.type, c.pk, c.dflt_value IS NOT NULL, c.hidden
        FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
        WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.rowid, c.cid
        """)
    return Dictionary(grouping: rows) { $0.get(0) ?? "" }.mapValues { rows in
      rows.map {
        ListedColumn(
          name: $0.get(1) ?? "", type: $0.get(2) ?? "", isInKey: $0.get(3) != 0,
          hasDefault: $0.get(4) == 1, isComputed: $0.get(5) != 0)
      }
    }
  }

  /// A name by which SQL can read the rowid; `nil` where columns have all of them.
  private static func rowID(besides columns: Set<String>) -> String? {
    ["rowid", "_rowid_", "oid"].first { !columns.contains($0) }
  }

  fileprivate struct Stored {
    let rootPage: Int
    let sql: String?
  }

  private static func indexStatements(_ db: Database) throws -> [String: Stored] {
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, rootpage, CAST(sql AS TEXT) FROM sqlite_master WHERE type = 'index'")
    return Dictionary(
      firstOf: rows.map { ($0.get(0) ?? "", Stored(rootPage: $0.get(1) ?? 0, sql: $0.get(2))) })
  }

  /// A row of `PRAGMA index_xinfo`.
  fileprivate struct ListedTerm {
    /// -1 for the rowid, -2 for an expression.
    let column: Int
    let name: String?
    let isDescending: Bool
    let collation: String
    let isKey: Bool
  }

  private static func indexTerms(_ db: Database) throws -> [String: [ListedTerm]] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT l.name, x.cid, x.name, x."desc", x.coll, x.key FROM sqlite_master AS m
        JOIN pragma_index_list(m.name) AS l JOIN pragma_index_xinfo(l.name) AS x
        WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY l.name, x.seqno
        """)
    return Dictionary(grouping: rows) { $0.get(0) ?? "" }.mapValues { rows in
      rows.map {
        ListedTerm(
          column: $0.get(1) ?? 0, name: $0.get(2), isDescending: $0.get(3) == 1,
          collation: $0.get(4) ?? "BINARY", isKey: $0.get(5) == 1)
      }
    }
  }
}

extension IndexedTable.Tree {
  /// The tree of an index, which has a value for each of its columns.
  fileprivate init(ofIndexAt rootPage: Int) {
    self.rootPage = rootPage
    isIndex = true
    positions = [:]
    defaultColumns = []
  }

  /// - Parameters:
  ///   - rowID: A name by which SQL can read the rowid; `nil` where columns have all of them.
  ///   - primaryKey: The columns of a table without rowid as its records have them; `nil` for any other table.
  ///   - hasKeyIndex: Whether the primary key has an index, so it is not the rowid.
  /// - Returns: `nil` for a table whose rows SQLite has to read: it computes some of their values.
  fileprivate init?(
    rootPage: Int, columns: [IndexedTable.ListedColumn], rowID: String?, primaryKey: [String]?,
    hasKeyIndex: Bool
  ) {
    guard rootPage > 0, !columns.isEmpty, !columns.contains(where: \.isComputed) else { return nil }
    self.rootPage = rootPage
    isIndex = primaryKey != nil
    let stored = primaryKey ?? columns.map(\.name)
    guard stored.count == columns.count else { return nil }
    var positions: [String: Int32] = [:]
    for (position, name) in stored.enumerated() {
      positions[SQLIdentifier.sql(name)] = Int32(clamping: position)
    }
    if !isIndex {
      // SQLite never reads what a record has for an INTEGER PRIMARY KEY.
      let keys = columns.filter(\.isInKey)
      if !hasKeyIndex, keys.count == 1, keys[0].type.uppercased() == "INTEGER" {
        positions[SQLIdentifier.sql(keys[0].name)] = Int32(INSTAR_ROWID)
      }
      if let rowID { positions[rowID] = Int32(INSTAR_ROWID) }
    }
    defaultColumns = Set(
      columns.filter(\.hasDefault).compactMap { positions[SQLIdentifier.sql($0.name)] })
    self.positions = positions
  }
}

/// An index as SQLite lists it.
private struct ListedIndex {
  let name: String
  let table: String
  let isUnique: Bool
  let isPrimaryKey: Bool
  let rowID: String?

  func index(
    _ stored: IndexedTable.Stored?, _ listed: [IndexedTable.ListedTerm]
  ) throws(InstarError) -> IndexedTable.Index {
    // A primary key lists all columns of its table; those behind the key are not a part of its order.
    let isTable = stored == nil && isPrimaryKey
    let terms = isTable ? listed.filter(\.isKey) : listed
    let text = stored?.sql.flatMap { CreateIndexText($0) }
    var kept: [instar_index_term] = []
    var expressions: [String] = []
    for (position, term) in terms.enumerated() {
      guard let collation = IndexedTable.collations[term.collation.uppercased()] else {
        throw InstarError(
          .unsupported, "cannot check index '\(name)' of table '\(table)'",
          cause:
            "index '\(name)' is sorted by the collation '\(term.collation)', which only the app has",
          next: "let the app itself migrate this store")
      }
      kept.append(
        instar_index_term(collation: collation, is_descending: term.isDescending ? 1 : 0))
      expressions.append(try expression(term, text?.terms, position))
    }
    return IndexedTable.Index(
      name: name, isUnique: isUnique, terms: kept, expressions: expressions,
      keyCount: terms.count(where: \.isKey), condition: text?.condition,
      hasStoredValues: text?.condition == nil && !terms.contains { $0.column == -2 },
      rootPage: isTable ? nil : stored?.rootPage ?? 0)
  }

  private func expression(
    _ term: IndexedTable.ListedTerm, _ texts: [String]?, _ position: Int
  ) throws(InstarError) -> String {
    if let column = term.name { return SQLIdentifier.sql(column) }
    if term.column == -1, let rowID { return rowID }
    if term.column == -2, let texts, texts.indices.contains(position) {
      return "(\(Self.withoutOrder(texts[position])))"
    }
    throw InstarError(
      .unsupported, "cannot check index '\(name)' of table '\(table)'",
      cause: term.column == -1
        ? "columns of table '\(table)' have all names of its rowid"
        : "the CREATE INDEX statement of index '\(name)' cannot be parsed",
      next: "let the app itself migrate this store")
  }

}

extension ListedIndex {
  /// An expression without the ASC or DESC behind it.
  private static func withoutOrder(_ text: String) -> String {
    var tokens = SQLToken.tokens(of: text)
    while let last = tokens.last,
      last.kind == .space || last.kind == .word && ["ASC", "DESC"].contains(last.name.uppercased())
    {
      tokens.removeLast()
    }
    return tokens.map(\.text).joined()
  }
}
