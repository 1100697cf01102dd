internal import CInstar
internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarWire

/// The cutover by exchange: the clone takes the place of the store's file, in one step of the file system. Nothing is
/// copied. It goes through these states:
///
/// ```text
/// locked ──lease──▶ leased ──handOver──▶ handed over ──rename──▶ exchanged ──grace──▶ done
///    │                 │                      │                      │
///    ▼                 ▼                      ▼                      ▼
/// impossible      impossible              disturbed ◀──────── exchanged back
/// ```
///
/// - `locked`: SQLite's lock keeps writers out. The store has left its log, if it had one.
/// - `leased`: nobody else has the store or the clone open, in any way; whoever opens one of them waits in open(2). The
///   clone has the store's attributes and is on disk.
/// - `handed over`: SQLite's connections are closed, and both files are locked against every SQLite.
/// - `exchanged`: the clone is at the store's path, the store's file where the clone was: that is the final name of the
///   backup where the store's file becomes it, else the run's folder. Both are leased and locked.
/// - `done`: after a grace period still nobody has tried to open the file that left. The clone is the store now.
///
/// Until the connections are closed, an obstacle makes the exchange `impossible`: the lock is as before, and the run
/// writes the clone back. After that the exchange is `disturbed`: the store has its file and its content, and the run
/// starts over.
///
/// Invariants:
/// - From SQLite's lock to the end somebody keeps writers out without a gap: the lease is taken on SQLite's own
///   descriptor while SQLite still holds its lock, and is read again once the files are locked. So the content that is
///   replaced is the content that was cloned.
/// - An app that resolved the store's path before the exchange may open the file that left. If it waits in open(2), the
///   lease shows it: at once, or after the grace period. Then the files are exchanged back before it gets through, so
///   that it works on the store. If it gets through all the same, the lock refuses it.
/// - An app may also have opened a file that is not the store in the end: the one that left, or the clone of an
///   exchange that was undone. The lock of that file stays until the app has closed it, also after the end of the
///   keeper (see `StaleFile`). If the keeper is killed, the recovery takes the lock before the store gets its log back.
/// - Neither file uses a log before `done`. An app on the file that left would otherwise write a log beside the store
///   and damage it. With a rollback journal SQLite itself refuses to write to a file whose path names another one. So,
///   between the death of the keeper and the recovery, such an app does no harm unless it has no journal file, or
///   another app is killed while it writes to the store: then it would play back that app's journal.
/// - At every instant the path names a whole file that is on disk, and no file has two names. After a loss of power
///   either order of the two files may come back.
struct Exchange {
  /// How an exchange ended, where it did not fail.
  enum Result {
    /// - Parameter former: The file that left, where an app has it open.
    case done(former: StaleFile?)
    /// Nothing was changed, and the lock is as before.
    case impossible(String)
    /// The store is as before, and no longer locked.
    ///
    /// - Parameter clone: The clone, where an app has it open.
    case disturbed(clone: StaleFile?)
  }

  /// The instants at which a test reads the files, or ends the keeper.
  enum Step: CaseIterable {
    case locked, leased, handedOver, exchanged, synchronized, done
  }

  let lock: StoreLock
  let paths: StorePaths
  /// The path of the clone, which the store's file gets.
  let clone: String
  var onStep: (Step) throws -> Void = { _ in }

  private static let what = "cannot exchange the store for its clone"
  static let inUse = "another process has the store open"

  /// A smaller store is written back, because that takes less time than the grace period.
  static let smallestStoreBytes: Int64 = 32 << 20

  /// How long an app that resolved the store's path before the exchange may take to open the file: longer than a busy
  /// system lets a process wait in the middle of open(2).
  private static let grace = Duration.milliseconds(100)

  /// - Parameter whenLocked: Called with SQLite's own descriptor of the store, which must not be closed, once nobody
  ///   changes the file any more.
  func perform(whenLocked: (Int32) throws -> Void) throws -> Result {
    let usesLog = lock.usesLog
    switch try lock.leaveLog() {
    case .left: break
    case .inUse: return .impossible(Self.inUse)
    case .lost:
      lock.release()
      return .disturbed(clone: nil)
    }
    if let descriptor = try lock.soleDescriptor() { try whenLocked(descriptor) }
    try onStep(.locked)
    guard let clone = LeasedFile(opening: clone), clone.isUndisturbed, clone.lock() else {
      return .impossible("the clone cannot be leased")
    }
    let store: LeasedFile
    switch try lease(clone) {
    case .leased(let file): store = file
    case .impossible(let reason): return .impossible(reason)
    }
    try onStep(.handedOver)
    let files = Files(store: store, clone: clone, paths: paths, clonePath: self.clone)
    // The removal of a log or journal must be on disk before: one that comes back after a loss of power would damage
    // the clone at the store's path.
    guard store.lock(), (try? paths.synchronizeFolder()) != nil, files.areInPlace, exchange() else {
      return .disturbed(clone: giveBack(files, usesLog))
    }
    guard try complete(files, usesLog) else {
      try exchangeBack(files, usesLog)
      return .disturbed(clone: giveBack(files, usesLog))
    }
    // The lock of the file that left is safe before anybody uses the store.
    let opened = StaleFile.keepLock(of: store)
    clone.release()
    return .done(former: opened?.stale())
  }

  private enum Lease {
    case leased(LeasedFile)
    case impossible(String)
  }

  /// Leases the store, gives the clone its attributes, and closes SQLite's connections.
  private func lease(_ clone: LeasedFile) throws -> Lease {
    guard let descriptor = try lock.soleDescriptor() else { return .impossible(Self.inUse) }
    guard instar_lease(descriptor) == 0 else {
      return .impossible(
        errno == EAGAIN ? Self.inUse : "the store cannot be leased (\(Self.reason(errno)))")
    }
    try onStep(.leased)
    guard instar_copy_attributes(descriptor, clone.descriptor) == 0 else {
      let reason = "the clone cannot get the store's attributes (\(Self.reason(errno)))"
      instar_lease_release(descriptor)
      return .impossible(reason)
    }
    do {
      try clone.synchronize()
      // An app may have written the store without bringing it to disk, and the file may become the backup.
      guard fsync(descriptor) == 0 else {
        throw RunFiles.failure("cannot sync the store to disk", errno)
      }
    } catch {
      instar_lease_release(descriptor)
      throw error
    }
    guard let store = lock.handOver(descriptor) else {
      instar_lease_release(descriptor)
      return .impossible("the store cannot be leased")
    }
    return .leased(store)
  }

  private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }

  /// The two files, and where they belong.
  private struct Files {
    let store: LeasedFile
    let clone: LeasedFile
    let paths: StorePaths
    let clonePath: String

    /// Whether each has its own path, and nobody waits to open one of them.
    var areInPlace: Bool {
      store.isUndisturbed && clone.isUndisturbed && store.isAt(paths.store)
        && clone.isAt(clonePath) && !paths.hasSideFile
    }

    var areExchanged: Bool { clone.isAt(paths.store) && store.isAt(clonePath) }

    /// Whether the exchange may stay. Openers of the clone may wait: they wait for the store.
    var mayStay: Bool { areExchanged && store.isUndisturbed && !paths.hasSideFile }
  }

  private func exchange() -> Bool {
    instar_rename_exchange(AT_FDCWD, paths.store, AT_FDCWD, clone) == 0
  }

  private func synchronizeFolders() throws {
    try paths.synchronizeFolder()
    try DurableFile.synchronizeFolder(clone.parentFolder)
  }

  /// Waits until nobody can open the file that left any more, and gives the clone its log.
  ///
  /// - Returns: `false` if somebody tries to open it, or if the exchange cannot be synced to disk.
  private func complete(_ files: Files, _ usesLog: Bool) throws -> Bool {
    // Not ContinuousClock: while the machine is suspended, an opener has no time either.
    let exchanged = SuspendingClock.now
    try onStep(.exchanged)
    guard files.mayStay else { return false }
    // If the disk fails, the files are exchanged back. The next attempt reports the failure.
    guard (try? synchronizeFolders()) != nil else { return false }
    try onStep(.synchronized)
    Thread.sleep(forTimeInterval: (Self.grace - (SuspendingClock.now - exchanged)).inSeconds)
    guard files.mayStay, !usesLog || (try? files.clone.setMode(usesLog: true)) != nil else {
      return false
    }
    try onStep(.done)
    return files.mayStay
  }

  /// - Throws: The state `in doubt` where a path no longer names the file that it should.
  private func exchangeBack(_ files: Files, _ usesLog: Bool) throws {
    // An app that has the clone open must not write a log beside the store. The clone is thrown away, so it does not
    // matter where this fails.
    if usesLog { try? files.clone.setMode(usesLog: false) }
    guard files.areExchanged, exchange(), files.store.isAt(paths.store) else {
      throw InstarError(
        .writeBackFailed, Self.what, cause: "another process replaced the file during the cutover",
        state: InstarError.inDoubt)
    }
    // After a loss of power either file may be the store: both are whole. Recovery tells which.
    try? synchronizeFolders()
  }

  /// Lets others use the store again.
  ///
  /// - Returns: The clone, where an app has it open.
  private func giveBack(_ files: Files, _ usesLog: Bool) -> StaleFile? {
    // An app may have opened the clone while that was at the store's path. The lock of the clone is safe before the
    // store has its log again.
    let opened = StaleFile.keepLock(of: files.clone)
    // If this fails, the store has a rollback journal until an app asks for a log. Its content is whole.
    if usesLog { try? files.store.setMode(usesLog: true) }
    files.store.release()
    return opened?.stale()
  }
}

extension StorePaths {
  /// Whether a file exists that SQLite would treat as a part of the store.
  var hasSideFile: Bool {
    SideFile.paths(of: store).contains { stat(of: $0) != nil }
  }
}
