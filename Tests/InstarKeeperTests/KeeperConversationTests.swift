import Foundation
import InstarLinux
import InstarSchema
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("The keeper's conversation")
struct KeeperConversationTests {
  @Test("events that can wait are sent with the next one, in their order, and once")
  func posted() throws {
    let (supervisor, descriptor) = try LineChannel.pair()
    let conversation = ChannelConversation(LineChannel(descriptor: descriptor))
    func event(_ step: RunEvent.Step) -> KeeperEvent {
      .run(RunEvent(run: "a", store: "/a.store", step: step))
    }
    func received() throws -> [KeeperEvent] {
      var events: [KeeperEvent] = []
      while case .line(let line) = try supervisor.receive(deadline: .now) {
        events.append(try WireCoder.message(KeeperEvent.self, from: line))
      }
      return events
    }
    try conversation.post(event(.started))
    try conversation.post(event(.locked))
    #expect(try received().isEmpty)
    try conversation.send(event(.verified))
    #expect(try received() == [event(.started), event(.locked), event(.verified)])
    try conversation.send(.done)
    #expect(try received() == [.done])
  }
}
