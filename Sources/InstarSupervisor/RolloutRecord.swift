public import InstarSchema
public import InstarWire

/// What is kept of a plan's rollout over a restart of the daemon. Which stores were migrated and which failed is in the
/// ledger, and in the records of quarantined stores: the ledger has no rehearsals. Times are in seconds since 1970.
public struct RolloutRecord: Sendable, Codable, Hashable {
  /// The version of a plugin's file. A plugin whose file has changed may have other code: its rollout starts again.
  public struct PluginFile: Sendable, Codable, Hashable {
    /// Where the daemon found it.
    public var path: String
    /// The size, in bytes.
    public var bytes: Int64
    /// When it was written, in nanoseconds since 1970.
    public var modified: Int64

    package init(path: String, bytes: Int64, modified: Int64) {
      self.path = path
      self.bytes = bytes
      self.modified = modified
    }
  }

  /// The name of the plan.
  public var plan: String
  /// Its last version.
  public var version: Schema.Version
  /// The plugin that it began with.
  public var plugin: PluginFile?
  /// When it began: earlier runs in the ledger are not its own.
  public var began: Double
  /// The wave that is open or soaking, from 1; 0 while stores are counted.
  public var wave: Int
  /// When each wave until then opened: the waves in which stores had their turn.
  public var openings: [Double]
  /// When the next wave opens; left out while one is open.
  public var soakEnds: Double?
  /// The order to start no run of it; left out without one.
  public var halt: Manager.Pause?
  /// Whether all stores have had their turn.
  public var isFinished: Bool
  /// Stores that had failed when an operator resumed the rollout. They do not count against its budget.
  public var forgiven: [String]
  /// Whether all stores that wait for an approval have it.
  public var isApproved: Bool
  /// The stores that have it by name.
  public var approvedStores: [String]

  package init(
    plan: String, version: Schema.Version, plugin: PluginFile?, began: Double, wave: Int,
    openings: [Double], soakEnds: Double?, isFinished: Bool, halt: Manager.Pause?,
    forgiven: [String],
    isApproved: Bool, approvedStores: [String]
  ) {
    self.plan = plan
    self.version = version
    self.plugin = plugin
    self.began = began
    self.wave = wave
    self.openings = openings
    self.soakEnds = soakEnds
    self.halt = halt
    self.isFinished = isFinished
    self.forgiven = forgiven
    self.isApproved = isApproved
    self.approvedStores = approvedStores
  }
}

/// What the runs of a rollout made of one store, as the ledger has it.
public struct RolloutRun: Sendable, Hashable {
  /// The path of the store.
  public var store: String
  /// How its last run ended.
  public var result: RunReport.Result
  /// Why that run failed; `nil` if it did not.
  public var code: InstarError.Code?
  /// When its first run started, in seconds since 1970.
  public var firstStartedAt: Double

  package init(
    store: String, result: RunReport.Result, code: InstarError.Code? = nil, firstStartedAt: Double
  ) {
    self.store = store
    self.result = result
    self.code = code
    self.firstStartedAt = firstStartedAt
  }

  init(_ last: LedgerRun, firstStartedAt: Double) {
    self.init(
      store: last.store, result: last.result, code: last.error?.code,
      firstStartedAt: firstStartedAt)
  }
}

/// A line of the ledger, as far as rollouts need it.
struct LedgerRun: Decodable {
  struct Failure: Decodable {
    var code: InstarError.Code
  }

  var store: String
  var result: RunReport.Result
  var plan: String?
  var to: Schema.Version?
  var startedAt: Double
  var error: Failure?
}
