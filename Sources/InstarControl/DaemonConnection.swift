import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// A connection to a running instard, through its control socket (`io.instar.Manager`).
public struct DaemonConnection: Sendable {
  private let channel: LineChannel
  private let option: String
  /// How long to wait for a reply.
  public static let patience = Duration.seconds(60)

  /// Connects to the control socket.
  ///
  /// - Parameter option: What a command needs to reach this instard, such as " --socket 'PATH'"; empty for the default.
  /// - Throws: `daemonNotReachable`.
  public init(to socket: String, option: String = "") throws(InstarError) {
    self.option = option
    do throws(InstarError) {
      channel = LineChannel(
        descriptor: try UnixSocket.connect(to: socket), lineLimitBytes: Manager.replyLimitBytes,
        terminator: Varlink.terminator)
    } catch {
      var error = error.about("cannot reach instard")
      // Also where the path is too long.
      error.code = .daemonNotReachable
      throw error
    }
  }

  /// Returns a text of instard, in which commands reach this instard. `call` and `stream` do so in errors.
  public func addressed(_ text: String) -> String {
    CommandText.completing(text, .instard(option: option))
  }

  /// Returns a store of instard, in whose texts commands reach this instard.
  public func addressed(_ store: Manager.Store) -> Manager.Store {
    var store = store
    store.reason = store.reason.map(addressed)
    store.notRetried = store.notRetried.map(addressed)
    store.error?.completeNext(.instard(option: option))
    return store
  }

  /// Calls a method and returns its reply.
  ///
  /// - Throws: `daemonNotReachable`; what the daemon reports.
  public func call<Reply: Codable>(
    _ method: Manager.Method, _ parameters: some Codable = Varlink.Nothing(),
    returning type: Reply.Type = Varlink.Nothing.self, patience: Duration = Self.patience
  ) throws(InstarError) -> Reply {
    var result: Reply?
    try call(method, parameters, more: nil, patience: patience) {
      (reply: Reply) throws(InstarError) in result = reply
    }
    guard let result else { throw Self.ended }
    return result
  }

  /// Calls a method that has several replies. Returns after the last one.
  ///
  /// - Throws: `daemonNotReachable`; what the daemon reports; an error of `onReply`.
  ///
  /// - Parameter patience: How long to wait for each reply; `nil` for as long as it takes.
  public func stream<Reply: Codable>(
    _ method: Manager.Method, _ parameters: some Codable = Varlink.Nothing(),
    patience: Duration? = Self.patience, onReply: (Reply) throws(InstarError) -> Void
  ) throws(InstarError) {
    try call(method, parameters, more: true, patience: patience, onReply: onReply)
  }

  private func call<Reply: Codable>(
    _ method: Manager.Method, _ parameters: some Codable, more: Bool?, patience: Duration?,
    onReply: (Reply) throws(InstarError) -> Void
  ) throws(InstarError) {
    var line = try WireCoder.line(
      Varlink.CallWithParameters(
        method: method.qualifiedName, parameters: parameters, more: more))
    if line.last == UInt8(ascii: "\n") { line.removeLast() }
    do throws(InstarError) {
      try channel.send(line)
    } catch {
      // instard has closed the connection. The last reply that instard sent says why.
      guard error.code == .interrupted else { throw Self.ended }
    }
    while true {
      let line = try receive(patience)
      let head = try WireCoder.message(Varlink.ReplyHead.self, from: line)
      if let error = head.error { throw failure(error, line) }
      try onReply(try WireCoder.message(Varlink.Reply<Reply>.self, from: line).parameters)
      if head.continues != true { return }
    }
  }

  private func receive(_ patience: Duration?) throws(InstarError) -> Data {
    switch try channel.receive(deadline: patience.map { .now + $0 }) {
    case .line(let line): return line
    case .closed: throw Self.ended
    case .timedOut:
      let wait = patience.map { " for \(DurationText.format($0))" } ?? ""
      throw InstarError(
        .daemonNotReachable, "cannot call instard", cause: "instard did not answer\(wait)",
        next: "to see what it does, run: journalctl -t instard -n 20")
    }
  }

  private func failure(_ name: String, _ line: Data) -> InstarError {
    if name == Manager.failed,
      let reply = try? WireCoder.message(Varlink.Reply<Manager.Failure>.self, from: line)
    {
      var error = reply.parameters.error
      error.completeNext(.instard(option: option))
      return error
    }
    return InstarError(
      .daemonNotReachable, "cannot call instard", cause: "instard answered \(name)",
      next: "use instarctl and instard of the same release")
  }

  private static let ended = InstarError(
    .daemonNotReachable, "cannot call instard", cause: "instard closed the connection",
    next: "to see whether instard runs, run: systemctl status instard")
}
