import Foundation
import Glibc
import InstarControl
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarDaemon

/// A control socket whose loop answers each request at once, and clients that speak Varlink by hand.
@Suite("The control socket")
struct ControlSessionTests {
  private let folder: TemporaryFolder
  private let feed = EventFeed()
  private let socket: ControlSocket
  private let path: String
  private let state: StateFolder

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("instard.sock")
    state = try StateFolder(path: folder.path("state"))
    socket = try ControlSocket(at: path, feed: feed, stateFolder: state) { request in
      switch request.method {
      case .stores: request.reply(.stores((0..<1200).map { String(format: "/srv/%04d", $0) }))
      case .store(let paths):
        request.reply(.store(paths.map { Manager.Store(store: $0, activity: .idle) }))
      case .pause:
        request.reply(.failed(InstarError(.notPermitted, "cannot pause", cause: "not you")))
      case .permit(let new):
        guard request.client.mayPermit else { break }
        request.reply(
          .permitted(
            Manager.PermitReply(
              isCounted: new.permissions.isEmpty, running: ["P": new.permissions.count], pause: nil,
              rollouts: [], failures: [])))
      default: request.reply(.done)
      }
      return true
    }
  }

  private func connect() throws -> LineChannel {
    LineChannel(
      descriptor: try UnixSocket.connect(to: path), lineLimitBytes: Manager.replyLimitBytes,
      terminator: Varlink.terminator)
  }

  /// The next reply as text; `nil` where the daemon has closed the connection.
  private func reply(_ channel: LineChannel) throws -> String? {
    guard case .line(let line) = try channel.receive(deadline: soon()) else {
      return nil
    }
    return String(decoding: line, as: UTF8.self)
  }

  private func call(_ text: String, _ channel: LineChannel) throws -> String? {
    try channel.send(Data(text.utf8))
    return try reply(channel)
  }

  @Test("root and the coordinator's user may permit runs, and an administrator may not")
  func permits() throws {
    let channel = try connect()
    let reply = try call(
      #"{"method":"io.instar.Manager.Permit","parameters":{"permissions":[{"plan":"P","version":"2.0.0"}],"decidedAt":7}}"#,
      channel)
    #expect(reply?.contains(#""isCounted":false"#) == true)
    #expect(reply?.contains(#""running":{"P":1}"#) == true)
    let refused = try call(
      #"{"method":"io.instar.Manager.Permit","parameters":{"permissions":[{"plan":"P"}],"decidedAt":7}}"#,
      channel)
    #expect(refused?.contains("org.varlink.service.InvalidParameter") == true)

    func client(_ user: UInt32, _ groups: [UInt32] = []) -> ControlClient {
      ControlClient(
        UnixSocket.Peer(pid: 1, uid: user, groups: groups), adminGroup: 900, coordinator: 901)
    }
    #expect(client(0).mayPermit)
    #expect(client(901).mayPermit)
    #expect(!client(901).isAdmin)
    #expect(client(4000, [900]).isAdmin)
    #expect(!client(4000, [900]).mayPermit)
  }

  @Test("a client that follows events gets each in order, and is told how many it has missed")
  func monitor() throws {
    func event(_ number: Int) -> Manager.Event {
      Manager.Event(
        event: "run-migrated", at: 0, priority: 5, message: "run \(number)", fields: [:])
    }
    let channel = try connect()
    try channel.send(Data(#"{"method":"io.instar.Manager.Monitor","more":true}"#.utf8))
    // The client follows from the first event that it gets.
    var first: Manager.EventReply?
    for _ in 0..<300 where first == nil {
      feed.publish(event(0))
      if case .line(let line) = try channel.receive(deadline: .now + .milliseconds(100)) {
        first = try decoded(line)
      }
    }
    #expect(first?.event == event(0) && first?.missed == nil)

    for number in 1...100 { feed.publish(event(number)) }
    var received = 0
    while received < 100, case .line(let line) = try channel.receive(deadline: soon()) {
      let reply = try decoded(line)
      guard reply.event != event(0) else { continue }
      received += 1
      #expect(reply.event == event(received))
    }
    #expect(received == 100)

    let slow = feed.subscribe()
    for number in 0..<1005 { feed.publish(event(number)) }
    for number in 0..<1000 {
      #expect(slow.next(timeout: .zero) == Manager.EventReply(event: event(number)))
    }
    #expect(slow.next(timeout: .zero) == nil)
    feed.publish(event(2000))
    #expect(slow.next(timeout: .zero) == Manager.EventReply(event: event(2000), missed: 5))
  }

  private func decoded(_ line: Data) throws -> Manager.EventReply {
    try WireCoder.message(Varlink.Reply<Manager.EventReply>.self, from: line).parameters
  }

  @Test("the control socket describes itself as each Varlink service does")
  func introspection() throws {
    let channel = try connect()
    let info = try #require(try call(#"{"method":"org.varlink.service.GetInfo"}"#, channel))
    #expect(info.contains(#""interfaces":["org.varlink.service","io.instar.Manager"]"#))
    for interface in ["org.varlink.service", "io.instar.Manager"] {
      let description = try #require(
        try call(
          #"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"\#(interface)"}}"#,
          channel))
      #expect(description.contains("interface \(interface)"))
    }
  }

  @Test(
    "what is wrong with a call is said by Varlink's errors, and the conversation goes on",
    arguments: [
      (#"{"method":"io.instar.Manager.Explode"}"#, "MethodNotFound"),
      (#"{"method":"io.other.Manager.Pause"}"#, "InterfaceNotFound"),
      (#"{"method":"io.instar.Manager.ListStores","parameters":{}}"#, "ExpectedMore"),
      (#"{"method":"io.instar.Manager.Monitor"}"#, "ExpectedMore"),
      (#"{"method":"io.instar.Manager.History","parameters":{}}"#, "ExpectedMore"),
      (#"{"method":"io.instar.Manager.Retry","parameters":{"stores":7}}"#, "InvalidParameter"),
    ])
  func refused(_ text: String, _ error: String) throws {
    let channel = try connect()
    #expect(try call(text, channel)?.contains("org.varlink.service.\(error)") == true)
    #expect(
      try call(#"{"method":"io.instar.Manager.Rescan","parameters":{}}"#, channel)
        == #"{"parameters":{}}"#)
  }

  @Test(
    "a parameter of the wrong type, with a null byte or with too large a number is named",
    arguments: [
      (#"{"method":"io.instar.Manager.Retry","parameters":{"stores":[1]}}"#, "stores"),
      (#"{"method":"io.instar.Manager.Retry"}"#, "stores"),
      (#"{"method":"io.instar.Manager.Pause","parameters":{"why":[]}}"#, "why"),
      (
        #"{"method":"io.instar.Manager.ListStores","more":true,"parameters":{"state":"odd"}}"#,
        "state"
      ),
      (#"{"method":"io.instar.Manager.Pause","parameters":7}"#, "parameters"),
      (
        #"{"method":"io.instar.Manager.Hold","parameters":{"store":"/srv/a\u0000","why":"x"}}"#,
        "store"
      ),
      (
        #"{"method":"io.instar.Manager.Retry","parameters":{"stores":["/a","/b\u0000c"]}}"#,
        "stores"
      ),
      (
        #"{"method":"io.instar.Manager.History","more":true,"parameters":{"limit":1e99,"store":"/a"}}"#,
        "limit"
      ),
    ])
  func invalidParameter(_ text: String, _ name: String) throws {
    let answer = try #require(try call(text, try connect()))
    #expect(answer.contains("org.varlink.service.InvalidParameter"))
    #expect(answer.contains(#""parameter":"\#(name)""#))
  }

  @Test("parameters can be left out where none are needed, and a call without reply has none")
  func withoutParameters() throws {
    let channel = try connect()
    let listed = try call(#"{"method":"io.instar.Manager.ListStores","more":true}"#, channel)
    #expect(listed?.contains(#""continues":true"#) == true)
    let other = try connect()
    try other.send(Data(#"{"method":"io.instar.Manager.Rescan","oneway":true}"#.utf8))
    // The answer is that of the second call.
    let answer = try call(#"{"method":"org.varlink.service.GetInfo"}"#, other)
    #expect(answer?.contains("interfaces") == true)
  }

  @Test("an error of the daemon arrives as one value")
  func failure() throws {
    let channel = try connect()
    let text = try #require(
      try call(#"{"method":"io.instar.Manager.Pause","parameters":{}}"#, channel))
    let reply = try WireCoder.message(Varlink.Reply<Manager.Failure>.self, from: Data(text.utf8))
    #expect(reply.error == "io.instar.Manager.Failed")
    #expect(reply.parameters.error.code == .notPermitted)
  }

  @Test("a long list comes in several replies")
  func list() throws {
    let channel = try connect()
    var text = try call(
      #"{"method":"io.instar.Manager.ListStores","parameters":{},"more":true}"#, channel)
    var counts: [Int] = []
    while let current = text {
      let reply = try WireCoder.message(
        Varlink.Reply<Manager.StoresReply>.self, from: Data(current.utf8))
      counts.append(reply.parameters.stores.count)
      text = reply.continues == true ? try self.reply(channel) : nil
    }
    #expect(counts == [500, 500, 200])
  }

  @Test("many runs come in several replies, and those that a limit leaves out do not")
  func history() throws {
    for number in 0..<250 {
      try state.append(
        RunReport(
          run: "R\(number)", store: "/srv/\(number % 2).store", result: .migrated,
          startedAt: Double(number)))
    }
    func runs(_ filter: String) throws -> [[String]] {
      let channel = try connect()
      var text = try call(
        #"{"method":"io.instar.Manager.History","parameters":{\#(filter)},"more":true}"#, channel)
      var replies: [[String]] = []
      while let current = text {
        let reply = try WireCoder.message(
          Varlink.Reply<Manager.RunsReply>.self, from: Data(current.utf8))
        replies.append(reply.parameters.runs.map(\.run))
        text = reply.continues == true ? try self.reply(channel) : nil
      }
      return replies
    }
    #expect(try runs("").map(\.count) == [100, 100, 50])
    #expect(try runs("").joined().first == "R0")
    #expect(try runs(#""limit":2"#) == [["R248", "R249"]])
    #expect(try runs(#""store":"/srv/1.store","limit":2"#) == [["R247", "R249"]])
    #expect(try runs(#""results":["failed","refused"]"#) == [[]])
    #expect(try runs(#""results":["failed","migrated"],"limit":1"#) == [["R249"]])
  }

  @Test("a hold over the socket is in the state folder, and its reason is one line")
  func hold() throws {
    try folder.write("a store", to: "a.store")
    let store = folder.path("a.store")
    let channel = try connect()
    let order =
      #"{"method":"io.instar.Manager.Hold","parameters":{"store":"\#(store)","why":"audit"}}"#
    let placed = try #require(try call(order, channel))
    #expect(placed.contains(#""why":"audit""#), "\(placed)")
    #expect(try state.hold(on: store)?.why == "audit")
    #expect(try call(order, channel)?.contains("already held by") == true)
    let listed = try call(#"{"method":"io.instar.Manager.ListHolds"}"#, channel)
    #expect(listed?.contains(#""why":"audit""#) == true)
    let release =
      #"{"method":"io.instar.Manager.Release","parameters":{"store":"\#(store)"}}"#
    #expect(try call(release, channel)?.contains(#""why":"audit""#) == true)
    #expect(try state.hold(on: store) == nil)
    #expect(try call(release, channel) == #"{"parameters":{}}"#)
    let lines = try call(order.replacing("audit", with: #"two\nlines"#), channel)
    #expect(lines?.contains("more than one line") == true)
  }

  @Test(
    "who sends no Varlink, or a call that is too long, is cut off",
    arguments: ["GET / HTTP/1.1", "[]", String(repeating: "x", count: 2 << 20)])
  func malformed(_ text: String) throws {
    let channel = try connect()
    // The daemon may close before all is sent.
    try? channel.send(Data(text.utf8))
    #expect(try reply(channel) == nil)
    #expect(try call(#"{"method":"org.varlink.service.GetInfo"}"#, connect()) != nil)
  }

  @Test("silent clients are limited, one more is told so, and others go on when they are gone")
  func silent() async throws {
    let limit = geteuid() == 0 ? ClientPlaces.limit : ClientPlaces.limitOfUser
    var clients = try (0..<limit).map { _ in try connect() }
    // Each has its thread when it has had an answer.
    for client in clients { _ = try call(#"{"method":"org.varlink.service.GetInfo"}"#, client) }
    let refused = #expect(throws: InstarError.self) {
      try DaemonConnection(to: path).call(.rescan)
    }
    #expect(refused?.code == .daemonNotReachable)
    #expect(refused?.cause.contains("\(limit) connections") == true, "\(refused?.cause ?? "")")
    for client in clients { client.close() }
    clients = []
    try await wait("an answer to another client") {
      (try? call(#"{"method":"org.varlink.service.GetInfo"}"#, connect())) != nil
    }
  }

  @Test("one administrator leaves places to others, and all administrators leave some to root")
  func places() throws {
    func client(_ user: UInt32, _ groups: [UInt32] = []) -> ControlClient {
      ControlClient(UnixSocket.Peer(pid: 1, uid: user, groups: groups), adminGroup: 900)
    }
    var places = ClientPlaces()
    /// How many clients of the user are taken.
    func fill(_ client: ControlClient) -> Int {
      for count in 0..<1000 where (try? places.admit(client)) == nil { return count }
      return 1000
    }
    #expect((4000..<4008).map { fill(client($0)) } == [16, 16, 16, 16, 16, 16, 0, 0])
    #expect(fill(client(5000, [900])) == 16)
    #expect(fill(client(5001, [900])) == 0)
    #expect(fill(client(0)) == 16)
    places.dismiss(client(5000, [900]))
    #expect(throws: InstarError.self) { try places.admit(client(5001, [900])) }
    #expect(throws: Never.self) { try places.admit(client(0)) }
  }

  @Test("the error about an instard that does not answer says how long the call waited")
  func unanswered() throws {
    let silent = folder.path("silent.sock")
    // Nobody accepts the connection.
    let listener = try UnixSocket.listen(at: silent)
    defer { close(listener) }
    let error = #expect(throws: InstarError.self) {
      try DaemonConnection(to: silent).call(.rescan, patience: .milliseconds(50))
    }
    #expect(error?.code == .daemonNotReachable)
    #expect(error?.cause == "instard did not answer for 50 ms")
  }

  @Test("a path at which another process listens is refused, one that was left behind is taken")
  func listening() throws {
    #expect(throws: InstarError.self) { try UnixSocket.listen(at: path) }
    let left = folder.path("left.sock")
    for _ in 0..<2 {
      let descriptor = try UnixSocket.listen(at: left)
      close(descriptor)
    }
    #expect(throws: InstarError.self) {
      try UnixSocket.listen(at: folder.path(String(repeating: "x", count: 120)))
    }
  }
}
