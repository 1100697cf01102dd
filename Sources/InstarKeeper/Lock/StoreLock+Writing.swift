internal import GRDB
internal import InstarStore

// The cutover: the store gets the content of its clone, or makes the change that made the clone.

extension StoreLock {
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
}
