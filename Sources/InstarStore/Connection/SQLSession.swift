internal import CDatabase
public import GRDB
internal import GRDBSQLite
internal import Glibc
public import InstarSchema

/// An open connection during `StoreConnection.perform`.
///
/// Sendable because the connection's queue guards it: it is reached only from inside `perform`.
public final class SQLSession: @unchecked Sendable {
  let connection: OpaquePointer
  private var statements: [String: SQLStatement] = [:]
  /// SQLite's data version at the last check or after our own last commit.
  private var dataVersion: UInt32
  /// Whether this `perform` has met commits of others.
  package private(set) var hasMetCommitsOfOthers = false
  /// Reports how far statements that read a whole table are; `nil` where nobody wants to know.
  package var meter: WorkMeter?
  /// The table with the version of the store, which no statement of a plan may write; `nil` for none.
  package var versionTable: String?
  /// Collects what statements read; `nil` where nobody wants to know.
  var readCollector: ReadCollector?
  /// Statement texts vary with the set of changed columns. Above this number all kept statements are closed.
  private let statementLimit = 256
  /// The same connection, for code written against GRDB.
  public let database: Database

  private let externalValues: ExternalValues
  private let rowKeys = RowKeys()
  private var isReadyForTables = false

  /// Registers the functions that statements on plain stores call, and enforces foreign keys. Must not be called in a
  /// transaction.
  public func useOrdinaryTables() throws(InstarError) {
    if !isReadyForTables {
      rowKeys.register(database)
      Schema.Column.Encoding.register(database)
      isReadyForTables = true
    }
    try run("PRAGMA foreign_keys = ON")
  }

  /// Keeps the keys of tables without rowid when the tables are renamed.
  package func carryRowKeys(_ keys: [(old: RowKey, new: RowKey)]) {
    rowKeys.rename(
      keys.compactMap { keys in
        guard let old = keys.old.table, let new = keys.new.table, old != new else { return nil }
        return (old, new)
      })
  }

  init(_ database: Database, _ externalValues: ExternalValues) throws {
    guard let connection = database.sqliteConnection else {
      throw InstarError(.sqlFailed, "cannot use a store", cause: "the store's connection is closed")
    }
    self.connection = connection
    self.database = database
    self.externalValues = externalValues
    dataVersion = Self.dataVersion(of: connection)
  }

  /// SQLite's data version, which changes with each commit of this connection and with each read that sees commits of
  /// others. Reading it runs no statement.
  private static func dataVersion(of connection: OpaquePointer) -> UInt32 {
    var version: UInt32 = 0
    sqlite3_file_control(connection, nil, SQLITE_FCNTL_DATA_VERSION, &version)
    return version
  }

  /// Whether a statement since the last call has seen commits of others.
  func noteCommitsOfOthers() -> Bool {
    let now = Self.dataVersion(of: connection)
    defer {
      dataVersion = now
      hasMetCommitsOfOthers = false
    }
    return hasMetCommitsOfOthers || now != dataVersion
  }

  /// Returns the statement with that text, prepared at its first use and kept. It is reset, and its parameters are
  /// NULL.
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

  /// Runs a statement without parameters. It is not kept.
  public func run(_ sql: String) throws(InstarError) {
    try SQLStatement(sql, connection: connection).run()
  }

  /// Returns the first column of the first row, or `nil` where there is no row or the value is NULL.
  public func integer(_ sql: String) throws(InstarError) -> Int64? {
    let statement = try SQLStatement(sql, connection: connection)
    guard try statement.step(), statement.storageClass(at: 0) != .null else { return nil }
    return statement.integer(at: 0)
  }

  /// The number of rows that the last INSERT, UPDATE or DELETE changed.
  public var changedRowCount: Int { database.changesCount }

  /// Returns the first column of the first row as text, or `nil` where there is no row or the value is NULL.
  public func text(_ sql: String) throws(InstarError) -> String? {
    let statement = try SQLStatement(sql, connection: connection)
    guard try statement.step(), statement.storageClass(at: 0) != .null else { return nil }
    return statement.text(at: 0)
  }

  /// Returns what `read` makes of each row of a statement. The statement is not kept.
  ///
  /// - Parameter text: The value of its parameter, if it has one.
  package func rows<Value>(
    _ sql: String, bind text: String? = nil, _ read: (SQLStatement) -> Value
  ) throws(InstarError) -> [Value] {
    let statement = try SQLStatement(sql, connection: connection)
    if let text { statement.bind(text, at: 1) }
    var values: [Value] = []
    while try statement.step() { values.append(read(statement)) }
    return values
  }

  /// Returns what `read` finds, with its error as an `InstarError`. All its statements count as one step for the limit
  /// of steps (see `WorkBudget`).
  package func affectedRows(
    _ read: (Database) throws -> AffectedRows?
  ) throws(InstarError) -> AffectedRows? {
    instar_step_begin()
    defer { instar_step_end() }
    do {
      return try read(database)
    } catch {
      throw InstarError(error, what: "cannot check the rows of the store")
    }
  }

  /// Checks before a commit that no row refers to a missing row, which SQLite would refuse.
  ///
  /// - Throws: `sqlFailed`. Call it inside a transaction.
  package func requireResolvedForeignKeys() throws(InstarError) {
    var unresolved: Int32 = 0
    var highest: Int32 = 0
    sqlite3_db_status(connection, SQLITE_DBSTATUS_DEFERRED_FKS, &unresolved, &highest, 0)
    guard unresolved == 0 else {
      throw InstarError(
        .sqlFailed, "cannot commit", cause: "FOREIGN KEY constraint failed", state: "unchanged")
    }
  }

  /// Runs `body` with the app's triggers disabled: Instar's own statements must not run them.
  package func withoutTriggers<Value>(_ body: () throws -> Value) throws -> Value {
    func enable(_ isOn: Int32) throws(InstarError) {
      guard instar_database_setting(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, isOn) == SQLITE_OK
      else {
        throw InstarError(
          .sqlFailed, "cannot change the schema",
          cause: "SQLite cannot \(isOn == 0 ? "disable" : "enable") triggers")
      }
    }
    try enable(0)
    let result = Result { try body() }
    try enable(1)
    return try result.get()
  }

  /// Runs `body` in a transaction of a store that is discarded after an error, without a rollback journal: the journal
  /// of a rebuilt table would be as large as the table.
  ///
  /// - Throws: The error of `body`; the store is then in any state.
  package func transactionWithoutRollback<Value>(_ body: () throws -> Value) throws -> Value {
    let mode = try text("PRAGMA journal_mode") ?? "memory"
    try run("PRAGMA journal_mode = OFF")
    let value = try transaction(body)
    try run("PRAGMA journal_mode = \(mode)")
    return value
  }

  /// The path of the database file; `nil` in memory.
  package var mainFile: String? {
    get throws(InstarError) {
      let file = try text("SELECT file FROM pragma_database_list WHERE name = 'main'")
      return file.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  /// Whether a transaction is open.
  package var isInTransaction: Bool { sqlite3_get_autocommit(connection) == 0 }

  /// Runs `body` in a transaction: committed when it returns, rolled back when it throws. In an open transaction it is
  /// a part of that one, and only the part is undone when it throws.
  public func transaction<Value>(_ body: () throws -> Value) throws -> Value {
    if isInTransaction { return try part(body) }
    try begin()
    do {
      let value = try body()
      try commit()
      return value
    } catch {
      rollBack()
      throw error
    }
  }

  private func begin() throws(InstarError) {
    try run("BEGIN IMMEDIATE")
    // Keep the files of statements outside of transactions.
    externalValues.keepMade()
    // From here to the end of the transaction nobody else commits.
    if Self.dataVersion(of: connection) != dataVersion { hasMetCommitsOfOthers = true }
  }

  private func commit() throws(InstarError) {
    try run("COMMIT")
    externalValues.keepMade()
    dataVersion = Self.dataVersion(of: connection)
  }

  private func rollBack() {
    // The failed statement may have ended the transaction already (disk full, I/O error), so a failure here means
    // nothing.
    try? run("ROLLBACK")
    externalValues.removeMade()
  }

  private func part<Value>(_ body: () throws -> Value) throws -> Value {
    let files = externalValues.madeCount
    try run("SAVEPOINT part")
    do {
      let value = try body()
      try run("RELEASE part")
      return value
    } catch {
      // As in `rollBack()`: the whole transaction may have ended.
      try? run("ROLLBACK TO part")
      try? run("RELEASE part")
      externalValues.removeMade(after: files)
      throw error
    }
  }

  /// Runs one statement, and if it fails removes the files with large values that it made.
  package func removingFilesAfterErrors<Value>(_ body: () throws -> Value) throws -> Value {
    let files = externalValues.madeCount
    do {
      return try body()
    } catch {
      externalValues.removeMade(after: files)
      throw error
    }
  }

  /// Begins a transaction on a clone that stays open after this call, until `commitLong()` or `rollBackLong()`.
  ///
  /// The rollback journal of a large store is a file. One in memory grows with the number of changed rows, up to the
  /// size of the store.
  package func beginLong() throws(InstarError) {
    let bytes = try (integer("PRAGMA page_count") ?? 0) * (integer("PRAGMA page_size") ?? 0)
    if bytes > Self.largestJournalInMemory { try run("PRAGMA journal_mode = TRUNCATE") }
    do throws(InstarError) {
      try begin()
    } catch {
      endLong()
      throw error
    }
  }

  /// A quarter of the least memory that a worker may have: the journal of a part of the transaction may take as much
  /// again.
  private static let largestJournalInMemory: Int64 = 64 << 20

  /// - Throws: `sqlFailed`. Everything since `beginLong()` is then undone.
  package func commitLong() throws(InstarError) {
    defer { endLong() }
    do throws(InstarError) {
      try commit()
    } catch {
      rollBack()
      throw error
    }
  }

  /// Undoes everything since `beginLong()`.
  package func rollBackLong() {
    rollBack()
    endLong()
  }

  private func endLong() {
    // If it fails, the journal stays a file, which works too.
    try? run("PRAGMA journal_mode = MEMORY")
    // SQLite leaves the empty file behind in exclusive locking mode.
    if let name = sqlite3_db_filename(connection, "main"),
      let journal = sqlite3_filename_journal(name),
      journal.pointee != 0
    {
      unlink(journal)
    }
  }
}
