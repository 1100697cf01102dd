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
  /// - Throws: what `StoreFile.probe` throws, `busyStore`, `corruptStore`, and what `body`
  ///   throws.
  public static func withReadOnlyStore<T>(
    _ path: String, busyTimeout: Double = 1, body: (Database) throws -> T
  ) throws(InstarError) -> T {
    let what = "cannot read '\(path)'"
    // Set when the shared memory beside a log cannot be used after all: its last user has gone
    // meanwhile, or it may not be written by this user.
    var avoidsSharedMemory = false
    var lastError: (any Error)?
    for _ in 0..<attempts {
      let file = try StoreFile.probe(path)
      do {
        if file.hasJournal {
          if let value = try readBesideJournal(file, busyTimeout: busyTimeout, body: body) {
            return value
          }
          continue
        }
        if !file.usesWriteAheadLog && file.log == nil
          || file.logIsInUse && file.logHasContent && !avoidsSharedMemory
        {
          return try GuardedConnection.read(
            file, access: .readOnly, busyTimeout: busyTimeout, body: body)
        }
        let access: GuardedConnection.Access =
          file.logHasContent ? .withoutSharedMemory : .immutable
        let result = Result { try GuardedConnection.read(file, access: access, body: body) }
        if let now = file.currentState(), now.file == file.state, now.log == file.log {
          return try result.get()
        }
        lastError = nil
      } catch let error as DatabaseError
        where [.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_IOERR].contains(error.resultCode)
      {
        // A side file may have come or gone since the look.
        avoidsSharedMemory = file.logIsInUse
        lastError = error
      } catch let error as InstarError where error.code == .storeChanged {
        lastError = nil
      } catch {
        throw describe(error, what: what, store: path)
      }
    }
    if let lastError { throw describe(lastError, what: what, store: path) }
    throw InstarError(
      .busyStore, what, store: path, cause: "another process keeps writing it",
      next: "try again when it has finished")
  }

  /// What a store and its journal may have together to be copied.
  private static let copyLimitBytes: Int64 = 256 << 20

  /// A journal beside a store in rollback mode: either its writer lives, then SQLite reads as it
  /// always does; or it is gone, then SQLite would have to write, which it says with an error.
  ///
  /// - Returns: `nil` where the files moved while they were copied.
  private static func readBesideJournal<T>(
    _ file: StoreFile, busyTimeout: Double, body: (Database) throws -> T
  ) throws -> T? {
    do {
      return try GuardedConnection.read(
        file, access: .readOnly, busyTimeout: busyTimeout, body: body)
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    {
      guard let journal = StoreFile.sideFile(file.path + "-journal") else { return nil }
      guard file.state.size <= copyLimitBytes, journal.size <= copyLimitBytes else {
        throw InstarError(
          .busyStore, "cannot read '\(file.path)'", store: file.path,
          cause: "a transaction was cut off, and the store is too large to undo it in a copy",
          next: "open the store with its app once, which undoes the transaction")
      }
      let folder = try PrivateFolder()
      defer { folder.remove() }
      let copy = folder.path + "/store"
      try FileManager.default.copyItem(atPath: file.path, toPath: copy)
      try FileManager.default.copyItem(atPath: file.path + "-journal", toPath: copy + "-journal")
      guard let now = file.currentState(), now.file == file.state,
        StoreFile.sideFile(file.path + "-journal") == journal
      else { return nil }
      let queue = try GuardedConnection.open(copy, access: .readWrite, firesTriggers: false)
      defer { try? queue.close() }
      return try queue.inDatabase(body)
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
    guard let error = error as? DatabaseError else { return known }
    switch error.resultCode {
    case .SQLITE_INTERRUPT:
      known.code = .corruptStore
      known.cause = "reading it does not come to an end: what it is made of leads in circles"
      known.next = "restore the store from a backup"
    case .SQLITE_NOMEM, .SQLITE_TOOBIG:
      known.code = .unsupported
      known.cause = "its schema, or a value in it, is larger than Instar reads"
    // Nothing that is asked of a store is wrong in itself: its list of tables is.
    case .SQLITE_ERROR, .SQLITE_SCHEMA, .SQLITE_MISMATCH, .SQLITE_FORMAT:
      known.code = .corruptStore
      known.cause = "its list of tables contradicts itself (\(known.cause))"
      known.next = "restore the store from a backup"
    default: break
    }
    return known
  }
}
