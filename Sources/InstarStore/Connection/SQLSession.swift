public import GRDB
internal import GRDBSQLite
public import InstarSchema

/// An open connection during `StoreConnection.perform`.
///
/// Sendable because the connection's queue guards it: it is reached only from inside `perform`.
public final class SQLSession: @unchecked Sendable {
  private let connection: OpaquePointer
  private var statements: [String: SQLStatement] = [:]
  /// What SQLite's number of the data was when it was looked at last, or made by a commit of our own.
  private var dataVersion: UInt32
  /// Whether this `perform` has met commits of others.
  package private(set) var hasMetCommitsOfOthers = false
  /// Statement texts vary with the set of changed columns; past this many the kept ones are let go.
  private let statementLimit = 256
  /// The same connection, for what is written against GRDB.
  public let database: Database

  private let externalValues: ExternalValues
  private let rowKeys = RowKeys()
  private var isReadyForTables = false

  /// Prepares the connection for the statements of plain stores: their functions are made, and foreign keys are enforced.
  /// Not to be called in a transaction.
  public func useOrdinaryTables() throws(InstarError) {
    if !isReadyForTables {
      rowKeys.register(database)
      Schema.Column.Encoding.register(database)
      isReadyForTables = true
    }
    try run("PRAGMA foreign_keys = ON")
  }

  /// Keeps the numbers that stand for primary keys of tables without rowid, where the tables have got other names.
  package func carryRowKeys(_ keys: [(old: RowKey, new: RowKey)]) {
    rowKeys.rename(
      keys.compactMap { keys in
        guard let old = keys.old.table, let new = keys.new.table, old != new else { return nil }
        return (old, new)
      })
  }

  init(_ database: Database, _ externalValues: ExternalValues) throws {
    guard let connection = database.sqliteConnection else {
      throw InstarError(.sqlFailed, "cannot use a store", cause: "its connection is closed")
    }
    self.connection = connection
    self.database = database
    self.externalValues = externalValues
    dataVersion = Self.dataVersion(of: connection)
  }

  /// The pager's number of the data: another one after each commit of this connection, and after each read that has met
  /// commits of others. Asking for it runs no statement.
  private static func dataVersion(of connection: OpaquePointer) -> UInt32 {
    var version: UInt32 = 0
    sqlite3_file_control(connection, nil, SQLITE_FCNTL_DATA_VERSION, &version)
    return version
  }

  /// Whether a statement since the last call has met commits of others.
  func noteCommitsOfOthers() -> Bool {
    let now = Self.dataVersion(of: connection)
    defer {
      dataVersion = now
      hasMetCommitsOfOthers = false
    }
    return hasMetCommitsOfOthers || now != dataVersion
  }

  /// The statement with that text, prepared at its first use and kept. It is reset, and its parameters are NULL.
  public func statement(_ sql: String) throws(InstarError) -> SQLStatement {
    if let kept = statements[sql] {
      kept.reset()
      return kept
    }
    let statement = try SQLStatement(sql, connection: connection)
    if statements.count >= statementLimit { statements.removeAll() }
    statements[sql] = statement
    return statement
  }

  /// Runs one statement that takes no parameters. It is prepared for this call only.
  public func run(_ sql: String) throws(InstarError) {
    try SQLStatement(sql, connection: connection).run()
  }

  /// The first column of the first row, or `nil` where there is no row or it is NULL.
  public func integer(_ sql: String) throws(InstarError) -> Int64? {
    let statement = try SQLStatement(sql, connection: connection)
    guard try statement.step(), statement.storageClass(at: 0) != .null else { return nil }
    return statement.integer(at: 0)
  }

  /// How many rows the last INSERT, UPDATE or DELETE changed.
  public var changedRowCount: Int { database.changesCount }

  /// The first column of the first row as text, or `nil` where there is no row or it is NULL.
  public func text(_ sql: String) throws(InstarError) -> String? {
    let statement = try SQLStatement(sql, connection: connection)
    guard try statement.step(), statement.storageClass(at: 0) != .null else { return nil }
    return statement.text(at: 0)
  }

  /// Says before a commit what SQLite would refuse it for: rows that refer to rows which are not there.
  ///
  /// - Throws: `sqlFailed`. To be called inside a transaction.
  package func requireResolvedForeignKeys() throws(InstarError) {
    var unresolved: Int32 = 0
    var highest: Int32 = 0
    sqlite3_db_status(connection, SQLITE_DBSTATUS_DEFERRED_FKS, &unresolved, &highest, 0)
    guard unresolved == 0 else {
      throw InstarError(
        .sqlFailed, "cannot commit", cause: "FOREIGN KEY constraint failed", state: "unchanged")
    }
  }

  /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
  public func transaction<Value>(_ body: () throws -> Value) throws -> Value {
    try run("BEGIN IMMEDIATE")
    // What statements outside of transactions have made stays.
    externalValues.keepMade()
    // From here to the end of the transaction nobody else commits.
    if Self.dataVersion(of: connection) != dataVersion { hasMetCommitsOfOthers = true }
    do {
      let value = try body()
      try run("COMMIT")
      externalValues.keepMade()
      dataVersion = Self.dataVersion(of: connection)
      return value
    } catch {
      // A statement may have ended the transaction already (disk full, I/O error); then there is nothing to undo.
      try? run("ROLLBACK")
      externalValues.removeMade()
      throw error
    }
  }
}
