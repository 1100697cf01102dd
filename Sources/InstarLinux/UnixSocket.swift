import CInstar
import Glibc
public import InstarSchema

/// Stream sockets in the file system (unix(7)).
public enum UnixSocket {
  /// The other end of a connection, as the kernel saw it when it was made.
  public struct Peer: Sendable, Hashable {
    public var pid: Int32
    public var uid: UInt32
    /// Its primary and its supplementary groups.
    public var groups: [UInt32]

    public init(pid: Int32, uid: UInt32, groups: [UInt32]) {
      self.pid = pid
      self.uid = uid
      self.groups = groups
    }
  }

  private static let backlog: Int32 = 64

  /// Whether a descriptor that was passed to this process is a socket.
  package static func isSocket(_ descriptor: Int32) -> Bool {
    var kind: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &length) == 0
  }

  /// Makes a socket to which every user may connect. What a process that has ended left at the path is removed.
  ///
  /// - Returns: A descriptor, which does not block and is close-on-exec.
  /// - Throws: `stateFolderFailed` if the path is too long, if another process listens there, or if the socket cannot
  ///   be made.
  public static func listen(at path: String) throws(InstarError) -> Int32 {
    let what = "cannot listen at '\(path)'"
    func failure(_ cause: String) -> InstarError {
      InstarError(
        .stateFolderFailed, what, cause: cause,
        next:
          "name another file in 'socket', or remove this one, and run: systemctl restart instard")
    }
    let descriptor = socket(
      AF_UNIX,
      Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw failure(String(cString: strerror(errno))) }
    do throws(InstarError) {
      if let other = try? connect(to: path) {
        close(other)
        throw InstarError(
          .stateFolderFailed, what, cause: "another process listens there",
          next: "stop that instard, or name another file in 'socket'")
      }
      // Nobody listens, so nobody needs it. Any other file stays, and bind(2) fails.
      if let status = stat(of: path), status.isSocket { unlink(path) }
      let bound = try withAddress(path, what) { bind(descriptor, $0, $1) }
      guard bound == 0, chmod(path, 0o666) == 0, Glibc.listen(descriptor, backlog) == 0 else {
        throw failure(String(cString: strerror(errno)))
      }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Connects to a socket.
  ///
  /// - Returns: A descriptor, which is close-on-exec.
  /// - Throws: `daemonNotReachable`.
  public static func connect(to path: String) throws(InstarError) -> Int32 {
    let what = "cannot connect to '\(path)'"
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .systemFailure(what, errno) }
    do throws(InstarError) {
      guard try withAddress(path, what, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
        let reason = errno
        if reason == ECONNREFUSED, stat(following: path)?.isSocket == false {
          throw InstarError(
            .daemonNotReachable, what, cause: "the file is not a socket",
            next: "pass the path of instard's socket with --socket")
        }
        guard [ENOENT, ECONNREFUSED].contains(reason) else {
          throw InstarError(
            .daemonNotReachable, what, cause: String(cString: strerror(reason)),
            next: "to see whether instard runs, run: systemctl status instard")
        }
        throw InstarError(
          .daemonNotReachable, what,
          cause: "instard is not running: nothing listens on '\(path)'",
          next: "run as root: systemctl start instard; "
            + "for an instard with another socket, pass --socket")
      }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// Takes the next connection.
  ///
  /// - Returns: A descriptor, which is close-on-exec; `nil` if there is none, or it ended before it was taken.
  public static func accept(from listener: Int32) -> Int32? {
    let descriptor = instar_accept(listener)
    return descriptor >= 0 ? descriptor : nil
  }

  /// Returns who made a connection; `nil` if the kernel does not say.
  public static func peer(of descriptor: Int32) -> Peer? {
    var pid: pid_t = 0
    var user: uid_t = 0
    var groups = [gid_t](repeating: 0, count: groupLimit)
    let count = instar_peer(descriptor, &pid, &user, &groups, Int32(groups.count))
    guard count >= 0 else { return nil }
    return Peer(pid: pid, uid: user, groups: Array(groups.prefix(Int(count))))
  }

  /// As many as a Linux process can have.
  private static let groupLimit = 65_537

  private static func withAddress<Value>(
    _ path: String, _ what: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
  ) throws(InstarError) -> Value {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw InstarError(
        .stateFolderFailed, what,
        cause:
          "the path has \(bytes.count) bytes; that of a socket has at most "
          + "\(MemoryLayout.size(ofValue: address.sun_path) - 1)",
        next: "name a shorter path in 'socket' of the configuration (instarctl: --socket)")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
