internal import CDatabase
internal import GRDB
internal import GRDBSQLite
internal import InstarSchema

/// Compares each index of a store with its table, and checks its order.
///
/// SQLite itself compares them only in `integrity_check`, which seeks every row in every index. Here each table and
/// each index is read once, from its first entry to its last, and a fingerprint of both is compared.
///
/// An index is read as a table of its own (`instar_describe_tree`), so SQLite has no choice: it reads the index's pages
/// and evaluates no expression.
enum IndexCheck {
  /// Returns one sentence for each damaged index.
  ///
  /// - Parameters:
  ///   - lists: Columns to sum while their tables are read.
  ///   - sums: Gets the sums; those of no columns where SQLite itself has to check the indexes.
  /// - Throws: The database's error.
  static func findings(
    _ db: Database, _ tables: [IndexedTable], summing lists: Set<ColumnList> = [],
    into sums: inout ColumnSums
  ) throws -> [String] {
    guard try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" else {
      // Keys are in the order of the stored bytes, and SQLite returns others.
      return try String.fetchAll(db, sql: "PRAGMA integrity_check(\(StoreCheck.findingLimit))")
        .filter { $0 != "ok" }
    }
    var trees = try IndexTrees(db)
    defer { trees.forget() }
    var lists = Dictionary(grouping: lists, by: \.table)
    var findings: [String] = []
    for table in tables {
      let summed = lists.removeValue(forKey: SQLIdentifier.sql(table.name)) ?? []
      let found = try fingerprints(db, of: table, summing: summed)
      for (list, sum) in zip(summed, found[table.indexes.count...]) { sums.add(list, sum, db) }
      for (index, expected) in zip(table.indexes, found) {
        if let finding = try finding(db, index, of: table, expected, &trees) {
          findings.append(finding)
        }
      }
    }
    // Tables without an index.
    for (table, summed) in lists {
      let found = try fingerprints(
        db, of: IndexedTable(name: SQLToken.name(ofSQL: table)), summing: summed)
      for (list, sum) in zip(summed, found) { sums.add(list, sum, db) }
    }
    return findings
  }

  /// The keys of a process.
  private static let keys: [UInt64] = (0..<2).map { _ in .random(in: 1 ... .max) | 1 }

  /// Reads a table once. Returns the fingerprint that each of its indexes must have, then those of the lists.
  private static func fingerprints(
    _ db: Database, of table: IndexedTable, summing lists: [ColumnList]
  ) throws -> [instar_fingerprint] {
    var fingerprints = [instar_fingerprint](
      repeating: instar_fingerprint(), count: table.indexes.count + lists.count)
    guard !lists.isEmpty || table.indexes.contains(where: { $0.rootPage != nil }) else {
      return fingerprints
    }
    var selected: [String] = []
    func position(of expression: String) -> Int32 {
      let found = selected.firstIndex(of: expression) ?? selected.count
      if found == selected.count { selected.append(expression) }
      return Int32(found)
    }
    var columns: [Int32] = []
    func add(_ expressions: [String], where condition: String? = nil) -> instar_index_columns {
      let first = columns.count
      columns += expressions.map(position)
      let condition = condition.map { position(of: "CASE WHEN \($0) THEN 1 ELSE 0 END") }
      return instar_index_columns(
        first: Int32(first), count: Int32(expressions.count), condition: condition ?? -1)
    }
    // The primary key of a table without rowid is the table: it is compared with nothing.
    let indexes =
      table.indexes.map { add($0.rootPage == nil ? [] : $0.expressions, where: $0.condition) }
      + lists.map { add($0.columns) }
    try reader(db, of: table, "SELECT \(selected.joined(separator: ", ")) FROM \(table.source)")
      .scan {
        instar_fingerprint_table(
          $0, indexes, Int32(indexes.count), columns, keys, &fingerprints)
      }
    return fingerprints
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

  /// Reads an index from its first entry to its last.
  private static func scan(
    _ entries: StatementReader, _ index: IndexedTable.Index
  ) throws -> (fingerprint: instar_fingerprint, problem: String?) {
    var fingerprint = instar_fingerprint()
    var problem = INSTAR_INDEX_IS_SOUND
    try index.terms.withUnsafeBufferPointer { terms in
      var order = instar_index_order(
        terms: terms.baseAddress, term_count: Int32(terms.count),
        key_count: Int32(index.keyCount), is_unique: index.isUnique ? 1 : 0)
      try entries.scan { instar_scan_index($0, &order, keys, &fingerprint, &problem) }
    }
    return switch problem {
    case INSTAR_INDEX_REPEATS_KEY: (fingerprint, "must be unique, but has the same key twice")
    case INSTAR_INDEX_IS_NOT_IN_ORDER: (fingerprint, "is not in order")
    default: (fingerprint, nil)
    }
  }
}

/// The indexes that a connection reads as tables.
private struct IndexTrees {
  private let db: Database
  /// What no name of the store begins with.
  private let prefix: String
  private var count = 0

  init(_ db: Database) throws {
    self.db = db
    var prefix = "instar_index"
    while try Bool.fetchOne(
      db, sql: "SELECT count(*) > 0 FROM sqlite_master WHERE name LIKE '\(prefix)%'") == true
    {
      prefix += "_"
    }
    self.prefix = prefix
  }

  /// Returns a statement that reads the entries of the index at a page, in their order.
  mutating func statement(reading page: Int, columns: Int) throws -> String {
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
