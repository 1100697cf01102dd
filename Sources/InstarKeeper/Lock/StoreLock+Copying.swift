internal import GRDB
internal import InstarStore

// The content of the locked store, and its copies.

extension StoreLock {
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
}
