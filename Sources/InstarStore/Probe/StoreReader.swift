internal import Foundation
public import GRDB
public import InstarSchema

/// Reads stores without changing a byte of them and without leaving a side file.
public enum StoreReader {
  /// How often a store that others write is read again before it is called busy.
  static let attempts = 3

  /// Opens the store for reading, calls `body`, and closes it again.
  ///
  /// How the store is opened depends on what lies beside it:
  /// - rollback mode, no log: under SQLite's own locks, which leave nothing behind;
  /// - a log that a live process uses: likewise, beside that process;
  /// - a log with nothing in it: as an immutable file, since a connection would make a log and
  ///   shared memory;
  /// - a log left by a process that is gone: with an index of the log in memory;
  /// - a journal left by a process that is gone: a private copy of both, where SQLite undoes the
  ///   transaction.
  ///
  /// Where no lock is held while reading, the files are compared with what they were before; if
  /// they moved, `body` is called again.
  ///
  /// - Parameters:
  ///   - body: Reads; may be called several times.
  ///   - busyTimeout: Seconds to wait for a process that is in the middle of writing.
  /// - Throws: what `StoreFile.look(at:)` throws, `busyStore`, `corruptStore`, and what `body`
  ///   throws.
  public static func withReadOnlyStore<T>(
    _ path: String, busyTimeout: Double = 1, body: (Database) throws -> T
  ) throws(InstarError) -> T {
    let what = "cannot read '\(path)'"
    for _ in 0..<attempts {
      let file = try StoreFile.look(at: path)
      do {
        if file.hasJournal {
          if let value = try readBesideJournal(file, busyTimeout: busyTimeout, body: body) {
            return value
          }
        } else if file.logIsInUse && file.logHasContent
          || !file.usesWriteAheadLog && file.log == nil
        {
          return try read(file.path, access: .readOnly, busyTimeout: busyTimeout, body: body)
        } else {
          let access: GuardedConnection.Access =
            file.logHasContent ? .withoutSharedMemory : .immutable
          let result = Result { try read(file.path, access: access, body: body) }
          if let now = file.currentState(), now.file == file.state, now.log == file.log {
            return try result.get()
          }
        }
      } catch {
        throw describe(error, what: what, store: path)
      }
    }
    throw InstarError(
      .busyStore, what, store: path, cause: "another process keeps writing it",
      next: "try again when it has finished")
  }

  private static func read<T>(
    _ path: String, access: GuardedConnection.Access, busyTimeout: Double = 0,
    body: (Database) throws -> T
  ) throws -> T {
    let queue = try GuardedConnection.open(path, access: access, busyTimeout: busyTimeout)
    defer { try? queue.close() }
    return try queue.inDatabase { db in
      // One transaction, so that all statements see one state of the store.
      try db.execute(sql: "BEGIN")
      defer { try? db.execute(sql: "ROLLBACK") }
      return try body(db)
    }
  }

  /// A journal beside a store in rollback mode: either its writer lives, then SQLite reads as it
  /// always does; or it is gone, then SQLite would have to write, which it says with an error.
  ///
  /// - Returns: `nil` where the files moved while they were copied.
  private static func readBesideJournal<T>(
    _ file: StoreFile, busyTimeout: Double, body: (Database) throws -> T
  ) throws -> T? {
    do {
      return try read(file.path, access: .readOnly, busyTimeout: busyTimeout, body: body)
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    {
      let folder = try PrivateFolder()
      defer { folder.remove() }
      let copy = folder.path + "/store"
      try FileManager.default.copyItem(atPath: file.path, toPath: copy)
      try FileManager.default.copyItem(atPath: file.path + "-journal", toPath: copy + "-journal")
      guard let now = file.currentState(), now.file == file.state else { return nil }
      return try read(copy, access: .readWrite, body: body)
    }
  }

  private static func describe(_ error: any Error, what: String, store: String) -> InstarError {
    var known = InstarError(error, what: what, store: store)
    // The file has the magic number, or it would not have been opened.
    if let error = error as? DatabaseError, error.resultCode == .SQLITE_NOTADB {
      known.code = .corruptStore
      known.cause = "its first page is damaged, or encrypted"
      known.next = "restore the store from a backup"
    }
    return known
  }
}

/// A folder that only this user can enter, with a name of its own.
struct PrivateFolder {
  let path: String

  init() throws {
    let template = FileManager.default.temporaryDirectory.path + "/instar-XXXXXX"
    var name = Array(template.utf8CString)
    guard let made = mkdtemp(&name) else {
      throw InstarError(
        .unreadableStore,
        "cannot make a folder in '\(FileManager.default.temporaryDirectory.path)'",
        cause: String(cString: strerror(errno)))
    }
    path = String(cString: made)
  }

  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }
}
