internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// Keeps a cutover from overwriting a commit that the clone lacks, by SQLite's own locks.
///
/// The locks are the kernel's and end with this process. The scope decides when the lock is taken:
///
/// - **The run.** The lock is taken before the store is copied and kept until after the cutover. No other process can
///   write meanwhile.
/// - **The cutover.** The store is copied in one read transaction of `observer`. It keeps other processes from writing
///   only in rollback-journal mode, and only while the copy is made. Then no lock is held, and others write. `take`
///   takes the lock before the cutover.
///
/// How the lock is held depends on the store's journal mode:
///
/// - **Rollback journal.** One connection in exclusive locking mode has made an exclusive transaction, so it keeps the
///   lock until it is closed. Other processes get `SQLITE_BUSY`, or wait.
/// - **Write-ahead log.** `observer` keeps a write transaction open, in which it writes nothing: other writers wait,
///   readers continue. SQLite's backup API cannot write through a connection that has a transaction, and only an idle
///   connection sees whether others have written. So before the store is changed `observer` ends its transaction, and
///   `writer`, a second connection, takes the lock over; the kernel never sees it free. If another process wrote in
///   between all the same, `data_version` of `observer` has changed. Then the transaction of `writer` is rolled back.
///
/// A log with content does not change unless a cutover begins to write: a store that was only read or refused keeps
/// every byte. The log of a store with a replicator always stays, and is never checkpointed.
///
/// Before a cutover by exchange the store leaves write-ahead-log mode (`leaveLog`): from then on the lock is that of a
/// rollback journal, and `release` restores the mode. Then the cutover takes a lease and closes the connections
/// (`handOver`).
///
/// Invariants:
/// - A cutover never overwrites a commit that the clone lacks. `PRAGMA data_version` of `observer`, which is open from
///   before the copy until after the cutover, changes with each commit of another connection, in both journal modes.
///   It is read in the transaction in which the store is copied, and again under the lock. If both are equal, there
///   was no such commit, and until the cutover nobody can make one. In write-ahead-log mode it is compared once more
///   when `writer` has the lock.
/// - While a `StoreLock` exists, this process opens and closes no other descriptor of the store or its side files: that
///   would drop POSIX locks.
/// - The connections have the inspected file open, not another file of its name. The file has one name only, because
///   SQLite's journals protect a file under one name.
final class StoreLock {
  /// The period for which the lock is held.
  enum Scope {
    /// From before the store is copied until after the cutover.
    case run
    /// From right before the cutover until after it: others write while the worker works.
    case cutover
    /// Never: the store is only copied. A store with a rollback journal is opened for reading alone, so that SQLite
    /// rolls back no interrupted transaction in it.
    case never
  }

  let path: String
  /// Whether the store is in write-ahead-log mode.
  var usesLog: Bool
  /// Whether the store left its log for an exchange, and must get it back. That writes the file's header.
  var hasLeftLog = false
  /// Whether a cutover has begun to write. Where it failed, only a new connection can read which content the store has:
  /// these connections do not know of a commit whose last step failed.
  var mayHaveWritten = false
  /// Whether the cutover has reached its commit.
  var mayHaveCommitted = false
  var hasReplicator: Bool { replicator != nil }

  // MARK: For extensions of the lock alone

  let file: StoreFile
  let replicator: Replicator?
  /// The first connection. Its `data_version` shows commits of others.
  let observer: DatabaseQueue
  /// The same as `observer` where the store has a rollback journal.
  var writer: DatabaseQueue
  /// The connection that reads. While `observer` has a write transaction, SQLite's backup API does not read through it.
  var reader: DatabaseQueue { isHeld ? writer : observer }
  /// SQLite's descriptor of the store when it was opened.
  let firstDescriptor: Int32
  let busyTimeout: Double
  /// Whether there was a log with content before the lock, which stays unless a cutover writes.
  let keepsLog: Bool
  /// The store's schema under the lock; `nil` once a transaction may change it.
  var lockedSchema: UnchangedSchema? = UnchangedSchema()
  /// Whether the lock is taken.
  private(set) var isHeld = false
  var isReleased = false

  private let journalMode: String
  /// `PRAGMA data_version` of the content that was copied.
  private var dataVersion = 0

  /// Opens the store. For the scope of the run, waits for the lock and takes it.
  ///
  /// - Parameter busyTimeout: Seconds to wait for each lock.
  /// - Throws: `busyStore`; `storeChanged` when the file was replaced; `unsafePath` when it has several names;
  ///   `unsupported` when it has a replicator and no log.
  init(_ file: StoreFile, busyTimeout: Double, scope: Scope = .run) throws {
    self.file = file
    self.busyTimeout = busyTimeout
    path = file.path
    // SQLite makes an empty log, and removes it again, where there is none.
    keepsLog = Self.hasLog(path)
    let onlyReads = scope == .never && !file.usesWriteAheadLog
    do {
      observer = try Self.open(path, busyTimeout, onlyReads: onlyReads, keepsLog: keepsLog)
    } catch {
      throw onlyReads ? Self.explained(error) : error
    }
    do {
      firstDescriptor = try Self.requireOpen(file)
      try StoreTrust.requireSingleLink(path)
      (journalMode, replicator) = try observer.inDatabase {
        (try Self.journalMode($0), try Replicator(of: file.path, $0))
      }
      usesLog = journalMode == "wal"
      try replicator?.requireLog(usesLog, of: path)
      writer = try usesLog ? Self.open(path, busyTimeout, keepsLog: keepsLog) : observer
    } catch {
      try? observer.close()
      throw onlyReads ? Self.explained(error) : error
    }
    do {
      try writer.inDatabase { try $0.runWithoutRows("PRAGMA synchronous = FULL") }
      if replicator != nil {
        // SQLite checkpoints a long log after a commit, unless it is told not to.
        for queue in [observer, writer] {
          try queue.inDatabase { try $0.runWithoutRows("PRAGMA wal_autocheckpoint = 0") }
        }
      }
      if scope == .run { _ = try acquire(expecting: nil) }
    } catch {
      release()
      throw error
    }
  }

  /// Takes the lock, unless it is held.
  ///
  /// - Returns: `false` when another process has written to the store since it was copied; the lock is not held then.
  /// - Throws: `busyStore` when another process does not release its lock in time.
  func take() throws -> Bool {
    if isHeld { return true }
    return try acquire(expecting: dataVersion)
  }

  /// - Parameter expected: The version of the data that was copied; `nil` before the copy.
  /// - Returns: `false` when the data has another version; the lock is not held then.
  private func acquire(expecting expected: Int?) throws -> Bool {
    isHeld = try observer.inDatabase { db in
      try db.runWithoutRows(usesLog ? "BEGIN IMMEDIATE" : "BEGIN EXCLUSIVE")
      let version = try Self.dataVersion(db)
      if let expected, expected != version {
        try db.runWithoutRows("ROLLBACK")
        return false
      }
      dataVersion = version
      if usesLog { return true }
      guard try Self.journalMode(db) == journalMode else {
        throw InstarError(
          .busyStore, "cannot lock the store",
          cause: "another process changed the store's journal mode",
          next: CommandText.repetition)
      }
      // The mode comes second: with it, each failed attempt would keep its shared lock, and the app that is waited
      // for could not commit.
      try db.runWithoutRows("PRAGMA locking_mode = EXCLUSIVE; COMMIT")
      return true
    }
    return isHeld
  }

  /// Calls `body`, which reads and copies the store: all of one version, the one that a cutover may replace.
  func inSnapshot<T>(_ body: () throws -> T) throws -> T {
    if isHeld { return try body() }
    dataVersion = try observer.inDatabase { db in
      try db.runWithoutRows("BEGIN")
      // The first statement takes the shared lock.
      return try Self.dataVersion(db)
    }
    // Nothing was written: ending it can only fail for a connection that is closed.
    defer { observer.inDatabase { try? $0.runWithoutRows("COMMIT") } }
    return try body()
  }

  static func hasLog(_ path: String) -> Bool {
    stat(of: SideFile.log.path(of: path)).map { $0.st_size > 0 } ?? false
  }

  /// Explains why a connection without permission to write cannot read.
  private static func explained(_ error: any Error) -> any Error {
    guard let error = error as? DatabaseError,
      [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    else { return error }
    return InstarError(
      .busyStore, "cannot copy the store",
      cause: "a transaction was interrupted, and a rehearsal does not roll it back in the store",
      next: "open the store once with its app, which rolls the transaction back")
  }

  static func open(
    _ path: String, _ busyTimeout: Double, onlyReads: Bool = false, keepsLog: Bool
  ) throws -> DatabaseQueue {
    let queue = try GuardedConnection.open(
      path, access: onlyReads ? .readOnly : .readWrite, busyTimeout: busyTimeout,
      firesTriggers: false)
    try queue.inDatabase { try GuardedConnection.keepLogOnClose(keepsLog, $0) }
    return queue
  }

  /// Releases the lock. An open transaction is rolled back. May be called again.
  func release() {
    if isReleased { return }
    isReleased = true
    let strays = straySideFiles()
    defer { for file in strays { unlink(file) } }
    if replicator != nil, Self.hasLog(path) { keepLog(true) }
    // Closing a connection releases its locks whatever it returns.
    if usesLog {
      try? observer.inDatabase { db in
        if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
      }
      try? writer.close()
    }
    // If this fails, the store keeps a rollback journal, as recovery may leave it too. Its content is whole, and apps
    // that want a log ask for it.
    if hasLeftLog { try? observer.inDatabase { try $0.execute(sql: "PRAGMA journal_mode = WAL") } }
    try? observer.close()
  }

  /// The empty log and the shared memory of this process at a path that the store no longer has: SQLite leaves them
  /// there when the store was renamed. A log with content belongs to the app that wrote it.
  private func straySideFiles() -> [String] {
    let (log, index) = (SideFile.log.path(of: path), SideFile.index.path(of: path))
    guard usesLog, !hasPath, stat(of: log)?.st_size == 0 else { return [] }
    // A file that cannot be proven to be this process's own may be an app's: it stays.
    return [log, index].filter { name in
      guard let status = stat(of: name) else { return false }
      return (try? Self.descriptor(of: FileIdentity(status))).flatMap(\.self) != nil
    }
  }

  /// Sets whether the log stays when these connections are closed. SQLite refuses this for no open connection.
  private func keepLog(_ keeps: Bool) {
    for queue in [observer, writer] {
      queue.inDatabase { try? GuardedConnection.keepLogOnClose(keeps, $0) }
    }
  }

  /// Reads the store, under the lock or in a snapshot.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    try reader.inDatabase { db in
      guard isHeld, let lockedSchema else { return try body(db) }
      return try lockedSchema.use(db) { try body(db) }
    }
  }

  /// Ends the write transaction of `observer`, so that `writer` can begin one; the kernel does not see the lock free.
  func letWriterTakeLock() throws {
    if usesLog { try observer.inDatabase { try GuardedConnection.commitKeepingWriteLock($0) } }
  }

  /// Whether the store still has the content that was copied. With a log another process may have come in between.
  ///
  /// - Precondition: `writer` has the lock.
  func hasCopiedContent() throws -> Bool {
    try !usesLog || observer.inDatabase { try Self.dataVersion($0) } == dataVersion
  }

  private static func journalMode(_ db: Database) throws -> String {
    try db.text("PRAGMA journal_mode") ?? ""
  }

  /// Changes when another connection has committed.
  private static func dataVersion(_ db: Database) throws -> Int {
    try db.integer("PRAGMA data_version") ?? 0
  }
}
