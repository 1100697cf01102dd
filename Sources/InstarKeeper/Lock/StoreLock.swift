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
  private(set) var usesLog: Bool
  private let file: StoreFile
  private let journalMode: String
  private let replicator: Replicator?
  /// The first connection. Its `data_version` shows commits of others.
  private let observer: DatabaseQueue
  /// SQLite's descriptor of the store when it was opened.
  private let firstDescriptor: Int32
  /// The same as `observer` where the store has a rollback journal.
  private var writer: DatabaseQueue
  /// `PRAGMA data_version` of the content that was copied.
  private var dataVersion = 0
  /// Whether the lock is taken.
  private var isHeld = false
  /// The connection that reads. While `observer` has a write transaction, SQLite's backup API does not read through it.
  private var reader: DatabaseQueue { isHeld ? writer : observer }
  private let busyTimeout: Double
  /// Whether there was a log with content before the lock, which stays unless a cutover writes.
  private let keepsLog: Bool
  /// Whether the store left its log for an exchange, and must get it back. That writes the file's header.
  private(set) var hasLeftLog = false
  /// Whether a cutover has begun to write. Where it failed, only a new connection can read which content the store has:
  /// these connections do not know of a commit whose last step failed.
  private(set) var mayHaveWritten = false
  /// The store's schema under the lock; `nil` once a transaction may change it.
  private var lockedSchema: UnchangedSchema? = UnchangedSchema()
  /// Whether the cutover has reached its commit.
  private(set) var mayHaveCommitted = false
  private var isReleased = false

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

  private static func hasLog(_ path: String) -> Bool {
    var status = stat()
    return lstat(path + "-wal", &status) == 0 && status.st_size > 0
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

  private static func open(
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
    var status = stat()
    guard usesLog, lstat(path, &status) != 0 || FileIdentity(status) != file.state.identity,
      lstat(path + "-wal", &status) == 0, status.st_size == 0
    else { return [] }
    // A file that cannot be proven to be this process's own may be an app's: it stays.
    return [path + "-wal", path + "-shm"].filter { name in
      lstat(name, &status) == 0
        && (try? Self.descriptor(of: FileIdentity(status))).flatMap(\.self) != nil
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

  /// Whether the store has the content that a probe found in its file. Under the lock or in a snapshot.
  ///
  /// With a rollback journal whoever takes SQLite's lock and commits increments the count of changes in the header, by
  /// which SQLite itself knows whether its pages are still valid. `false` where that is not known: the content is in a
  /// log, or the probe found a journal to roll back.
  func hasContent(of probed: StoreFile) throws -> Bool {
    guard !usesLog, !probed.usesWriteAheadLog, probed.log == nil, !probed.hasJournal else {
      return false
    }
    return try descriptor().flatMap(StoreFile.State.init(of:)) == probed.state
  }

  /// Copies the store into an empty file, which has a rollback journal then. Under the lock or in a snapshot.
  ///
  /// - Returns: The number of its pages.
  @discardableResult
  func copy(to target: String) throws -> Int64 {
    let (pages, pageSize) = try read { db in
      (
        Int64(try db.integer("PRAGMA page_count") ?? 0),
        Int64(try db.integer("PRAGMA page_size") ?? 0)
      )
    }
    if isWholeFile, let descriptor = try descriptor() {
      try FileCopy.copy(descriptor, bytes: pages * pageSize, to: target)
    } else {
      try copyPages(to: target)
    }
    if pages > 0 { try FileCopy.useRollbackJournal(target) }
    return pages
  }

  /// Whether the file has all pages: it has no log, and nobody writes one meanwhile.
  private var isWholeFile: Bool { !usesLog || isHeld && !Self.hasLog(path) }

  /// The locked store as another thread may read it until the cutover. The file itself must not be opened: to close it
  /// would drop SQLite's locks.
  struct LockedContent: Sendable {
    fileprivate let connection: DatabaseQueue
    fileprivate let schema: UnchangedSchema
    /// SQLite's own, which must not be closed.
    let descriptor: Int32

    func read<T>(_ body: (Database) throws -> T) throws -> T {
      try connection.inDatabase { db in try schema.use(db) { try body(db) } }
    }
  }

  /// The store's content, which is all in its file; `nil` where others may write, or where a log has a part of it.
  func lockedContent() throws -> LockedContent? {
    guard isHeld, isWholeFile, let lockedSchema, let descriptor = try descriptor() else {
      return nil
    }
    return LockedContent(connection: reader, schema: lockedSchema, descriptor: descriptor)
  }

  private func copyPages(to target: String) throws {
    try GuardedConnection.use(target, access: .readWrite) { target in
      // A private file, which is synchronized once, when it is complete.
      try target.runWithoutRows("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
      try reader.inDatabase { source in
        let copy = try PageCopy(from: source, to: target)
        try copy.finish()
      }
    }
  }

  /// Replaces the store's content with the clone's in one transaction.
  ///
  /// - Precondition: The lock is held.
  /// - Returns: `false` when another process wrote to the store after it was copied; the store is then as that process
  ///   left it.
  /// - Throws: `storeChanged` or `unsafePath` where the file was replaced or linked before the commit, which then does
  ///   not happen; else the database's error. The store is unchanged unless `mayHaveWritten` is set.
  func replaceContents(with clone: Clone) throws -> Bool {
    try requireSamePath()
    // Nobody writes the clone any more.
    return try clone.read { source in
      try writer.inDatabase { target in
        try letWriterTakeLock()
        let copy = try PageCopy(from: source, to: target)
        // The first page takes the write lock; nobody else can write from here on.
        try copy.copyFirstPage()
        guard try hasCopiedContent() else {
          copy.abandon()
          return false
        }
        try beginWriting(target)
        try copy.copyAllButLastPage()
        // The last moment at which SQLite can roll back.
        do {
          try requireSamePath()
        } catch {
          copy.abandon()
          throw error
        }
        mayHaveCommitted = true
        try copy.finish()
        skipLastSync(target)
        return true
      }
    }
  }

  /// How a change in the store itself ended.
  enum ChangeResult {
    case done
    /// Another process wrote to the store after it was copied. The store is as that process left it.
    case otherContent
    /// The change made something else of the store than of the clone. SQLite has rolled it back.
    case otherResult
  }

  /// Returns the transaction that `beginChange` begins.
  ///
  /// - Precondition: The lock is held.
  func transaction(making statements: [[String]]) -> StoreTransaction {
    StoreTransaction(of: writer, making: statements)
  }

  /// Begins the transaction in which the store is changed. Releasing the lock rolls it back.
  ///
  /// - Precondition: The lock is held, and the store was copied under it. If the result is `false`, it may not be held
  ///   any more.
  /// - Returns: `false` when another process wrote to the store after it was copied; the store is then as that process
  ///   left it.
  /// - Throws: `missingStore`, `storeChanged` or `unsafePath` where the file was removed, replaced or linked; the
  ///   database's error. The store is unchanged.
  func beginChange() throws -> Bool {
    try requireSamePath()
    return try writer.inDatabase { db in
      // Else SQLite may write changed pages to the store before the commit.
      try db.runWithoutRows("PRAGMA cache_spill = OFF")
      lockedSchema = nil
      return try begin(db)
    }
  }

  /// Commits the transaction.
  ///
  /// - Throws: As `replaceContents`.
  func commitChange() throws {
    // If this throws, nothing was written, so the backup can be removed.
    try requireSamePath()
    try writer.inDatabase { db in
      try beginWriting(db)
      try commit(db)
    }
  }

  /// - Returns: `false` when another process wrote to the store after it was copied. Then no transaction is open.
  private func begin(_ db: Database) throws -> Bool {
    db.forbidOtherDatabases()
    try letWriterTakeLock()
    try db.runWithoutRows("BEGIN IMMEDIATE")
    if try rollingBack(db, { try hasCopiedContent() }) { return true }
    try db.runWithoutRows("ROLLBACK")
    return false
  }

  private func commit(_ db: Database) throws {
    // The last moment at which SQLite can roll back.
    try rollingBack(db) { try requireSamePath() }
    mayHaveCommitted = true
    try db.runWithoutRows("COMMIT")
    skipLastSync(db)
  }

  /// Calls `body`, and rolls the transaction back if it throws.
  private func rollingBack<T>(_ db: Database, _ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch {
      // SQLite rolls back when the connection is closed, if this fails.
      try? db.runWithoutRows("ROLLBACK")
      throw error
    }
  }

  /// The journal has ended on disk: SQLite need not synchronize it once more to remove it. If this fails, it does.
  private func skipLastSync(_ db: Database) {
    if !usesLog { try? db.runWithoutRows("PRAGMA synchronous = OFF") }
  }

  /// Makes the change that made the clone in the store itself, in one transaction.
  ///
  /// - Precondition: The lock is held. If the result is not `done`, it may not be held any more.
  /// - Parameter change: Makes the change in the open transaction of the store, and returns whether the store is as the
  ///   clone then.
  /// - Throws: As `replaceContents`.
  func makeChange(
    like clone: Clone, by change: (_ store: Database, _ clone: Database) throws -> Bool
  ) throws -> ChangeResult {
    try requireSamePath()
    return try clone.read { source in
      try writer.inDatabase { target in
        guard try begin(target) else { return .otherContent }
        try beginWriting(target)
        guard try rollingBack(target, { try change(target, source) }) else {
          try target.runWithoutRows("ROLLBACK")
          return .otherResult
        }
        try commit(target)
        return .done
      }
    }
  }

  /// Ends the write transaction of `observer`, so that `writer` can begin one; the kernel does not see the lock free.
  private func letWriterTakeLock() throws {
    if usesLog { try observer.inDatabase { try GuardedConnection.commitKeepingWriteLock($0) } }
  }

  /// Whether the store still has the content that was copied. With a log another process may have come in between.
  ///
  /// - Precondition: `writer` has the lock.
  private func hasCopiedContent() throws -> Bool {
    try !usesLog || observer.inDatabase { try Self.dataVersion($0) } == dataVersion
  }

  private func beginWriting(_ target: Database) throws {
    mayHaveWritten = true
    lockedSchema = nil
    if replicator != nil { return }
    try GuardedConnection.keepLogOnClose(false, target)
    if usesLog {
      try observer.inDatabase { try GuardedConnection.keepLogOnClose(false, $0) }
    }
  }

  /// Copies the log into the locked file and empties it, so that no file that took its name is opened with this log.
  /// Without effect while another process reads the log. A replicator has lost the store then.
  func emptyLog() {
    guard usesLog else { return }
    // If this fails, the log keeps its frames and stays valid: SQLite reads them from there.
    try? writer.inDatabase { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
  }

  /// Whether the path still names the locked file.
  var hasPath: Bool { isFile(at: path) }

  var inode: UInt64 { file.state.identity.inode }

  /// Whether a path names the locked file.
  func isFile(at path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && FileIdentity(status) == file.state.identity
  }

  /// - Parameter time: When the path still named the file, in words.
  /// - Throws: `missingStore` or `storeChanged` where the path no longer names the locked file.
  func requirePath(_ what: String, since time: String) throws(InstarError) {
    if hasPath { return }
    var status = stat()
    if lstat(path, &status) != 0, errno == ENOENT {
      throw InstarError(
        .missingStore, what, cause: "another process removed or renamed the file \(time)",
        state: "missing", next: "stop the process that removes '\(path)'")
    }
    throw InstarError(
      .storeChanged, what, cause: "another process replaced the file \(time)",
      next: "stop the process that replaces '\(path)', then \(CommandText.repetition)")
  }

  /// The path must still name the locked file, and no other path may.
  private func requireSamePath() throws {
    try requirePath("cannot write the store", since: "after it was copied")
    try StoreTrust.requireSingleLink(path)
  }

  /// Checks that SQLite opened the inspected file: SQLite opens by name, and the file may have been replaced after the
  /// inspection. Reads the status of this process's descriptors, and opens nothing.
  ///
  /// - Returns: The descriptor.
  private static func requireOpen(_ file: StoreFile) throws -> Int32 {
    if let descriptor = try descriptor(of: file.state.identity) { return descriptor }
    throw InstarError(
      .storeChanged, "cannot lock the store",
      cause: "the file was replaced after it was inspected", next: CommandText.repetition)
  }

  /// SQLite's descriptor of the store; `nil` where this process does not have it open. It must not be closed.
  ///
  /// Tries the descriptor that was found first, because listing all descriptors takes long.
  private func descriptor() throws -> Int32? {
    if Self.isDescriptor(firstDescriptor, of: file.state.identity) { return firstDescriptor }
    return try Self.descriptor(of: file.state.identity)
  }

  /// Returns SQLite's descriptor of a file; `nil` where this process does not have it open. It must not be closed.
  private static func descriptor(of file: FileIdentity) throws -> Int32? {
    try descriptors(of: file).first
  }

  /// This process's descriptors of a file.
  private static func descriptors(of file: FileIdentity) throws -> [Int32] {
    try FolderNames.all(in: "/proc/self/fd").compactMap(Int32.init)
      .filter { isDescriptor($0, of: file) }
  }

  private static func isDescriptor(_ descriptor: Int32, of file: FileIdentity) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && FileIdentity(status) == file
  }

  var hasReplicator: Bool { replicator != nil }

  private static func journalMode(_ db: Database) throws -> String {
    try db.text("PRAGMA journal_mode") ?? ""
  }

  /// Changes when another connection has committed.
  private static func dataVersion(_ db: Database) throws -> Int {
    try db.integer("PRAGMA data_version") ?? 0
  }
}

// MARK: - For a cutover by exchange

extension StoreLock {
  /// How a store left its log.
  enum LogExit {
    /// The store has a rollback journal and nobody else can use it, as if it had had that journal from the beginning.
    case left
    /// Another connection has the store open. The lock is as before.
    case inUse
    /// Another process wrote in between, or locked the store. The lock no longer protects anything.
    case lost
  }

  /// Takes the store out of write-ahead-log mode. Does nothing if the store has a rollback journal.
  ///
  /// Meanwhile this process keeps the log's write lock until it has SQLite's exclusive lock. It must release the write
  /// lock once, because only then SQLite closes the descriptor of `writer`. If another process wrote in between, the
  /// count of changes in the file's header has changed.
  func leaveLog() throws -> LogExit {
    guard usesLog else { return .left }
    try writer.close()
    let hasLeft = try observer.inDatabase { db in
      try GuardedConnection.commitKeepingWriteLock(db)
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA locking_mode = EXCLUSIVE")
      try GuardedConnection.keepLogOnClose(false, db)
      // SQLite leaves the log only where no other connection uses it, and does not wait. Where the disk fails it says
      // that it has left, and has not: only the file knows.
      let mode = try? String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE")
      if mode == "delete", try !LeasedFile.namesLog(self.header()) { return true }
      // The lock is taken over, as by a cutover's connection: `data_version` tells if another process wrote.
      try db.execute(sql: "PRAGMA locking_mode = NORMAL; BEGIN IMMEDIATE")
      try GuardedConnection.keepLogOnClose(keepsLog, db)
      return false
    }
    guard hasLeft else {
      removeClearedJournal()
      writer = try Self.open(path, busyTimeout, keepsLog: keepsLog)
      try writer.inDatabase { try $0.runWithoutRows("PRAGMA synchronous = FULL") }
      return .inUse
    }
    usesLog = false
    hasLeftLog = true
    writer = observer
    let header = try header()
    do {
      try observer.inDatabase { db in
        // The lock ends with the first transaction in this mode.
        try db.execute(sql: "PRAGMA locking_mode = NORMAL")
        _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema")
        try db.execute(sql: "BEGIN EXCLUSIVE; PRAGMA locking_mode = EXCLUSIVE; COMMIT")
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
      return .lost
    }
    return try self.header() == header ? .left : .lost
  }

  /// Removes the journal that SQLite leaves where the disk failed while the store left its log. SQLite has rolled back
  /// and cleared the journal's header, and nobody uses a rollback journal beside a log.
  private func removeClearedJournal() {
    let journal = path + "-journal"
    let descriptor = Foundation.open(journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var mark: UInt64 = 1
    guard pread(descriptor, &mark, 8, 0) == 8, mark == 0, hasPath else { return }
    // If it stays, SQLite ignores it.
    unlink(journal)
  }

  /// SQLite's own descriptor of the store; `nil` where this process has none, or several.
  ///
  /// - Important: Not to be closed: that would drop SQLite's locks.
  func soleDescriptor() throws -> Int32? {
    let found = try Self.descriptors(of: file.state.identity)
    return found.count == 1 ? found.first : nil
  }

  /// The first bytes of the file, with SQLite's count of changes.
  private func header() throws -> [UInt8] {
    guard let found = try descriptor(),
      let header = LeasedFile.header(of: found)
    else { throw RunFiles.failure("cannot read '\(path)'", errno) }
    return header
  }

  /// Closes the connections. From here on only the lease on `descriptor`, SQLite's own, keeps others from the store.
  ///
  /// - Returns: The leased file; `nil` where it cannot be kept open, and then nothing is closed.
  func handOver(_ descriptor: Int32) -> LeasedFile? {
    guard let leased = LeasedFile(duplicating: descriptor) else { return nil }
    isReleased = true
    // Closing a connection releases its locks whatever it returns.
    try? observer.close()
    return leased
  }
}
