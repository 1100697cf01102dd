import InstarHooks
import InstarLinux
import InstarSchema
import InstarWire

/// A conversation with the runner of hooks, which is a process of its own.
///
/// Where the service manager listens for the runner (`instar-hook.socket`), it starts the runner outside of this
/// service, which has no network. Elsewhere this process starts the runner.
final class HookConnection {
  /// How much longer than a hook its report may take: the time between SIGTERM and SIGKILL, and the start.
  private static let grace = Duration.seconds(20)

  private let channel: LineChannel
  /// `nil` for a runner of the service manager.
  private let process: ChildProcess?

  /// - Throws: `hookFailed` if there is no runner.
  init(socket: String, program: String, configuration: String) throws(InstarError) {
    // Without the socket of the service manager, for whatever reason, the runner is started below.
    if let connection = try? UnixSocket.connect(to: socket) {
      channel = LineChannel(descriptor: connection)
      process = nil
      return
    }
    let (channel, childDescriptor) = try LineChannel.pair()
    // Kept open here, this end would hide that the runner has ended.
    let runnersEnd = LineChannel(descriptor: childDescriptor)
    process = try ChildProcess.start(
      executable: program, arguments: ["--config", configuration], channel: runnersEnd.descriptor,
      output: .captured(limitBytes: 16 << 10))
    self.channel = channel
  }

  /// Has the hooks of an event run.
  ///
  /// - Parameters:
  ///   - timeLimit: That of one hook.
  ///   - report: Called for each hook when it has ended.
  /// - Throws: `hookFailed` if the hooks could not be run; the conversation is over if the runner does not answer.
  func run(
    _ request: HookRequest, timeLimit: Duration, report: (HookReport) -> Void
  ) throws(InstarError) {
    try channel.send(try WireCoder.line(request))
    while true {
      switch try channel.receive(deadline: .now + timeLimit + Self.grace) {
      case .line(let line):
        switch try WireCoder.message(HookReply.self, from: line) {
        case .ran(let one): report(one)
        case .done: return
        case .failed(let error): throw error
        }
      case .closed: throw failure("the runner \(end ?? "closed the connection")")
      case .timedOut: throw failure("the runner of hooks does not answer")
      }
    }
  }

  /// Whether the runner has ended since the last event: somebody stopped its service. It sends nothing by itself.
  var hasEnded: Bool {
    do throws(InstarError) {
      if case .timedOut = try channel.receive(deadline: .now) { return false }
    } catch {
      // A connection that cannot be read is of no use either: the next one tells why.
    }
    return true
  }

  /// The runner ends when it has nothing left to do.
  func close() { channel.close() }

  private var end: String? {
    guard let process, let termination = try? process.wait(deadline: .now + .seconds(5)) else {
      return nil
    }
    let output = process.capturedOutput.split(separator: "\n").suffix(4).joined(separator: "; ")
    return "\(termination)" + (output.isEmpty ? "" : "; its last output: \(output)")
  }

  private func failure(_ cause: String) -> InstarError {
    InstarError(
      .hookFailed, "cannot run hooks", cause: cause,
      next: "to see why, run: journalctl -u instar-hook -u instard")
  }
}
