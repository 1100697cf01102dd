import Dispatch
import Glibc
import InstarEngine
import InstarLinux
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

/// The worker's side of its conversation with the keeper: answers one request after the other until the keeper closes
/// the channel.
///
/// Runs on the main thread of a process that is already confined.
struct WorkerConversation {
  private let channel: LineChannel
  private let plans: [any SchemaMigrationPlan.Type]
  private let plugin: String
  /// How often a statement is shown in a run. A run of 300,000 rows would otherwise flood the journal.
  private static let shownRepetitions = 5

  init(channel: LineChannel, plugin: String, plans: PluginPlans) {
    self.channel = channel
    self.plugin = plugin
    self.plans = plans.plans
  }

  /// - Throws: when the keeper is gone or sends something other than requests.
  func run() throws {
    Cancellation.observe()
    UnansweredRead.reporting { [channel] error in
      fflush(nil)
      // The process ends next. If this message is lost, the keeper still sees that.
      if let line = try? WireCoder.line(WorkerEvent.failed(error)) { try? channel.send(line) }
    }
    try send(.ready)
    while case .line(let line) = try channel.receive() {
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
      WorkBudget.limitSteps(clone: clone, exitStatus: WorkerEvent.exitStatusOverBudget)
      let log = log(level: max(sqlDebugLevel, SQLLog.levelOfThisProcess))
      let connection = try StoreConnection(
        path: clone, durability: .clone, externalFolder: externalFolder, log: log)
      defer { log?.writeCounts() }
      let clone = StageExecutor.Clone(connection: connection, store: store, path: path) { event in
        if case .stageFinished = event { log?.writeCounts() }
        // The keeper kills a worker that it cannot read from.
        try? send(event)
      }
      try StageExecutor.run([clone], plan: name, isCanceled: { Cancellation.isRequested })
      try connection.close()
      log?.writeCounts()
      try send(.migrated)
    }
  }

  private func log(level: Int) -> SQLLog? {
    guard level > 0 else { return nil }
    return SQLLog(SQLDebug(level: level), repetitionLimit: Self.shownRepetitions) {
      [channel] text in
      // Nothing that is logged can end a run.
      if let line = try? WireCoder.line(WorkerEvent.sql(text)) { try? channel.send(line) }
    }
  }

  private func definition(of name: String) throws(InstarError) -> PlanDefinition {
    guard let plan = plans.first(where: { "\($0)" == name }) else {
      throw InstarError(
        .noPlan, "cannot use plan \(name)", cause: "plugin '\(plugin)' does not have this plan",
        next: "list the plugin's plans: instarctl plugin inspect \(CommandText.quoted(plugin))")
    }
    return try PlanDefinition(plan)
  }

  private func send(_ event: WorkerEvent) throws(InstarError) {
    // First what the plugin printed without a newline: the keeper kills the worker after the last message.
    fflush(nil)
    try channel.send(try WireCoder.line(event))
  }
}

/// Called by the launcher `instar-worker` when library and plugin are loaded.
///
/// - Parameter plans: The plugin's entry point, as `#InstarPlugin` generates it.
/// - Returns: the process's exit status: 0 when the keeper closed the conversation.
@_cdecl("instar_worker_main")
public func instar_worker_main(
  _ descriptor: Int32, _ plugin: UnsafePointer<CChar>,
  _ plans: @convention(c) () -> UnsafeMutableRawPointer
) -> Int32 {
  let conversation = WorkerConversation(
    channel: LineChannel(descriptor: descriptor, lineLimitBytes: WireCoder.lineLimitBytes),
    plugin: String(cString: plugin), plans: PluginPlans.taking(plans()))
  do {
    try conversation.run()
    return 0
  } catch {
    return 1
  }
}

/// Called in the place of `instar_worker_main` in a process that a fork server forked.
///
/// The engine was loaded by a thread of the server that has ended, and libdispatch took that thread for the main one.
/// Here the calling thread is the main one; on the main queue it is that for closures of a plan too.
@_cdecl("instar_worker_main_after_fork")
public func instar_worker_main_after_fork(
  _ descriptor: Int32, _ plugin: UnsafePointer<CChar>,
  _ plans: @convention(c) () -> UnsafeMutableRawPointer
) -> Int32 {
  // The calling thread runs the closure itself.
  nonisolated(unsafe) let (plugin, plans) = (plugin, plans)
  return DispatchQueue.main.sync { instar_worker_main(descriptor, plugin, plans) }
}
