import Foundation
import Glibc
public import InstarSchema
import Synchronization

/// An exclusive lock on a folder or file (flock(2)). The kernel releases it when the process ends, however it ends.
///
/// The lock is advisory, also within this process, and independent of SQLite's locks.
public final class FolderLock: Sendable {
  private let descriptor: Mutex<Int32>

  private init(descriptor: Int32) {
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Takes the lock without waiting.
  ///
  /// - Parameter path: A folder or file that exists.
  /// - Returns: `nil` if it is held already.
  /// - Throws: `stateFolderFailed` where the path cannot be opened.
  public static func tryLock(_ path: String) throws(InstarError) -> FolderLock? {
    try take(path, LOCK_EX | LOCK_NB)
  }

  /// Takes the lock, waiting without a limit: for locks that are held for moments only.
  ///
  /// - Parameter path: A folder or file that exists.
  /// - Throws: `stateFolderFailed` where the path cannot be opened.
  public static func lock(_ path: String) throws(InstarError) -> FolderLock {
    while true {
      if let lock = try take(path, LOCK_EX) { return lock }
    }
  }

  /// Returns whether the path still names the locked folder or file. A process that opened a lock file before its last
  /// holder deleted it can still lock it, which keeps nobody out.
  public func isStillAt(_ path: String) -> Bool {
    descriptor.withLock { descriptor in
      var locked = stat()
      var present = stat()
      return fstat(descriptor, &locked) == 0 && lstat(path, &present) == 0
        && FileIdentity(locked) == FileIdentity(present)
    }
  }

  /// Returns the present path of the locked folder or file, also where a folder above it was renamed; `nil` if it was
  /// deleted.
  public var presentPath: String? {
    // Without /proc nothing is known of a rename.
    let path = descriptor.withLock {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
    }
    return path.flatMap { isStillAt($0) ? $0 : nil }
  }

  /// Returns `nil` if the lock is held and waiting is not wanted, or was interrupted.
  private static func take(_ path: String, _ operation: Int32) throws(InstarError) -> FolderLock? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw .systemFailure("cannot lock '\(path)'", errno, code: .stateFolderFailed)
    }
    guard flock(descriptor, operation) == 0 else {
      let reason = errno
      close(descriptor)
      if reason == EWOULDBLOCK || reason == EINTR { return nil }
      throw .systemFailure("cannot lock '\(path)'", reason, code: .stateFolderFailed)
    }
    return FolderLock(descriptor: descriptor)
  }

  /// Releases the lock, as the last reference does.
  public func release() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { close(descriptor) }
      descriptor = -1
    }
  }
}
