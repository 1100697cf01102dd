import CInstar
public import Foundation
import Glibc
public import InstarSchema
import Synchronization

/// A program that has loaded what its children need, and forks itself for each of them: that takes a fraction of the
/// time of a start.
///
/// It loads only the code of Instar, on a thread that ends before the first fork, so that children start like a new
/// process: with one thread, and with nothing that another child left. See `Sources/CInstar/ForkServer.c`.
///
/// Invariants:
/// - It has at most one child that was not waited for. Its user starts the next one after that.
/// - Once a call has failed, the server is of no use (`isUsable`), and its user drops it: an answer that comes late
///   must not be read as that to another call.
/// - It ends with the last reference, and its child with it.
public final class ForkServer: Sendable {
  /// The path of the program.
  public let executable: String
  private let process: ChildProcess
  private let socket: Int32
  private let hasFailed = Mutex(false)

  /// Whether every call until now has succeeded.
  public var isUsable: Bool { !hasFailed.withLock { $0 } }

  /// Starts a server. It loads its libraries while this process goes on.
  ///
  /// - Parameters:
  ///   - executable: A program that calls `instar_fork_serve`.
  ///   - arguments: Those of the server.
  ///   - environment: That of the server and of its children.
  /// - Throws: As `ChildProcess.start`.
  public init(
    executable: String, arguments: [String], environment: [String: String]
  ) throws(InstarError) {
    var (ours, theirs): (Int32, Int32) = (-1, -1)
    guard instar_packet_pair(&ours, &theirs) == 0 else {
      throw .systemFailure("cannot start '\(executable)'", errno)
    }
    defer { close(theirs) }
    do {
      process = try ChildProcess.start(
        executable: executable, arguments: arguments, environment: environment, channel: theirs)
    } catch {
      close(ours)
      throw error
    }
    self.executable = executable
    socket = ours
  }

  deinit { close(socket) }

  /// Forks a child, with descriptors as of `ChildProcess.start`.
  ///
  /// - Throws: `internalError` where the server cannot fork or has ended.
  public func start(
    arguments: [String], input: Data = Data(), channel: Int32, output: ChildProcess.Output
  ) throws(InstarError) -> ChildProcess {
    try ChildProcess.fork(
      from: self, arguments: arguments, input: input, channel: channel, output: output)
  }

  /// - Parameter descriptors: Become 0 to 3 of the child.
  /// - Returns: The child's number, which it keeps until `reap`.
  func fork(
    _ command: [String], _ what: String, _ descriptors: [Int32]
  ) throws(InstarError) -> pid_t {
    let text = command.flatMap { Array($0.utf8) + [0] }.map { CChar(bitPattern: $0) }
    var pid: pid_t = 0
    guard instar_fork_start(socket, text, text.count, descriptors, &pid) == 0 else {
      hasFailed.withLock { $0 = true }
      throw .systemFailure(what, errno)
    }
    return pid
  }

  /// Reaps the child, which has ended. `false` where the server has ended too.
  func reap(_ isSignaled: inout Int32, _ code: inout Int32) -> Bool {
    guard instar_fork_reap(socket, &isSignaled, &code) != 0 else { return true }
    hasFailed.withLock { $0 = true }
    return false
  }
}
