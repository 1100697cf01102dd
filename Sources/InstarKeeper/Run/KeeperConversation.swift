internal import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire

/// The keeper's side of its conversation with the supervisor: it receives requests and sends events.
public protocol KeeperConversation: AnyObject {
  /// Waits for the next request; `nil` when the supervisor has closed the conversation.
  func next() throws(InstarError) -> KeeperRequest?

  /// As `next()`, and calls `rest` before it waits for more than a moment.
  func next(resting rest: () -> Void) throws(InstarError) -> KeeperRequest?

  func send(_ event: KeeperEvent) throws(InstarError)

  /// Sends an event at the latest with the next one that is sent. Each message wakes the supervisor.
  func post(_ event: KeeperEvent) throws(InstarError)
}

extension KeeperConversation {
  /// Calls `rest` at once.
  public func next(resting rest: () -> Void) throws(InstarError) -> KeeperRequest? {
    rest()
    return try next()
  }

  /// Sends the event at once.
  public func post(_ event: KeeperEvent) throws(InstarError) { try send(event) }

  /// Asks whether the run may enter a phase, and waits for the answer. When it returns, the phase is on disk.
  ///
  /// - Throws: `interrupted` when the supervisor refuses or has ended.
  func enter(_ record: PhaseRecord) throws(InstarError) {
    let what = "cannot continue the run"
    try send(.ask(record))
    switch try next() {
    case .proceed:
      return
    case .refrain:
      throw InstarError(
        .interrupted, what, cause: "the supervisor canceled the run", next: CommandText.repetition)
    case nil:
      throw InstarError(
        .interrupted, what, cause: "the supervisor ended during the run",
        next: CommandText.repetition)
    default:
      throw InstarError(
        .protocolViolation, what, cause: "the supervisor answered a question with a request",
        next: InstarError.adviceOnOtherVersion)
    }
  }
}

/// A conversation over a stream socket, one JSON object per line.
public final class ChannelConversation: KeeperConversation {
  private let channel: LineChannel
  /// The lines that wait for the next event that is sent.
  private var posted = Data()

  /// Starts a conversation on a channel, which stays the caller's to close.
  public init(_ channel: LineChannel) {
    self.channel = channel
  }

  /// Waits for the supervisor's next request; `nil` once the supervisor has closed its end.
  ///
  /// - Throws: `protocolViolation` for a line that is not a request; the error of the channel.
  public func next() throws(InstarError) -> KeeperRequest? {
    switch try channel.receive() {
    case .line(let line): try Self.request(line)
    case .closed, .timedOut: nil
    }
  }

  /// As `next()`, and calls `rest` if no request has come after a tenth of a second.
  public func next(resting rest: () -> Void) throws(InstarError) -> KeeperRequest? {
    switch try channel.receive(deadline: .now + Self.moment) {
    case .line(let line): return try Self.request(line)
    case .closed: return nil
    case .timedOut:
      rest()
      return try next()
    }
  }

  private static let moment = Duration.milliseconds(100)

  private static func request(_ line: Data) throws(InstarError) -> KeeperRequest {
    if line.elementsEqual(KeeperRequest.encodedProceed.utf8) { return .proceed }
    return try WireCoder.message(KeeperRequest.self, from: line)
  }

  /// Sends an event as one line, after those that were posted, and blocks until the channel has taken all.
  ///
  /// - Throws: The error of the channel: the supervisor is gone.
  public func send(_ event: KeeperEvent) throws(InstarError) {
    try post(event)
    defer { posted = Data() }
    try channel.send(posted)
  }

  /// Keeps an event until the next one is sent.
  ///
  /// - Throws: The error of encoding it.
  public func post(_ event: KeeperEvent) throws(InstarError) {
    posted += try WireCoder.line(event)
  }
}
