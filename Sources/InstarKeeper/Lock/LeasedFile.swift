internal import CInstar
internal import Foundation
internal import InstarSchema

/// A database file that this process has open with a write lease: nobody else has it open, and whoever opens it waits.
///
/// Once it is also locked, no SQLite can read or write it by another descriptor, not even one that got through because
/// the lease was held for too long. The kernel ends lease and lock with this process.
final class LeasedFile {
  let descriptor: Int32
  private var isReleased = false

  /// Shares a description of the file that is leased already, so that the lease outlives the given descriptor.
  init?(duplicating descriptor: Int32) {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return nil }
    self.descriptor = copy
  }

  /// Opens a file and leases it; `nil` where somebody has it open, or where it cannot be leased.
  init?(opening path: String) {
    descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    guard instar_lease(descriptor) == 0 else {
      close(descriptor)
      return nil
    }
  }

  deinit { release() }

  /// Keeps every SQLite from using the file by another descriptor.
  func lock() -> Bool { instar_lock_database(descriptor) == 0 }

  /// Whether nobody waits to open the file, and it has one name.
  var isUndisturbed: Bool {
    guard let status else { return false }
    return status.st_nlink == 1 && instar_lease_is_unbroken(descriptor) != 0
  }

  private var status: stat? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? status : nil
  }

  /// Whether a path names the file.
  func isAt(_ path: String) -> Bool {
    guard let status, let found = stat(of: path) else { return false }
    return FileIdentity(found) == FileIdentity(status)
  }

  var inode: UInt64? { status.map { UInt64($0.st_ino) } }

  /// The header of the database; `nil` where it cannot be read.
  var header: [UInt8]? { Self.header(of: descriptor) }

  static func header(of descriptor: Int32) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 100)
    return pread(descriptor, &bytes, 100, 0) == 100 ? bytes : nil
  }

  /// Whether a header says that the database has a write-ahead log.
  static func namesLog(_ header: [UInt8]) -> Bool {
    header.dropFirst(modeOffset).first == logMode
  }

  private static let modeOffset = 18
  private static let (logMode, journalMode): (UInt8, UInt8) = (2, 1)

  /// Sets the journal mode that the header names, durably: a write-ahead log, or a rollback journal.
  ///
  /// - Precondition: Nobody has the file open, or the lock keeps SQLite from reading it.
  func setMode(usesLog: Bool) throws(InstarError) {
    let mode = usesLog ? Self.logMode : Self.journalMode
    guard pwrite(descriptor, [mode, mode], 2, off_t(Self.modeOffset)) == 2,
      fdatasync(descriptor) == 0
    else {
      throw RunFiles.failure("cannot set the journal mode of the store", errno)
    }
  }

  /// Brings content and attributes to disk.
  func synchronize() throws(InstarError) {
    guard fsync(descriptor) == 0 else {
      throw RunFiles.failure("cannot sync the clone to disk", errno)
    }
  }

  /// Lets others open and use the file.
  func release() {
    if isReleased { return }
    isReleased = true
    close(descriptor)
  }

  /// Returns the descriptor, which the caller closes.
  func handOver() -> Int32 {
    isReleased = true
    return descriptor
  }
}
