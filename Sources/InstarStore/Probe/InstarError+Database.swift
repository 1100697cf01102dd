internal import CDatabase
internal import Foundation
internal import GRDB
public import InstarSchema

extension InstarError {
  /// Creates the error that users see for an error of SQLite, or any other error met with a store.
  ///
  /// An `InstarError` keeps its text; `what` and `store` fill in what is missing. Statements and bound values are left
  /// out, because values are the user's data.
  public init(_ error: any Error, what: String, store: String? = nil) {
    if let known = error as? InstarError {
      self = known.about(store: store)
      return
    }
    guard let error = error as? DatabaseError else {
      self.init(.internalError, what, store: store, cause: String(describing: error))
      return
    }
    let text = error.message ?? "SQLite reports \(error.extendedResultCode)"
    switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL:
      self.init(
        .busyStore, what, store: store, cause: "\(Self.lockedCause) (\(text))",
        next: Self.adviceOnLock)
    case .SQLITE_NOTADB:
      self.init(.notAStore, what, store: store, cause: text)
    case .SQLITE_CORRUPT:
      self.init(
        .corruptStore, what, store: store, cause: text, next: CommandText.restoring(store))
    case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE:
      self.init(
        .noSpace, what, store: store,
        cause: "SQLite cannot enlarge the index of the store's log (\(text))",
        next: "free some space on the store's file system")
    case .SQLITE_FULL:
      self.init(.noSpace, what, store: store, cause: text, next: Self.adviceOnSpaceForSQLite())
    case _ where [.SQLITE_NOMEM, .SQLITE_IOERR_NOMEM].contains(error.extendedResultCode):
      self.init(
        .unreadableStore, what, store: store, cause: "\(text) (\(error.extendedResultCode))",
        next: "free some memory, or raise the limit of this process; then \(CommandText.repetition)"
      )
    case .SQLITE_IOERR:
      self.init(
        .unreadableStore, what, store: store, cause: "\(text) (\(error.extendedResultCode))",
        next: Self.adviceOnDisk)
    case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH:
      self.init(
        .unreadableStore, what, store: store, cause: "\(text) (\(error.extendedResultCode))")
    case .SQLITE_INTERRUPT:
      self = .overBudget(what, store: store)
    default:
      self.init(
        .sqlFailed, what, store: store, cause: "\(text) (\(error.extendedResultCode))",
        next: "to see the statements in the output, set 'sqlDebug: 1' "
          + "(instarctl: -com.apple.CoreData.SQLDebug 1)")
    }
  }
}

extension InstarError {
  /// What to do where a file of the store cannot be read or written, and the disk may be the reason.
  package static let adviceOnDisk =
    "to see whether the disk fails, run: journalctl -k -n 50; then \(CommandText.repetition)"

  /// Whether an `errno` says that a file cannot become larger: the disk is full, the quota is used up, or the process
  /// may write no larger file.
  package static func isFull(_ number: Int32) -> Bool {
    [ENOSPC, EDQUOT, EFBIG].contains(number)
  }

  /// Returns what to do where a file of the store cannot become larger.
  ///
  /// - Parameter number: The `errno` that says so. Without EFBIG the limit of the size of files is not the reason. A
  ///   worker always has one, which the keeper sets.
  package static func adviceOnSpace(after number: Int32) -> String {
    let advice =
      "free some space on the store's file system, or raise the quota of the store's owner"
    var limit = rlimit()
    guard number == EFBIG, getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
      limit.rlim_cur <= UInt64(Int64.max)
    else { return advice }
    return "raise the limit of the size of files, which is \(limit.rlim_cur) bytes (ulimit -f, "
      + "LimitFSIZE= of a service); or \(advice)"
  }

  /// Returns what to do where SQLite on this thread has just reported a full disk, once for each report.
  static func adviceOnSpaceForSQLite() -> String {
    adviceOnSpace(after: instar_take_reason_of_full_disk())
  }
}
