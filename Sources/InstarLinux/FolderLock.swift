import Glibc
public import InstarSchema
import Synchronization

/// An exclusive lock on a folder or a file (flock(2)), which dies with the process that holds it,
/// however that ends.
///
/// It keeps out only those that ask for it, in this process too. It is of another kind than
/// SQLite's locks.
public final class FolderLock: Sendable {
  private let descriptor: Mutex<Int32>

  private init(descriptor: Int32) {
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Takes the lock without waiting.
  ///
  /// - Parameter path: A folder or file that exists.
  /// - Returns: `nil` where somebody else has it.
  /// - Throws: `stateFolderFailed` where the path cannot be opened.
  public static func tryLock(_ path: String) throws(InstarError) -> FolderLock? {
    try take(path, LOCK_EX | LOCK_NB)
  }

  /// Takes the lock, and waits for it as long as it takes: for locks that are held for moments
  /// only.
  ///
  /// - Parameter path: A folder or file that exists.
  /// - Throws: `stateFolderFailed` where the path cannot be opened.
  public static func lock(_ path: String) throws(InstarError) -> FolderLock {
    while true {
      if let lock = try take(path, LOCK_EX) { return lock }
    }
  }

  /// The locked folder or file is still the one at that path. A lock file that its last holder has
  /// deleted can still be locked by whoever had it open, and then keeps nobody out.
  public func isStillAt(_ path: String) -> Bool {
    descriptor.withLock { descriptor in
      var locked = stat()
      var present = stat()
      return fstat(descriptor, &locked) == 0 && lstat(path, &present) == 0
        && locked.st_dev == present.st_dev && locked.st_ino == present.st_ino
    }
  }

  /// `nil` where somebody else has it and waiting is not wanted, or was interrupted.
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

  /// Lets go of the lock; done by itself with the last reference.
  public func release() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { close(descriptor) }
      descriptor = -1
    }
  }
}
