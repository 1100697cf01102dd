public import InstarSchema
public import InstarWire

/// What is kept of a quarantined store over a restart of the daemon: what operators see of it, and what must be
/// unchanged for another attempt to fail in the same way.
public struct QuarantineRecord: Sendable, Codable, Hashable {
  /// The path.
  public var store: String
  /// The digest of the version of its file.
  public var file: Int
  /// Failures in a row.
  public var failures: Int
  /// The last failure.
  public var error: InstarError?
  /// What its last probe found; left out if it could not be probed.
  public var verdict: Verdict?
  /// The rollout that counts it as failed; left out if it was in none.
  public var rollout: Rollout?
  /// All plugins in use.
  public var plugins: [RolloutRecord.PluginFile]
  /// The release: a later one may be able to migrate the store.
  public var release = Release.version
  /// A run of the store under the settings of its watch, without plugins; left out until it is written.
  public var request: MigrationRequest?

  /// The parts of a probe's report that operators see.
  public struct Verdict: Sendable, Codable, Hashable {
    /// As the probe's report has it.
    public var state: StoreState
    /// The reason for the state.
    public var reason: String?
    /// The version that the store declares, or that its plan recognizes; left out if unknown.
    public var version: Schema.Version?
    /// The plan that knows the store.
    public var plan: String?
    /// The last version of that plan.
    public var planVersion: Schema.Version?
    /// The plugin with that plan.
    public var plugin: String?

    /// A verdict of which only the state is known.
    public init(state: StoreState) {
      self.state = state
    }
  }

  /// A rollout of one plan to its last version.
  public struct Rollout: Sendable, Codable, Hashable {
    /// The name of the plan.
    public var plan: String
    /// The last version of the plan.
    public var version: Schema.Version

    public init(plan: String, version: Schema.Version) {
      self.plan = plan
      self.version = version
    }
  }

  /// A record without an error and a verdict.
  public init(store: String, file: Int, failures: Int, plugins: [RolloutRecord.PluginFile]) {
    self.store = store
    self.file = file
    self.failures = failures
    self.plugins = plugins
  }
}
