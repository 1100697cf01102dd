import CInstar
import Foundation
import Glibc
import InstarSchema
import Synchronization

/// Reports that something was mounted or unmounted, as this process sees it (proc(5), `/proc/self/mountinfo`).
///
/// inotify reports an unmount, but not a file system that is mounted over a watched folder.
public final class MountWatch: Sendable {
  /// A mounted file system.
  public struct Mount: Sendable, Hashable {
    /// The kernel's number of the mount; another mount of the same file system has another one.
    public var number: Int
    /// Where it is mounted: an absolute path without symbolic links.
    public var path: String
  }

  private let list: Int32
  /// Written to by `close()`.
  private let end: (read: Int32, write: Int32)
  private let isClosed = Mutex(false)

  /// - Parameter onChange: Called on a thread of its own after each change; changes that follow each other closely may
  ///   be told once.
  /// - Returns: `nil` where /proc is missing, or no thread or descriptor is left.
  public init?(onChange: @escaping @Sendable () -> Void) {
    list = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
    var ends: (read: Int32, write: Int32) = (-1, -1)
    guard list >= 0, instar_pipe(&ends.read, &ends.write) == 0 else {
      if list >= 0 { Glibc.close(list) }
      return nil
    }
    end = ends
    let (list, end) = (list, ends.read)
    let thread = Thread {
      while true {
        var polled = [
          pollfd(fd: list, events: Int16(POLLPRI), revents: 0),
          pollfd(fd: end, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&polled, 2, -1)
        if count < 0, errno == EINTR { continue }
        guard count > 0, polled[1].revents == 0 else { break }
        onChange()
      }
      Glibc.close(list)
      Glibc.close(end)
    }
    thread.name = "instar-mounts"
    thread.stackSize = 128 << 10
    thread.start()
  }

  deinit { close() }

  /// Ends the reports; one may be on its way.
  public func close() {
    let wasClosed = isClosed.withLock { isClosed in
      defer { isClosed = true }
      return isClosed
    }
    if !wasClosed { Glibc.close(end.write) }
  }

  /// Returns what is mounted now, in the order of the mounts; nothing where /proc is missing.
  public static func mounts() -> [Mount] {
    guard let file = fopen("/proc/self/mountinfo", "re") else { return [] }
    defer { fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    var mounts: [Mount] = []
    while getline(&line, &capacity, file) > 0, let text = line {
      let fields = String(cString: text).split(separator: " ", maxSplits: 5)
      guard fields.count > 4, let number = Int(fields[0]) else { continue }
      mounts.append(Mount(number: number, path: unescaped(fields[4])))
    }
    return mounts
  }

  /// The kernel writes blanks and backslashes as `\040`.
  static func unescaped(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(3), as: UTF8.self)
      if byte == UInt8(ascii: "\\"), digits.utf8.count == 3, let code = UInt8(digits, radix: 8) {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension [MountWatch.Mount] {
  /// Returns the mounted file system of a file, by the file's path alone. It asks no file system, and follows no
  /// symbolic link in the path.
  package func mount(of path: String) -> MountWatch.Mount? {
    let above = filter { $0.path == path || path.isBelow($0.path) }
    // Of several at one place the last one hides the others.
    return above.reversed().max { $0.path.utf8.count < $1.path.utf8.count }
  }
}
