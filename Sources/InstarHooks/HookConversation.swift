public import InstarLinux
public import InstarSchema
import InstarWire

/// The runner's side of its conversation with instard: one request after the other.
public struct HookConversation {
  private let channel: LineChannel
  private let makeRunner: () throws(InstarError) -> HookRunner

  /// - Parameter makeRunner: Called for each request, so that a changed configuration counts at once.
  public init(_ channel: LineChannel, makeRunner: @escaping () throws(InstarError) -> HookRunner) {
    self.channel = channel
    self.makeRunner = makeRunner
  }

  /// Answers requests until instard closes the conversation.
  ///
  /// - Throws: `protocolViolation`; `interrupted` if instard does not wait for a reply.
  public func serve() throws(InstarError) {
    while case .line(let line) = try channel.receive() {
      let request = try WireCoder.message(HookRequest.self, from: line)
      let runner: HookRunner
      do throws(InstarError) {
        runner = try makeRunner()
      } catch {
        try send(.failed(error))
        continue
      }
      try runner.serve(request, reply: send)
    }
  }

  private func send(_ reply: HookReply) throws(InstarError) {
    try channel.send(try WireCoder.line(reply))
  }
}
