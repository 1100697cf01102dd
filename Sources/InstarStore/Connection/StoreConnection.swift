public import GRDB
internal import GRDBSQLite
public import InstarSchema
import Synchronization

/// A connection to a store through which models are read and written.
///
/// One thread at a time: `perform` runs its closure on the connection's serial queue and waits for it. Statements are
/// prepared once and kept.
public final class StoreConnection: Sendable {
  private let queue: DatabaseQueue
  private let log: SQLLog?
  private let session = Mutex<SQLSession?>(nil)
  /// What the contexts on this connection saved.
  package let saves = SaveLog()
  /// The store's large values that lie in files.
  package let externalValues: ExternalValues
  private let commitsOfOthers = Atomic<Int>(0)

  /// Grows when a statement finds that other connections, in this process or another, have committed since the one before.
  package var commitCountOfOthers: Int { commitsOfOthers.load(ordering: .acquiring) }

  /// How a connection writes.
  @frozen
  public enum Durability: Sendable {
    /// As an app writes its own store: each commit is synchronized.
    case durable
    /// A private clone: no file is synchronized, and the rollback journal is in memory, so that a failed closure can
    /// still be undone. The one who made the clone makes it durable at the end.
    case clone
  }

  /// Opens the database file, and makes it where there is none.
  ///
  /// - Parameters:
  ///   - externalFolder: Where files with large values are besides the store's own folder for them: a clone has those of
  ///     the store that it was made of.
  ///   - log: shows the statements.
  /// - Throws: `sqlFailed` or `busyStore`; the file is untouched.
  public init(
    path: String, isReadOnly: Bool = false, durability: Durability, externalFolder: String? = nil,
    log: SQLLog? = nil
  ) throws(InstarError) {
    self.log = log
    externalValues = ExternalValues(
      folder: ExternalValues.folder(ofStore: path),
      otherFolders: [externalFolder].compactMap(\.self), isDurable: durability == .durable)
    var configuration = Self.configuration(log: log, externalValues)
    configuration.readonly = isReadOnly
    configuration.busyMode = .timeout(5)
    configuration.prepareDatabase { db in
      guard !isReadOnly else { return }
      switch durability {
      case .durable:
        // Only a new store is given the properties of Core Data's (section 1); one that exists keeps its own.
        guard try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_schema LIMIT 1") == nil else {
          return
        }
        try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
      case .clone:
        try db.execute(
          sql: """
            PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF;
            PRAGMA locking_mode = EXCLUSIVE
            """)
      }
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw InstarError(error, what: "cannot open '\(path)'", store: path)
    }
  }

  /// Opens a database that lives in memory, as long as this connection.
  public init(inMemory log: SQLLog?) throws(InstarError) {
    self.log = log
    externalValues = ExternalValues(folder: nil)
    do {
      queue = try DatabaseQueue(configuration: Self.configuration(log: log, externalValues))
    } catch {
      throw InstarError(error, what: "cannot make a store in memory")
    }
  }

  private static func configuration(
    log: SQLLog?, _ externalValues: ExternalValues
  ) -> Configuration {
    var configuration = Configuration()
    // Core Data's stores have no foreign keys (section 1).
    configuration.foreignKeysEnabled = false
    configuration.prepareDatabase { db in
      // The triggers of derived attributes tell Core Data what they wrote; here nobody has to know.
      for name in [
        "NSCoreDataDATriggerUpdatedAffectedObjectValue",
        "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
      ] {
        db.add(function: DatabaseFunction(name) { _ in nil })
      }
      externalValues.register(db)
    }
    if let log {
      configuration.prepareDatabase { db in
        if let connection = db.sqliteConnection { log.attach(to: connection) }
      }
    }
    return configuration
  }

  /// Runs `body` on the connection, and nothing else meanwhile. Not to be called from inside `body`.
  public func perform<Value>(_ body: (SQLSession) throws -> Value) throws -> Value {
    try queue.inDatabase { db in
      let session = try session.withLock { kept in
        if let kept { return kept }
        let made = try SQLSession(db, externalValues)
        kept = made
        return made
      }
      defer {
        log?.finish(session)
        if session.noteCommitsOfOthers() { commitsOfOthers.add(1, ordering: .releasing) }
      }
      return try body(session)
    }
  }

  /// Closes the file; with the last connection to it the write-ahead log is checkpointed and removed.
  public func close() throws(InstarError) {
    session.withLock { $0 = nil }
    do {
      try queue.close()
    } catch {
      throw InstarError(error, what: "cannot close the store")
    }
  }
}

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
  fileprivate func noteCommitsOfOthers() -> Bool {
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
