internal import CInstar
internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarWire
internal import Synchronization

/// A file that was at the store's path during an exchange, is not the store, and is open in an app.
///
/// The app's SQLite still looks for the journal and the log at the store's path. It would play back and delete the
/// store's hot journal, and write the frames of its own file into the store's log. Only a lock on the file prevents
/// that: SQLite opens a journal or a log after it has locked the file. So the lock must stay until the app has closed
/// the file, whatever becomes of this process. A process of its own keeps it (`instar_keep_lock`).
struct StaleFile {
  /// The processes that have the file open, as far as this user sees them.
  let holders: [ProbeReport.Holder]
  /// Whether SQLite is kept from using the file until the app has closed it.
  let isLocked: Bool

  /// The name of the process that keeps a lock.
  static let lockProcess = "instar-lock"

  /// How long an app may take to end the transaction that it has on the file.
  private static let patience = Duration.seconds(5)

  /// How long an app may have the file open without anybody being told.
  private static let moment = Duration.seconds(1)

  /// The descriptors whose locks end with this process, because no other one could be started for them.
  private static let retained = Mutex<[Int32]>([])

  /// Keeps the lock of a file that is no longer the store, if somebody has it open or waits for it. Ends the lease, so
  /// that nobody waits any more.
  ///
  /// - Returns: What `stale()` waits for; `nil` if nobody has the file open, and it is released.
  static func keepLock(of file: LeasedFile) -> Opened? {
    instar_lease_release(file.descriptor)
    if instar_lease(file.descriptor) == 0 {
      file.release()
      return nil
    }
    return Opened(file: file, isKept: instar_keep_lock(file.descriptor) == 0)
  }

  /// A locked file that somebody has open.
  struct Opened {
    fileprivate let file: LeasedFile
    fileprivate let isKept: Bool

    /// Waits a moment for the app to close the file.
    ///
    /// - Returns: `nil` if it has.
    func stale() -> StaleFile? {
      let end = ContinuousClock.now + StaleFile.moment
      while instar_lease(file.descriptor) < 0 {
        guard ContinuousClock.now < end else {
          return StaleFile(file.handOver(), isKept: isKept)
        }
        usleep(10_000)
      }
      file.release()
      return nil
    }
  }

  /// Locks a file that a keeper left behind when it was killed.
  ///
  /// - Returns: `nil` where nobody has the file open, or where it is missing.
  static func lock(leftAt path: String) -> StaleFile? {
    let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    guard instar_lease(descriptor) < 0, errno == EAGAIN else {
      close(descriptor)
      return nil
    }
    // Also where no process could be started: else the next recovery takes this process's own lock for that of one.
    defer { close(descriptor) }
    if lock(descriptor) {
      return StaleFile(
        holders: holders(of: descriptor), isLocked: instar_keep_lock(descriptor) == 0)
    }
    // An earlier recovery may keep the lock.
    return StaleFile(
      holders: holders(of: descriptor), isLocked: instar_is_database_locked(descriptor) != 0)
  }

  private init(holders: [ProbeReport.Holder], isLocked: Bool) {
    self.holders = holders
    self.isLocked = isLocked
  }

  /// - Parameter isKept: Whether another process keeps the lock.
  private init(_ descriptor: Int32, isKept: Bool) {
    self.init(holders: Self.holders(of: descriptor), isLocked: isKept)
    if isKept {
      close(descriptor)
    } else {
      Self.retained.withLock { $0.append(descriptor) }
    }
  }

  /// Waits for the end of a transaction that an app has on the file.
  private static func lock(_ descriptor: Int32) -> Bool {
    let end = ContinuousClock.now + patience
    while instar_lock_database(descriptor) != 0 {
      guard instar_is_database_locked(descriptor) == 0, ContinuousClock.now < end else {
        return false
      }
      usleep(10_000)
    }
    return true
  }

  private static func holders(of descriptor: Int32) -> [ProbeReport.Holder] {
    var status = stat()
    var scan = StoreHolders()
    return fstat(descriptor, &status) == 0 ? scan.of(FileIdentity(status)) : []
  }

  /// What the operator must know and do.
  var note: String {
    let opened =
      "an app has a file open that was at the store's path for a moment, and is not the store"
    let named = ProbeReport.inWords(holders, of: "that file").map { " (\($0))" } ?? ""
    guard isLocked else {
      return "\(opened)\(named); stop the app now, because it can damage the store and the backup"
    }
    return
      "\(opened)\(named); restart the app now: SQLite tells it that the database is locked, but only while "
      + "the process \(Self.lockProcess) runs, which ends with the service or session of this run"
  }
}
