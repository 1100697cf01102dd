internal import CDatabase
internal import GRDB
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
  /// The saves of the contexts on this connection.
  package let saves = SaveLog()
  /// The store's large values in files.
  package let externalValues: ExternalValues
  private let commitsOfOthers = Atomic<Int>(0)
  /// For the whole process, once: SQLite takes a quota that is used up for a disk that fails, and a disk that fails for
  /// a damaged file.
  private static let distinguishesErrors: Void = instar_distinguish_errors()

  /// Increases when a statement sees that other connections, in this process or another, have committed since the
  /// previous one.
  package var commitCountOfOthers: Int { commitsOfOthers.load(ordering: .acquiring) }

  /// How a connection writes.
  @frozen
  public enum Durability: Sendable {
    /// Each commit is synchronized, as an app does it.
    case durable
    /// For a private clone: no file is synchronized, and the rollback journal is in memory, so that a failed closure
    /// can still be undone. Whoever created the clone synchronizes it at the end.
    case clone
  }

  /// Opens the database file, and creates it where it does not exist.
  ///
  /// - Parameters:
  ///   - externalFolder: A further folder with files of large values: a clone uses those of its original.
  ///   - log: Logs the statements.
  /// - Throws: `sqlFailed` or `busyStore`; the file is untouched.
  public convenience init(
    path: String, isReadOnly: Bool = false, durability: Durability, externalFolder: String? = nil,
    log: SQLLog? = nil
  ) throws(InstarError) {
    try self.init(
      path, isReadOnly: isReadOnly, durability: durability,
      ExternalValues(
        folder: ExternalValues.folder(ofStore: path),
        otherFolders: [externalFolder].compactMap(\.self), isDurable: durability == .durable),
      log)
  }

  private init(
    _ path: String, isReadOnly: Bool, durability: Durability, _ externalValues: ExternalValues,
    _ log: SQLLog?
  ) throws(InstarError) {
    _ = Self.distinguishesErrors
    self.log = log
    self.externalValues = externalValues
    var configuration = Self.configuration(log: log, externalValues)
    configuration.readonly = isReadOnly
    // The save of a stage may stay open from one call to the next.
    configuration.allowsUnsafeTransactions = durability == .clone
    configuration.busyMode = .timeout(5)
    configuration.prepareDatabase { db in
      if durability == .clone { instar_budget_observe(db.sqliteConnection) }
      guard !isReadOnly else { return }
      switch durability {
      case .durable:
        // Only a new store gets the properties of a Core Data store (section 1); an existing one keeps its own.
        guard try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_schema LIMIT 1") == nil else {
          return
        }
        try db.runWithoutRows("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
      case .clone:
        try db.runWithoutRows(
          """
          PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF;
          PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON
          """)
      }
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw InstarError(error, what: "cannot open '\(path)'", store: path)
    }
  }

  /// Opens an in-memory database, which exists as long as this connection.
  public init(inMemory log: SQLLog?) throws(InstarError) {
    self.log = log
    externalValues = ExternalValues(folder: nil)
    var configuration = Self.configuration(log: log, externalValues)
    configuration.allowsUnsafeTransactions = true
    // A keeper copies the schema of a hostile store into one.
    configuration.prepareDatabase { db in instar_budget_observe(db.sqliteConnection) }
    do {
      queue = try DatabaseQueue(configuration: configuration)
    } catch {
      throw InstarError(error, what: "cannot create an in-memory store")
    }
  }

  private static func configuration(
    log: SQLLog?, _ externalValues: ExternalValues
  ) -> Configuration {
    var configuration = Configuration()
    // Core Data's stores have no foreign keys (section 1).
    configuration.foreignKeysEnabled = false
    // As the app's SQLite does, unless it is told otherwise: its schema may have such literals.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.prepareDatabase { db in
      db.removeAuthorizer()
      // The triggers of derived attributes call these to inform Core Data; Instar does not need it.
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

  /// Runs `body` on the connection, exclusively. Must not be called from inside `body`.
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

  /// Copies the whole database into another, empty one.
  ///
  /// - Throws: `sqlFailed` or `noSpace`; the other one is then in any state.
  package func copy(to other: StoreConnection) throws(InstarError) {
    do {
      try queue.backup(to: other.queue)
    } catch {
      throw InstarError(error, what: "cannot copy the clone")
    }
  }

  /// Closes the file. SQLite checkpoints and removes the write-ahead log with the last connection.
  public func close() throws(InstarError) {
    session.withLock { $0 = nil }
    do {
      try queue.close()
    } catch {
      throw InstarError(error, what: "cannot close the store")
    }
  }
}
