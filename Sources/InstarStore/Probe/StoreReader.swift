internal import Foundation
public import GRDB
public import InstarSchema

/// Reads stores without changing them and without leaving a side file.
public enum StoreReader {
  /// The fewest reads after which a store that others write is reported as busy.
  private static let fewestAttempts = 3
  /// The pause before another read: an app that opens, writes and closes a store all the time gets past that.
  private static let pauseMicroseconds: useconds_t = 2_000

  /// Opens the store for reading, calls `body`, and closes it again.
  ///
  /// How the store is opened depends on its side files:
  /// - rollback mode, no log: under SQLite's own locks, which leave nothing behind;
  /// - a log that a live process uses: the same, beside that process;
  /// - an empty log: as an immutable file, since a connection would create a log and shared memory;
  /// - a log left by a process that is gone: with an index of the log in memory;
  /// - a journal left by a process that is gone: in a private copy of both, where SQLite rolls the transaction back.
  ///
  /// Where no lock is held while reading, the files are compared with their state before; if they changed, `body` is
  /// called again: three times, and then until the time to wait is over.
  ///
  /// - Parameters:
  ///   - body: Reads the store. May be called several times.
  ///   - busyTimeout: Seconds to wait for a process that is writing.
  ///   - known: What a probe found right before; `nil` without one.
  /// - Throws: The errors of `StoreFile.probe`, `busyStore`, `corruptStore`, and the errors of `body`.
  public static func withReadOnlyStore<T>(
    _ path: String, busyTimeout: Double = 1, known: StoreFile? = nil,
    body: (Database) throws -> T
  ) throws(InstarError) -> T {
    try withReadOnlyFile(path, busyTimeout: busyTimeout, known: known) { db, _ in try body(db) }
  }

  /// As `withReadOnlyStore`; `body` also gets the file that it reads, as it was right before.
  static func withReadOnlyFile<T>(
    _ path: String, busyTimeout: Double, known: StoreFile?,
    body: (Database, StoreFile) throws -> T
  ) throws(InstarError) -> T {
    var known = known
    let what = "cannot read '\(path)'"
    // Set when the shared memory of a log cannot be used: its last user has closed it meanwhile, or this user may not
    // write it.
    var avoidsSharedMemory = false
    var lastError: (any Error)?
    let deadline = ContinuousClock.now + .seconds(busyTimeout)
    var attempts = 0
    var wasOpened = false
    while attempts < fewestAttempts || lastError == nil && .now < deadline {
      if attempts > 0 { usleep(pauseMicroseconds) }
      attempts += 1
      let file = if let known { known } else { try StoreFile.probe(path) }
      known = nil
      do {
        let value = try readOnce(
          file, busyTimeout: busyTimeout, avoidsSharedMemory: avoidsSharedMemory
        ) { db in
          wasOpened = true
          return try body(db, file)
        }
        if let value { return value }
        lastError = nil
      } catch let error as DatabaseError
        where [.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_IOERR].contains(error.resultCode)
      {
        // A side file may have appeared or disappeared since the probe.
        avoidsSharedMemory = file.logIsInUse
        lastError = file.isUnchanged() ? error : nil
      } catch let error as InstarError where error.code == .storeChanged {
        lastError = nil
      } catch {
        throw describe(error, what: what, store: path, wasOpened: wasOpened)
      }
    }
    if let lastError {
      throw describe(lastError, what: what, store: path, wasOpened: wasOpened)
    }
    throw InstarError(
      .busyStore, what, store: path,
      cause: "another process wrote to the store during each of \(attempts) reads",
      next: "stop the process, or wait until it writes less often")
  }

  /// Reads a store in the way that its side files demand (see `withReadOnlyStore`).
  ///
  /// - Returns: `nil` where the files changed while they were read.
  private static func readOnce<T>(
    _ file: StoreFile, busyTimeout: Double, avoidsSharedMemory: Bool,
    body: (Database) throws -> T
  ) throws -> T? {
    if file.hasJournal {
      return try readBesideJournal(file, busyTimeout: busyTimeout, body: body)
    }
    let hasOnlyRollbackMode = !file.usesWriteAheadLog && file.log == nil
    let sharesLog = file.logIsInUse && file.logHasContent && !avoidsSharedMemory
    if hasOnlyRollbackMode || sharesLog {
      return try GuardedConnection.read(
        file, access: .readOnly, busyTimeout: busyTimeout, body: body)
    }
    let access: GuardedConnection.Access = file.logHasContent ? .withoutSharedMemory : .immutable
    let result = Result { try GuardedConnection.read(file, access: access, body: body) }
    guard file.isUnchanged() else { return nil }
    return try result.get()
  }

  /// The most bytes of a store and its journal that are copied.
  private static let copyLimitBytes: Int64 = 256 << 20

  /// Reads a store with a journal. If its writer lives, SQLite reads as usual; if not, SQLite would have to write, and
  /// fails.
  ///
  /// - Returns: `nil` where the files changed while they were copied.
  private static func readBesideJournal<T>(
    _ file: StoreFile, busyTimeout: Double, body: (Database) throws -> T
  ) throws -> T? {
    do {
      return try GuardedConnection.read(
        file, access: .readOnly, busyTimeout: busyTimeout, body: body)
    } catch let error as DatabaseError
      where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    {
      let journalPath = SideFile.journal.path(of: file.path)
      guard let journal = StoreFile.state(of: journalPath) else { return nil }
      guard file.state.size <= copyLimitBytes, journal.size <= copyLimitBytes else {
        throw InstarError(
          .busyStore, "cannot read '\(file.path)'", store: file.path,
          cause:
            "a transaction was interrupted, and the store is too large to roll it back in a copy",
          next: "open the store once with its app, which rolls the transaction back")
      }
      let folder = try PrivateFolder()
      defer { folder.remove() }
      let copy = folder.path + "/store"
      try FileManager.default.copyItem(atPath: file.path, toPath: copy)
      try FileManager.default.copyItem(
        atPath: journalPath, toPath: SideFile.journal.path(of: copy))
      guard let now = file.currentState(), now.file == file.state,
        StoreFile.state(of: journalPath) == journal
      else { return nil }
      return try GuardedConnection.use(copy, access: .readWrite, firesTriggers: false, body)
    }
  }

  /// - Parameter wasOpened: Whether SQLite has opened the store. If it cannot, `restore` cannot lock the store.
  private static func describe(
    _ error: any Error, what: String, store: String, wasOpened: Bool
  ) -> InstarError {
    var known = InstarError(error, what: what, store: store)
    let advice = wasOpened ? CommandText.restoring(store) : CommandText.replacing(store)
    // The file has the magic number, else it would not have been opened.
    if let error = error as? DatabaseError, error.resultCode == .SQLITE_NOTADB {
      known.code = .corruptStore
      known.cause = "the first page is damaged or encrypted"
      known.next = advice
    }
    guard let error = error as? DatabaseError else { return known }
    switch error.resultCode {
    case .SQLITE_CORRUPT:
      known.provesDamage = error.provesDamage ? true : nil
      known.next = advice
    case .SQLITE_INTERRUPT:
      known.code = .corruptStore
      known.cause =
        "reading does not end; the pages or views of the store refer to each other in a cycle"
      known.next = advice
    case .SQLITE_NOMEM, .SQLITE_TOOBIG:
      known.code = .unsupported
      known.cause = "its schema, or one of its values, is larger than Instar reads"
    // Instar's statements are correct, so the list of tables is not.
    case .SQLITE_ERROR, .SQLITE_SCHEMA, .SQLITE_MISMATCH, .SQLITE_FORMAT:
      known.code = .corruptStore
      known.cause = "the list of tables is inconsistent (\(known.cause))"
      known.next = advice
    default: break
    }
    return known
  }
}
