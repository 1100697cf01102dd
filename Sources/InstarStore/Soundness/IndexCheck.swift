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
  /// - Throws: The database's error.
  static func findings(_ db: Database, _ tables: [IndexedTable]) throws -> [String] {
    guard try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" else {
      // Keys are in the order of the stored bytes, and SQLite returns others.
      return try String.fetchAll(db, sql: "PRAGMA integrity_check(\(StoreCheck.findingLimit))")
        .filter { $0 != "ok" }
    }
    var trees = try IndexTrees(db)
    defer { trees.forget() }
    return try tables.flatMap { table in
      let expected = try fingerprints(db, of: table)
      return try zip(table.indexes, expected).compactMap { index, expected in
        try finding(db, index, of: table, expected, &trees)
      }
    }
  }

  /// Reads a table once. Returns the fingerprint that each of its indexes must have.
  private static func fingerprints(
    _ db: Database, of table: IndexedTable
  ) throws -> [RowFingerprint] {
    var fingerprints = table.indexes.map { _ in RowFingerprint() }
    let checked = table.indexes.indices.filter { table.indexes[$0].rootPage != nil }
    guard !checked.isEmpty else { return fingerprints }
    var selected: [String] = []
    func position(of expression: String) -> Int {
      if let found = selected.firstIndex(of: expression) { return found }
      selected.append(expression)
      return selected.count - 1
    }
    let columns = checked.map { table.indexes[$0].expressions.map(position) }
    let conditions = checked.map { index in
      table.indexes[index].condition.map { position(of: "CASE WHEN \($0) THEN 1 ELSE 0 END") }
    }
    let rows = try reader(
      db, of: table, "SELECT \(selected.joined(separator: ", ")) FROM \(table.source)")
    while try rows.next() {
      for (position, index) in checked.enumerated() {
        if let condition = conditions[position], rows.integer(condition) == 0 { continue }
        var hash = RowDigest()
        for column in columns[position] { rows.withValue(column) { hash.add($0) } }
        fingerprints[index].add(hash)
      }
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
    _ expected: RowFingerprint, _ trees: inout IndexTrees
  ) throws -> String? {
    let subject = "index '\(index.name)' of table '\(table.name)'"
    guard let page = index.rootPage else {
      let found = try Entries(
        StatementReader(
          db, "SELECT \(index.expressions.joined(separator: ", ")) FROM \(table.source)"), index)
      return found.problem.map { "the primary key of table '\(table.name)' \($0)" }
    }
    let found = try Entries(
      StatementReader(db, try trees.statement(reading: page, columns: index.terms.count)), index)
    if let problem = found.problem { return "\(subject) \(problem)" }
    if found.fingerprint == expected { return nil }
    return found.fingerprint.count == expected.count
      ? "\(subject) does not match the rows of its table"
      : "\(subject) has \(found.fingerprint.count) entries for \(expected.count) rows"
  }

  /// What reading an index from its first entry to its last shows.
  private struct Entries {
    private(set) var fingerprint = RowFingerprint()
    private(set) var problem: String?

    init(_ rows: StatementReader, _ index: IndexedTable.Index) throws {
      var (previous, current) = (IndexKey(), IndexKey())
      while try rows.next() {
        var hash = RowDigest()
        current.removeAll()
        for column in index.terms.indices {
          rows.withValue(column) { value in
            hash.add(value)
            current.append(value)
          }
        }
        fingerprint.add(hash)
        if fingerprint.count > 1 {
          problem = Self.problem(previous, current, index)
          if problem != nil { return }
        }
        swap(&previous, &current)
      }
    }

    private static func problem(
      _ previous: IndexKey, _ current: IndexKey, _ index: IndexedTable.Index
    ) -> String? {
      let (equal, isBefore) = previous.compare(to: current, index.terms)
      if index.isUnique, equal >= index.keyCount, !current.hasNull(in: index.keyCount) {
        return "must be unique, but has the same key twice"
      }
      return isBefore ? nil : "is not in order"
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
