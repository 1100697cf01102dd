public import InstarLinux
public import InstarSchema
public import InstarWire

/// The keeper's end of its conversation with the supervisor: requests in, events out.
public protocol KeeperConversation: AnyObject {
  /// The next request; `nil` when the supervisor has closed the conversation.
  func next() throws(InstarError) -> KeeperRequest?

  func send(_ event: KeeperEvent) throws(InstarError)
}

extension KeeperConversation {
  /// Asks whether the run may enter a phase, and waits for the answer: after `.proceed` the phase
  /// is on disk.
  ///
  /// - Throws: `interrupted` when the supervisor refrains, or is gone.
  func enter(_ record: PhaseRecord) throws(InstarError) {
    let what = "cannot go on with the run"
    try send(.ask(record))
    switch try next() {
    case .proceed:
      return
    case .refrain:
      throw InstarError(
        .interrupted, what, cause: "the supervisor called the run off", next: "try again")
    case nil:
      throw InstarError(
        .interrupted, what, cause: "the supervisor is gone", next: "try again")
    default:
      throw InstarError(
        .protocolViolation, what, cause: "the supervisor answered a question with a request")
    }
  }
}

/// A conversation over a stream socket, one JSON object a line.
public final class ChannelConversation: KeeperConversation {
  private let channel: LineChannel

  public init(_ channel: LineChannel) {
    self.channel = channel
  }

  public func next() throws(InstarError) -> KeeperRequest? {
    switch try channel.receive() {
    case .line(let line): return try WireCoder.message(KeeperRequest.self, from: line)
    case .closed, .timedOut: return nil
    }
  }

  public func send(_ event: KeeperEvent) throws(InstarError) {
    try channel.send(try WireCoder.line(event))
  }
}
