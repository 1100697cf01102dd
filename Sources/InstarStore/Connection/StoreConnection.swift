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
