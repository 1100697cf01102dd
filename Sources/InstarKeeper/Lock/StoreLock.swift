internal import Foundation
internal import GRDB
internal import InstarSchema
internal import InstarStore

/// Keeps every other writer out of a store from before it is cloned until after it is written, by
/// SQLite's own locks.
///
/// The locks are the kernel's and die with this process. How they are held depends on the store's
/// journal:
///
/// - **Rollback journal.** One connection in exclusive locking mode that has had an exclusive
///   transaction: the lock stays until the connection is closed. Others get `SQLITE_BUSY`, or wait
///   as long as they care to.
/// - **Write-ahead log.** `holder` keeps a write transaction open, in which it writes nothing:
///   other writers wait, readers go on. SQLite's backup cannot write into a connection that has a
///   transaction, so to put back, `holder` ends its own and `writer`, a second connection, takes
///   the lock over for the backup; to the kernel it stays locked meanwhile. Should somebody have
///   written in between nevertheless, that is seen by `data_version` of `holder`, and then the
///   backup's transaction, which has written one page so far, is undone.
///
/// Invariants: no descriptor of the store or its side files is opened and closed in this process
/// while a `StoreLock` of it exists (that would drop POSIX locks); the connections have the file
/// that was inspected open, not another of its name.
final class StoreLock {
  let path: String
  let usesLog: Bool
  private let file: StoreFile
  private let holder: DatabaseQueue
  /// The same as `holder` where the store has a rollback journal.
  private let writer: DatabaseQueue
  private let dataVersion: Int

  /// Waits for the lock and takes it.
  ///
  /// - Throws: `busyStore`; `storeChanged` when another file has the store's name by now.
  init(_ file: StoreFile, busyTimeout: Double) throws {
    self.file = file
    path = file.path
    let holder = try GuardedConnection.open(
      path, access: .readWrite, busyTimeout: busyTimeout, firesTriggers: false)
    self.holder = holder
    do {
      try Self.requireOpen(file)
      let mode = try holder.inDatabase { try Self.journalMode($0) }
      usesLog = mode == "wal"
      if usesLog {
        dataVersion = try holder.inDatabase { db in
          try db.execute(sql: "BEGIN IMMEDIATE")
          return try Self.dataVersion(db)
        }
        writer = try GuardedConnection.open(
          path, access: .readWrite, busyTimeout: busyTimeout, firesTriggers: false)
      } else {
        dataVersion = 0
        writer = holder
        try holder.inDatabase { db in
          try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT")
          guard try Self.journalMode(db) == mode else {
            throw InstarError(
              .busyStore, "cannot lock the store",
              cause: "another process changed its journal mode",
              next: "try again")
          }
        }
      }
      try writer.inDatabase { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    } catch {
      try? holder.close()
      throw error
    }
  }

  /// Lets go. A transaction that is still open is undone.
  func release() {
    if usesLog {
      try? holder.inDatabase { db in
        if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
      }
      try? writer.close()
    }
    try? holder.close()
  }

  /// Reads the store under the lock.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    try writer.inDatabase(body)
  }

  /// Copies the store into an empty file, page by page.
  func copy(to target: String) throws {
    let destination = try GuardedConnection.open(target, access: .readWrite)
    defer { try? destination.close() }
    try destination.inDatabase { target in
      // A private file: it is synchronized once, when it is complete.
      try target.execute(sql: "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
      try writer.inDatabase { source in
        let copy = try PageCopy(from: source, to: target)
        try copy.finish()
      }
    }
  }

  /// Makes the store what the clone is, in one transaction.
  ///
  /// - Returns: `false` when another process wrote the store after it was cloned; it is then as
  ///   that process left it.
  /// - Throws: The database's error; the store is then as it was.
  func replaceContents(withClone clone: String) throws -> Bool {
    try requireSamePath()
    let source = try GuardedConnection.open(clone, access: .readOnly)
    defer { try? source.close() }
    return try source.inDatabase { source in
      try writer.inDatabase { target in
        if usesLog {
          try holder.inDatabase { try GuardedConnection.commitKeepingWriteLock($0) }
        }
        let copy = try PageCopy(from: source, to: target)
        // The first page brings the write lock; nobody can write from here on.
        try copy.copyFirstPage()
        if usesLog, try holder.inDatabase({ try Self.dataVersion($0) }) != dataVersion {
          copy.abandon()
          return false
        }
        try copy.finish()
        return true
      }
    }
  }

  /// The name must still lead to the file whose lock this is.
  private func requireSamePath() throws {
    var status = stat()
    guard lstat(path, &status) == 0, FileIdentity(status) == file.state.identity else {
      throw InstarError(
        .storeChanged, "cannot write the store",
        cause: "another file has taken its name since it was cloned", next: "try again")
    }
  }

  /// SQLite opened the file by its name, some time after it was inspected: one of this process's
  /// descriptors must be the inspected file. Looking at them opens nothing.
  private static func requireOpen(_ file: StoreFile) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      var status = stat()
      if stat("/proc/self/fd/" + name, &status) == 0, FileIdentity(status) == file.state.identity {
        return
      }
    }
    throw InstarError(
      .storeChanged, "cannot lock the store",
      cause: "another file has taken its name since it was inspected", next: "try again")
  }

  private static func journalMode(_ db: Database) throws -> String {
    try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? ""
  }

  /// Changes when another connection has committed.
  private static func dataVersion(_ db: Database) throws -> Int {
    try Int.fetchOne(db, sql: "PRAGMA data_version") ?? 0
  }
}
