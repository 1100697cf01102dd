import Foundation
import Glibc
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

/// The worker's end of its conversation with the keeper: one request after the other, until the keeper closes it.
///
/// Runs on the process's main thread, in a process that is already confined.
struct WorkerConversation {
  private let channel: WorkerChannel
  private let plans: [any SchemaMigrationPlan.Type]
  private let plugin: String
  private var received = Data()

  init(descriptor: Int32, plugin: String, plans: PluginPlans) {
    channel = WorkerChannel(descriptor: descriptor)
    self.plugin = plugin
    self.plans = plans.plans
  }

  /// - Throws: when the keeper is gone or sends something else than requests.
  mutating func run() throws {
    UnansweredRead.reporting { [channel] error in
      // The process ends next; a keeper that does not hear why sees that.
      if let line = try? WireCoder.line(WorkerEvent.failed(error)) { try? channel.write(line) }
    }
    try send(.ready)
    while let line = try nextLine() {
      let request = try WireCoder.message(WorkerRequest.self, from: line)
      do throws(InstarError) {
        try answer(request)
      } catch {
        try send(.failed(error))
      }
    }
  }

  private func answer(_ request: WorkerRequest) throws(InstarError) {
    switch request {
    case .describe:
      var manifests: [PlanManifest] = []
      for plan in plans { manifests.append(try PlanDefinition(plan).manifest) }
      try send(.described(PluginManifest(plans: manifests)))
    case .plan(let name, let from, let store):
      try send(.planned(try definition(of: name).migration(from: from, of: store)))
    case .migrate(let name, let from, let clone, let store, let externalFolder, let sqlDebugLevel):
      let definition = try definition(of: name)
      let path = try definition.path(from: from)
      let connection = try StoreConnection(
        path: clone, durability: .clone, externalFolder: externalFolder,
        log: log(level: max(sqlDebugLevel, SQLLog.levelOfThisProcess)))
      try StageExecutor(connection: connection, store: store) { event in
        // The keeper ends a worker that it does not hear from; there is nobody else to tell.
        try? send(event)
      }
      .run(path, plan: name)
      try connection.close()
      try send(.migrated)
    }
  }

  private func log(level: Int) -> SQLLog? {
    guard level > 0 else { return nil }
    return SQLLog(SQLDebug(level: level)) { [channel] text in
      if let line = try? WireCoder.line(WorkerEvent.sql(text)) { try? channel.write(line) }
    }
  }

  private func definition(of name: String) throws(InstarError) -> PlanDefinition {
    guard let plan = plans.first(where: { "\($0)" == name }) else {
      throw InstarError(
        .noPlan, "cannot use plan \(name)", cause: "plugin '\(plugin)' does not have it")
    }
    return try PlanDefinition(plan)
  }

  private func send(_ event: WorkerEvent) throws(InstarError) {
    try channel.write(try WireCoder.line(event))
  }

  /// The next line, or `nil` when the keeper has closed its end.
  private mutating func nextLine() throws -> Data? {
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        let line = Data(received[..<end])
        received = Data(received[received.index(after: end)...])
        return line
      }
      guard let more = try channel.read() else { return nil }
      received.append(more)
    }
  }
}

/// The worker's socket to the keeper. Blocking: there is nothing else to do while the keeper is silent.
private struct WorkerChannel: Sendable {
  let descriptor: Int32

  /// What has arrived, at least one byte; `nil` when the keeper has closed its end.
  func read() throws(InstarError) -> Data? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count > 0 { return Data(buffer[..<count]) }
      if count == 0 { return nil }
      if errno != EINTR { throw failure("cannot hear the keeper") }
    }
  }

  func write(_ data: Data) throws(InstarError) {
    var rest = data[...]
    while !rest.isEmpty {
      // Without SIGPIPE: a keeper that is gone is an error like any other.
      let count = rest.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw failure("cannot answer the keeper")
      }
    }
  }

  private func failure(_ what: String) -> InstarError {
    InstarError(.protocolViolation, what, cause: String(cString: strerror(errno)))
  }
}

/// What the launcher `instar-worker` calls when library and plugin are loaded.
///
/// - Parameter plans: the plugin's entry point, as `#InstarPlugin` emits it.
/// - Returns: the process's exit status: 0 when the keeper closed the conversation.
@_cdecl("instar_worker_main")
public func instar_worker_main(
  _ descriptor: Int32, _ plugin: UnsafePointer<CChar>,
  _ plans: @convention(c) () -> UnsafeMutableRawPointer
) -> Int32 {
  var conversation = WorkerConversation(
    descriptor: descriptor, plugin: String(cString: plugin), plans: PluginPlans.taking(plans()))
  do {
    try conversation.run()
    return 0
  } catch {
    return 1
  }
}
