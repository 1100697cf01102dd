import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// The conversation with one client, on a thread of its own: one call after the other, in Varlink's form.
///
/// Ends when the client closes it, is silent for `patience`, does not read, or sends anything but a call.
final class ControlSession: Sendable {
  let client: ControlClient
  private let channel: LineChannel
  private let feed: EventFeed
  private let records: ClientRecords
  private let handToLoop: @Sendable (ControlRequest) -> Bool
  /// Whether the client wants no reply to its present call.
  private let isOneway = Mutex(false)
  /// A client that is silent for so long is cut off.
  static let patience = Duration.seconds(60)
  /// A client that does not take its reply for so long is cut off.
  private static let sendPatience = Duration.seconds(5)
  /// The pause after each call, in seconds, so that one client does not take all the time of the loop.
  private static let callInterval = 0.005
  /// How often a client that watches hears of a change.
  private static let watchInterval = 1.0
  private static let storesInReply = 500
  private static let runsInReply = 100

  init(
    _ channel: LineChannel, client: ControlClient, feed: EventFeed, stateFolder: StateFolder,
    ask: @escaping @Sendable (ControlRequest) -> Bool
  ) {
    self.feed = feed
    records = ClientRecords(stateFolder: stateFolder, client: client)
    self.channel = channel
    self.client = client
    handToLoop = ask
  }

  func close() { channel.close() }

  /// Answers the client's first call with an error, before it comes, instead of serving the client.
  func turnAway(_ error: InstarError) {
    do throws(InstarError) {
      try fail(error)
    } catch {
      // The client is gone: there is nobody to tell.
    }
  }

  /// Answers calls until the conversation ends.
  func serve() {
    do {
      while case .line(let line) = try channel.receive(deadline: .now + Self.patience) {
        try answer(line)
        Thread.sleep(forTimeInterval: Self.callInterval)
      }
    } catch {
      // The client is gone, or broke the rules: there is nobody to tell.
    }
  }

  private func answer(_ line: Data) throws {
    let call = try ControlCall(line)
    isOneway.withLock { $0 = call.isOneway }
    do {
      if let method = call.managerMethod {
        try answer(method, call)
      } else {
        try answerService(call)
      }
    } catch let refusal as ControlCall.Refusal {
      try send(
        Varlink.Reply(refusal.parameters, error: "\(VarlinkService.interface).\(refusal.error)"))
    }
  }

  /// Answers a call of `io.instar.Manager`.
  private func answer(_ method: Manager.Method, _ call: ControlCall) throws {
    if method.needsMore { try call.requireMore() }
    switch method {
    case .getStatus: try sendStatus(repeating: call.takesMore)
    case .listStores: try sendStores(call.parameters())
    case .retry:
      let order: Manager.RetryParameters = try call.parameters()
      try replyDone(.retry(order.stores))
    case .rescan: try replyDone(.rescan)
    case .pause:
      let order: Manager.PauseParameters = try call.parameters()
      try replyDone(.pause(why: order.why, plan: order.plan))
    case .resume:
      let order: Manager.ResumeParameters = try call.parameters()
      try replyDone(.resume(plan: order.plan))
    case .approve:
      let order: Manager.ApproveParameters = try call.parameters()
      try replyDone(.approve(plan: order.plan, stores: order.stores))
    case .hold: try hold(call.parameters())
    case .release: try release(call.parameters())
    case .listHolds: try reply { () throws(InstarError) in try records.holds() }
    case .history: try sendRuns(call.parameters())
    case .permit: try replyDone(.permit(call.parameters()))
    case .monitor: try sendEvents()
    }
  }

  /// Answers a call of `org.varlink.service`, or of a method that does not exist.
  private func answerService(_ call: ControlCall) throws {
    switch call.method {
    case "\(VarlinkService.interface).GetInfo":
      try reply(
        VarlinkService.Info(
          version: Release.version, interfaces: [VarlinkService.interface, Manager.interface]))
    case "\(VarlinkService.interface).GetInterfaceDescription":
      try describe(call.parameters())
    default:
      let interface = call.method.split(separator: ".").dropLast().joined(separator: ".")
      let isKnown = [VarlinkService.interface, Manager.interface].contains(interface)
      throw isKnown
        ? ControlCall.Refusal(error: "MethodNotFound", parameters: ["method": call.method])
        : ControlCall.Refusal(error: "InterfaceNotFound", parameters: ["interface": interface])
    }
  }

  // MARK: Methods

  private func describe(_ name: VarlinkService.InterfaceName) throws {
    switch name.interface {
    case VarlinkService.interface:
      try reply(VarlinkService.InterfaceDescription(description: VarlinkService.description))
    case Manager.interface:
      try reply(VarlinkService.InterfaceDescription(description: Manager.description))
    default:
      throw ControlCall.Refusal(
        error: "InterfaceNotFound", parameters: ["interface": name.interface])
    }
  }

  private func sendStatus(repeating: Bool) throws(InstarError) {
    var last: Manager.Status?
    repeat {
      guard case .status(let status) = ask(.status) else { return channel.close() }
      if status != last {
        last = status
        try reply(Manager.StatusReply(status: status), continues: repeating)
      }
      if repeating {
        Thread.sleep(forTimeInterval: Self.watchInterval)
        // A client that has closed its end takes no reply. It sends nothing while it watches.
        if case .closed = try channel.receive(deadline: .now) { return }
      }
    } while repeating
  }

  private func sendStores(_ filter: Manager.StoreFilter) throws(InstarError) {
    guard case .stores(let paths) = ask(.stores) else { return channel.close() }
    var rest = paths.filter(filter.allows(path:)).sorted()[...]
    var found: [Manager.Store] = []
    while !rest.isEmpty {
      guard case .store(let stores) = ask(.store(Array(rest.prefix(Self.storesInReply)))) else {
        return channel.close()
      }
      rest = rest.dropFirst(Self.storesInReply)
      found += stores.filter(filter.allows)
      if found.count >= Self.storesInReply, !rest.isEmpty {
        try reply(Manager.StoresReply(stores: found), continues: true)
        found = []
      }
    }
    try reply(Manager.StoresReply(stores: found))
  }

  private func hold(_ order: Manager.HoldParameters) throws(InstarError) {
    try reply { () throws(InstarError) in
      try requireWatched(to: "hold", order.store)
      let hold = try records.hold(order.store, why: order.why)
      _ = ask(.holdsChanged(of: [order.store, hold.store]))
      return Manager.HoldReply(hold: hold)
    }
  }

  private func release(_ order: Manager.ReleaseParameters) throws(InstarError) {
    let store = order.store
    try reply { () throws(InstarError) in
      // An administrator may also end the hold of a store that is gone.
      if !client.isAdmin { try requireWatched(to: "release", store) }
      let hold = try records.release(store, only: order.hold)
      if let hold { _ = ask(.holdsChanged(of: [store, hold.store])) }
      return Manager.HoldReply(hold: hold)
    }
  }

  private func requireWatched(to act: String, _ store: String) throws(InstarError) {
    // Here and not on the loop: the folder may be on a file system that does not answer.
    let path = StorePath(store)
    if case .failed(let error) = ask(.checkWatched(to: act, store: store, path)) { throw error }
  }

  private func sendRuns(_ filter: Manager.RunFilter) throws(InstarError) {
    let found: (runs: [RecordedRun], unreadableLines: Int)
    do throws(InstarError) {
      found = try records.history(filter, ownsWatchedStore: ownsWatchedStore)
    } catch {
      return try fail(error)
    }
    // Many runs need much memory for a moment.
    if found.runs.count > Self.runsInReply { MemorySettings.returnUnused() }
    var rest = found.runs[...]
    repeat {
      let some = rest.prefix(Self.runsInReply)
      rest = rest.dropFirst(some.count)
      let reports: [RunReport]
      do throws(InstarError) {
        reports = try records.stateFolder.reports(of: some)
      } catch {
        return try fail(error)
      }
      try reply(
        Manager.RunsReply(runs: reports, unreadableLines: found.unreadableLines),
        continues: !rest.isEmpty)
    } while !rest.isEmpty
  }

  private func ownsWatchedStore() -> Bool {
    guard case .ownsStore(let owns) = ask(.ownsStore) else { return true }
    return owns
  }

  /// Sends events until the client closes its end.
  private func sendEvents() throws(InstarError) {
    let subscription = feed.subscribe()
    while true {
      if let reply = subscription.next(timeout: .seconds(Self.watchInterval)) {
        guard !maySee(reply.event) else {
          try self.reply(reply, continues: true)
          continue
        }
      }
      // Sending would have failed if the client is gone, but nothing was sent.
      if case .closed = try channel.receive(deadline: .now) {
        return
      }
    }
  }

  private func maySee(_ event: Manager.Event) -> Bool {
    if client.isAdmin { return true }
    guard let store = event.fields["INSTAR_STORE"] else { return false }
    return client.maySee(storeOf: WatchedVersion.owner(of: store))
  }

  private func replyDone(_ method: ControlRequest.Method) throws(InstarError) {
    switch ask(method) {
    case .retried(let retried): try reply(retried)
    case .permitted(let permitted): try reply(permitted)
    case .failed(let error): try fail(error)
    default: try reply(Varlink.Nothing())
    }
  }

  /// Asks the daemon's loop, and waits for its reply. If the loop has ended, or does not reply within `patience`, the
  /// reply is an error.
  private func ask(_ method: ControlRequest.Method) -> ControlRequest.Reply {
    let reply = AwaitedValue<ControlRequest.Reply>()
    let request = ControlRequest(method: method, client: client) { reply.give($0) }
    guard handToLoop(request) else { return .failed(Self.stopped) }
    // The loop answers each request, also while it stops; one that ended before it got there answers none.
    return reply.wait(within: Self.patience) ?? .failed(Self.stopped)
  }

  private static let stopped = InstarError(
    .daemonNotReachable, "cannot ask instard", cause: "instard is stopping",
    next: "to see whether instard runs, run: systemctl status instard")

  // MARK: Replies

  private func reply(_ parameters: some Codable, continues: Bool = false) throws(InstarError) {
    try send(Varlink.Reply(parameters, continues: continues ? true : nil))
  }

  /// Replies with what the work returns, or with its error.
  private func reply(_ work: () throws(InstarError) -> some Codable) throws(InstarError) {
    let result: Result<_, InstarError> = Result { () throws(InstarError) in try work() }
    switch result {
    case .success(let parameters): try reply(parameters)
    case .failure(let error): try fail(error)
    }
  }

  private func fail(_ error: InstarError) throws(InstarError) {
    try send(Varlink.Reply(Manager.Failure(error: error), error: Manager.failed))
  }

  private func send(_ reply: Varlink.Reply<some Codable>) throws(InstarError) {
    guard !isOneway.withLock({ $0 }) else { return }
    var line = try WireCoder.line(reply)
    if line.last == UInt8(ascii: "\n") { line.removeLast() }
    try channel.send(line, patience: Self.sendPatience)
  }
}
