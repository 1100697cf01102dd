internal import Foundation
internal import GRDB
internal import InstarSchema
internal import InstarStore

// A cutover by exchange: the store leaves its log, and a lease takes the place of the lock.

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
    let journal = SideFile.journal.path(of: path)
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
