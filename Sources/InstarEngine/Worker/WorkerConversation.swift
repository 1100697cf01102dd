import Foundation
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

/// The worker's end of its conversation with the keeper: one request after the other, until the keeper closes it.
///
/// Runs on the process's main thread, in a process that is already confined.
struct WorkerConversation {
  private let channel: FileHandle
  private let plans: [any SchemaMigrationPlan.Type]
  private let plugin: String
  private var received = Data()

  init(descriptor: Int32, plugin: String, plans: PluginPlans) {
    channel = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    self.plugin = plugin
    self.plans = plans.plans
  }

  /// - Throws: when the keeper is gone or sends something else than requests.
  mutating func run() throws {
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
    case .plan(let name, let from):
      try send(.planned(try definition(of: name).migration(from: from)))
    case .migrate(let name, let from, let clone, let sqlDebugLevel):
      let definition = try definition(of: name)
      let path = try definition.path(from: from)
      let connection = try StoreConnection(
        path: clone, durability: .clone, trace: sqlDebugLevel > 0 ? trace : nil)
      try StageExecutor(connection: connection) { event in
        // The keeper ends a worker that it does not hear from; there is nobody else to tell.
        try? send(event)
      }
      .run(path, plan: name)
      try connection.close()
      try send(.migrated)
    }
  }

  private var trace: @Sendable (String) -> Void {
    let channel = channel
    return { statement in
      if let line = try? WireCoder.line(WorkerEvent.sql("CoreData: sql: \(statement)")) {
        try? channel.write(contentsOf: line)
      }
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
    let line = try WireCoder.line(event)
    do {
      try channel.write(contentsOf: line)
    } catch {
      throw InstarError(
        .protocolViolation, "cannot answer the keeper", cause: String(describing: error))
    }
  }

  /// The next line, or `nil` when the keeper has closed its end.
  private mutating func nextLine() throws -> Data? {
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        let line = Data(received[..<end])
        received = Data(received[received.index(after: end)...])
        return line
      }
      guard let more = try channel.read(upToCount: 65_536), !more.isEmpty else { return nil }
      received.append(more)
    }
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
