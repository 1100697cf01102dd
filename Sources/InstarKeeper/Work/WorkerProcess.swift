internal import Foundation
internal import InstarLinux
public import InstarSchema
public import InstarWire

/// Runs each request in an `instar-worker` of its own, which is confined and killed at the end in any case.
public struct WorkerProcess: PluginHost {
  private let worker: String
  private let library: String
  private let readable: [String]
  private let allowsUnconfined: Bool
  private let supervisor: Int32?

  /// More output than this is a flood, and ends the worker.
  static let outputLimitBytes = 1 << 20
  /// `describe` and `plan` only load the plugin and read its types.
  static let inspectionTimeLimit: Duration = .seconds(30)
  /// How often a worker that says nothing is looked after.
  static let pollMilliseconds: Int32 = 200

  /// - Parameters:
  ///   - worker: The path of the launcher.
  ///   - library: The path of `libInstar.so`.
  ///   - readable: What a worker must be able to read besides plugin and library; what does not exist is left out.
  ///   - allowsUnconfined: Go on where the kernel cannot confine the worker.
  ///   - supervisor: The descriptor of the conversation with the supervisor: when the other end is closed, the worker
  ///     is ended. Only looked at, never read.
  public init(
    worker: String, library: String, readable: [String] = [], allowsUnconfined: Bool = false,
    supervisor: Int32? = nil
  ) {
    self.worker = worker
    self.library = library
    self.readable = readable
    self.allowsUnconfined = allowsUnconfined
    self.supervisor = supervisor
  }

  public func describe(plugin: String) throws(InstarError) -> PluginManifest {
    var manifest: PluginManifest?
    try converse(.describe, plugin: plugin, cloneFolder: nil, limit: Self.inspectionTimeLimit) {
      event throws(InstarError) in
      guard case .described(let described) = event else { return .goOn }
      manifest = described
      return .finished
    }
    guard let manifest else { throw Self.noAnswer(plugin) }
    return manifest
  }

  public func plan(
    _ plan: String, from version: Schema.Version, plugin: String
  ) throws(InstarError) -> MigrationPlan {
    var migration: MigrationPlan?
    try converse(
      .plan(plan: plan, from: version), plugin: plugin, cloneFolder: nil,
      limit: Self.inspectionTimeLimit
    ) { event throws(InstarError) in
      guard case .planned(let planned) = event else { return .goOn }
      migration = planned
      return .finished
    }
    guard let migration else { throw Self.noAnswer(plugin) }
    return migration
  }

  public func migrate(
    _ work: CloneWork, onEvent: (WorkerEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    let request = WorkerRequest.migrate(
      plan: work.plan, from: work.from, clone: work.clone, sqlDebugLevel: work.sqlDebugLevel)
    try converse(
      request, plugin: work.plugin, cloneFolder: work.cloneFolder, limit: work.stageTimeLimit
    ) { event throws(InstarError) in
      try onEvent(event)
      switch event {
      case .stageStarted, .stageFinished: return .goOnWithFreshLimit
      case .migrated: return .finished
      default: return .goOn
      }
    } onOutput: { text throws(InstarError) in
      try onEvent(.sql(text))
    }
  }

  private static func noAnswer(_ plugin: String) -> InstarError {
    InstarError(.protocolViolation, "cannot read plugin '\(plugin)'", cause: "it gave no answer")
  }
}
