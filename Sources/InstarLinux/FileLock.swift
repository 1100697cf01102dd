internal import CInstar
internal import Foundation
package import InstarSchema

/// A lock of a process on bytes of a file, such as those that SQLite takes (fcntl(2), `F_SETLK`).
package struct FileLock: Sendable, Hashable {
  /// The process that has the lock.
  package var pid: Int32
  package var file: FileIdentity
  /// Whether it keeps out readers too.
  package var isExclusive: Bool
  package var bytes: ClosedRange<UInt64>

  package init(pid: Int32, file: FileIdentity, isExclusive: Bool, bytes: ClosedRange<UInt64>) {
    self.pid = pid
    self.file = file
    self.isExclusive = isExclusive
    self.bytes = bytes
  }

  /// Returns the locks of all processes that this one can see. Opens no file but the kernel's list.
  package static func all() -> [FileLock] {
    let text = FileManager.default.contents(atPath: "/proc/locks") ?? Data()
    return all(in: String(decoding: text, as: UTF8.self))
  }

  /// Reads the text of `/proc/locks` (proc_locks(5)):
  /// `1: POSIX  ADVISORY  WRITE 4211 fe:00:2868431 1073741824 1073742335`. A process that waits for a lock has an arrow
  /// after the number, and does not count.
  package static func all(in text: String) -> [FileLock] {
    text.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 8, words[1] == "POSIX", let pid = Int32(words[4]), pid > 0 else {
        return nil
      }
      let file = words[5].split(separator: ":")
      guard file.count == 3, let major = UInt32(file[0], radix: 16),
        let minor = UInt32(file[1], radix: 16), let inode = UInt64(file[2]),
        let first = UInt64(words[6]), let last = words[7] == "EOF" ? .max : UInt64(words[7]),
        first <= last
      else { return nil }
      return FileLock(
        pid: pid, file: FileIdentity(device: instar_device(major, minor), inode: inode),
        isExclusive: words[3] == "WRITE", bytes: first...last)
    }
  }
}
