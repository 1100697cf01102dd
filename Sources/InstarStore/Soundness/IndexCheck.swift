internal import CDatabase
internal import GRDB
internal import GRDBSQLite
internal import InstarSchema

/// Compares each index of a store with its table, and checks its order.
///
/// SQLite itself compares them only in `integrity_check`, which seeks every row in every index. Here each table and
/// each index is read once, from its first entry to its last, and a fingerprint of both is compared.
///
/// Where SQLite computes none of the values, the trees are read straight from the file (`TreeReader.c`). Else, and
/// wherever that finds anything wrong, SQLite reads them: the table by a query, and the index as a table of its own
/// (`instar_describe_tree`), so SQLite has no choice: it reads the index's pages and evaluates no expression.
enum IndexCheck {
  /// Returns one sentence for each damaged index.
  ///
  /// - Parameters:
  ///   - lists: Columns to sum while their tables are read.
  ///   - sums: Gets the sums; those of no columns where SQLite itself has to check the indexes.
  ///   - readsFile: Whether trees are read straight from the file where that is possible.
  /// - Throws: The database's error.
  static func findings(
    _ db: Database, _ tables: [IndexedTable], summing lists: Set<ColumnList> = [],
    into sums: inout ColumnSums, readsFile: Bool = true
  ) throws -> [String] {
    if tables.isEmpty, lists.isEmpty { return [] }
    guard try db.text("PRAGMA encoding") == "UTF-8" else {
      // Keys are in the order of the stored bytes, and SQLite returns others.
      return try StoreCheck.findings(db, "integrity_check", String(StoreCheck.findingLimit))
    }
    var trees = IndexTrees(db)
    defer { trees.forget() }
    var lists = Dictionary(grouping: lists, by: \.table)
    var findings: [String] = []
    for table in tables {
      let summed = lists.removeValue(forKey: SQLIdentifier.sql(table.name)) ?? []
      let wanted = TableColumns(table, summing: summed)
      var found = readsFile ? fingerprintsOfSoundTrees(db, wanted) : nil
      if found == nil {
        let read = try fingerprints(db, wanted)
        for (index, expected) in zip(table.indexes, read) {
          if let finding = try finding(db, index, of: table, expected, &trees) {
            findings.append(finding)
          }
        }
        found = read
      }
      for (list, sum) in zip(summed, (found ?? [])[table.indexes.count...]) {
        sums.add(list, sum, db)
      }
    }
    // Tables without an index.
    for (table, summed) in lists {
      let table = IndexedTable(name: SQLToken.name(ofSQL: table))
      let found = try fingerprints(db, TableColumns(table, summing: summed))
      for (list, sum) in zip(summed, found) { sums.add(list, sum, db) }
    }
    return findings
  }

  /// The keys of a process.
  private static let keys: [UInt64] = (0..<2).map { _ in .random(in: 1 ... .max) | 1 }

  /// What is read of each row of a table: the columns of its indexes, and those to sum.
  struct TableColumns {
    let table: IndexedTable
    /// As SQL.
    private(set) var selected: [String] = []
    /// Places in `selected`.
    private(set) var columns: [Int32] = []
    private(set) var parts: [instar_index_columns] = []

    init(_ table: IndexedTable, summing lists: [ColumnList]) {
      self.table = table
      for index in table.indexes {
        // The primary key of a table without rowid is the table: it is compared with nothing.
        add(index.rootPage == nil ? [] : index.expressions, where: index.condition)
      }
      for list in lists { add(list.columns) }
    }

    /// Whether fingerprints of the table are compared with anything.
    var isNeeded: Bool { parts.contains { $0.count > 0 } }

    private mutating func add(_ expressions: [String], where condition: String? = nil) {
      let first = columns.count
      columns += expressions.map { position(of: $0) }
      let condition = condition.map { position(of: "CASE WHEN \($0) THEN 1 ELSE 0 END") }
      parts.append(
        instar_index_columns(
          first: Int32(first), count: Int32(expressions.count), condition: condition ?? -1))
    }

    private mutating func position(of expression: String) -> Int32 {
      let found = selected.firstIndex(of: expression) ?? selected.count
      if found == selected.count { selected.append(expression) }
      return Int32(found)
    }

    /// The places of the columns in the records of a tree; `nil` where SQLite computes one of them.
    func columns(in tree: IndexedTable.Tree) -> [Int32]? {
      guard parts.allSatisfy({ $0.condition < 0 }) else { return nil }
      let places = selected.compactMap { tree.positions[$0] }
      return places.count == selected.count ? columns.map { places[Int($0)] } : nil
    }

    /// Calls `rows` to read the table. Returns the fingerprint that each index must have, then those of the lists.
    func fingerprints(
      _ rows: UnsafePointer<instar_rows>, _ columns: [Int32]
    ) -> (code: Int32, found: [instar_fingerprint]) {
      var found = [instar_fingerprint](repeating: instar_fingerprint(), count: parts.count)
      let code = instar_fingerprint_table(rows, parts, Int32(parts.count), columns, keys, &found)
      return (code, found)
    }
  }

  /// Reads a table once, by a statement.
  private static func fingerprints(
    _ db: Database, _ wanted: TableColumns
  ) throws -> [instar_fingerprint] {
    var found = wanted.parts.map { _ in instar_fingerprint() }
    guard wanted.isNeeded else { return found }
    let list = wanted.selected.joined(separator: ", ")
    try reader(db, of: wanted.table, "SELECT \(list) FROM \(wanted.table.source)").scan {
      var rows = instar_rows()
      rows.statement = $0
      let result = wanted.fingerprints(&rows, wanted.columns)
      found = result.found
      return result.code
    }
    return found
  }

  /// Reads a table and its indexes from the file.
  ///
  /// - Returns: The fingerprints of the table; `nil` where SQLite has to read one of them, or where anything is wrong:
  ///   SQLite then finds out what.
  static func fingerprintsOfSoundTrees(
    _ db: Database, _ wanted: TableColumns
  ) -> [instar_fingerprint]? {
    let table = wanted.table
    guard let tree = table.tree, let columns = wanted.columns(in: tree) else { return nil }
    var found = wanted.parts.map { _ in instar_fingerprint() }
    if wanted.isNeeded {
      var rows = instar_rows()
      rows.database = db.sqliteConnection
      rows.root = UInt32(clamping: tree.rootPage)
      rows.is_index = tree.isIndex ? 1 : 0
      rows.column_count = (columns.max() ?? Int32(INSTAR_ROWID)) + 1
      rows.missing_is_null = tree.defaultColumns.isDisjoint(with: columns) ? 1 : 0
      let result = wanted.fingerprints(&rows, columns)
      guard result.code == SQLITE_DONE else { return nil }
      found = result.found
    }
    for (index, expected) in zip(table.indexes, found) {
      var rows = instar_rows()
      rows.database = db.sqliteConnection
      rows.root = UInt32(clamping: index.rootPage ?? tree.rootPage)
      rows.is_index = 1
      rows.column_count = Int32(clamping: index.terms.count)
      let scanned = scan(&rows, index)
      guard scanned.code == SQLITE_DONE, scanned.problem == INSTAR_INDEX_IS_SOUND else {
        return nil
      }
      // A primary key is the table itself: only its order is checked.
      guard
        index.rootPage == nil
          || scanned.fingerprint.count == expected.count
            && scanned.fingerprint.sum == expected.sum
      else { return nil }
    }
    return found
  }

  private static func reader(
    _ db: Database, of table: IndexedTable, _ sql: String
  ) throws -> StatementReader {
    do {
      return try StatementReader(db, sql)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      throw InstarError(
        .unsupported, "cannot check the indexes of table '\(table.name)'",
        cause: "SQLite cannot evaluate the indexes without the app: \(error.message ?? "")",
        next: "let the app itself migrate this store")
    }
  }

  private static func finding(
    _ db: Database, _ index: IndexedTable.Index, of table: IndexedTable,
    _ expected: instar_fingerprint, _ trees: inout IndexTrees
  ) throws -> String? {
    let subject = "index '\(index.name)' of table '\(table.name)'"
    guard let page = index.rootPage else {
      let list = index.expressions.joined(separator: ", ")
      let found = try scan(StatementReader(db, "SELECT \(list) FROM \(table.source)"), index)
      return found.problem.map { "the primary key of table '\(table.name)' \($0)" }
    }
    let found = try scan(
      StatementReader(db, try trees.statement(reading: page, columns: index.terms.count)), index)
    if let problem = found.problem { return "\(subject) \(problem)" }
    if found.fingerprint.count != expected.count {
      return "\(subject) has \(found.fingerprint.count) entries for \(expected.count) rows"
    }
    return found.fingerprint.sum == expected.sum
      ? nil : "\(subject) does not match the rows of its table"
  }

  /// Reads an index from its first entry to its last, by a statement.
  private static func scan(
    _ entries: StatementReader, _ index: IndexedTable.Index
  ) throws -> (fingerprint: instar_fingerprint, problem: String?) {
    var found = (
      code: SQLITE_DONE, fingerprint: instar_fingerprint(), problem: INSTAR_INDEX_IS_SOUND
    )
    try entries.scan {
      var rows = instar_rows()
      rows.statement = $0
      found = scan(&rows, index)
      return found.code
    }
    return switch found.problem {
    case INSTAR_INDEX_REPEATS_KEY: (found.fingerprint, "must be unique, but has the same key twice")
    case INSTAR_INDEX_IS_NOT_IN_ORDER: (found.fingerprint, "is not in order")
    default: (found.fingerprint, nil)
    }
  }

  private static func scan(
    _ entries: UnsafePointer<instar_rows>, _ index: IndexedTable.Index
  ) -> (code: Int32, fingerprint: instar_fingerprint, problem: instar_index_problem) {
    var fingerprint = instar_fingerprint()
    var problem = INSTAR_INDEX_IS_SOUND
    let code = index.terms.withUnsafeBufferPointer { terms in
      var order = instar_index_order(
        terms: terms.baseAddress, term_count: Int32(terms.count),
        key_count: Int32(index.keyCount), is_unique: index.isUnique ? 1 : 0)
      return instar_scan_index(entries, &order, keys, &fingerprint, &problem)
    }
    return (code, fingerprint, problem)
  }
}

/// The indexes that a connection reads as tables.
private struct IndexTrees {
  private let db: Database
  /// What no name of the store begins with; `nil` before the first tree.
  private var prefix: String?
  private var count = 0

  init(_ db: Database) { self.db = db }

  private static func unusedPrefix(_ db: Database) throws -> String {
    var prefix = "instar_index"
    while try db.integer("SELECT 1 FROM sqlite_master WHERE name LIKE '\(prefix)%'") != nil {
      prefix += "_"
    }
    return prefix
  }

  /// Returns a statement that reads the entries of the index at a page, in their order.
  mutating func statement(reading page: Int, columns: Int) throws -> String {
    let prefix = try prefix ?? Self.unusedPrefix(db)
    self.prefix = prefix
    count += 1
    let connection = db.sqliteConnection
    let list = (0..<columns).map { "c\($0)" }.joined(separator: ", ")
    instar_describe_tree(connection, Int32(clamping: page))
    let code = sqlite3_exec(
      connection, "CREATE TABLE \(prefix)\(count) (\(list), PRIMARY KEY (\(list))) WITHOUT ROWID",
      nil,
      nil, nil)
    instar_describe_tree(connection, 0)
    guard code == SQLITE_OK else {
      throw DatabaseError(resultCode: ResultCode(rawValue: code))
    }
    return "SELECT \(list) FROM \(prefix)\(count)"
  }

  func forget() {
    if count > 0 { instar_forget_trees(db.sqliteConnection) }
  }
}
