internal import CDatabase
internal import Foundation
internal import InstarSchema

/// A regular file that is open for reading, with its bytes at any offset.
///
/// - Important: Its end drops every POSIX lock of this process on the file.
final class ReadableFile {
  let descriptor: Int32
  let status: stat
  var size: Int64 { Int64(status.st_size) }

  /// `nil` where there is no regular file that can be read; `errno` says why. A link is not followed, and the file may
  /// have become a FIFO, which would block.
  init?(path: String) {
    descriptor = instar_open_waiting(path, O_RDONLY, 0)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.isRegular else {
      close(descriptor)
      return nil
    }
    self.status = status
  }

  deinit { close(descriptor) }

  /// Reads the status again; `nil` where the system cannot.
  func currentStatus() -> stat? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? status : nil
  }

  /// Returns whether another process holds a lock on a byte.
  func isLocked(at offset: Int64) -> Bool {
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(offset)
    lock.l_len = 1
    guard fcntl(descriptor, F_GETLK, &lock) == 0 else { return true }
    return lock.l_type != Int16(F_UNLCK)
  }

  /// Takes the lock with which SQLite reads a store in rollback mode, until the file is closed. Does not wait.
  ///
  /// - Returns: `false` where another process writes, or where the file system has no locks.
  func lockForReading() -> Bool { instar_lock_shared(descriptor) == 0 }

  /// Returns fewer bytes where the file ends before.
  func bytes(at offset: Int64, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let read = pread(
          descriptor, buffer.baseAddress.map { $0 + filled }, count - filled,
          off_t(offset) + off_t(filled))
        if read < 0, errno == EINTR { continue }
        guard read > 0 else { break }
        filled += read
      }
    }
  }
}

extension [UInt8] {
  /// The big-endian number in four bytes.
  func integer(at offset: Int) -> UInt32 {
    self[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
