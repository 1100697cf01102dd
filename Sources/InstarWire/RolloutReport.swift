public import InstarSchema

/// One plan's way over the hosts of a fleet.
public struct RolloutReport: Sendable, Codable, Hashable {
  /// One host of a rollout.
  public struct Host: Sendable, Codable, Hashable {
    /// The name.
    public var host: String
    /// Its wave.
    public var wave: Int
    /// waiting, migrating or verified; gone if its lease has ended and it is not verified; unreadable if its report in
    /// etcd cannot be read.
    public var state: String
    /// Its stores that were behind.
    public var stores: Int
    /// Those that were migrated and found current.
    public var migrated: Int
    /// Those whose run failed.
    public var failed: Int
    /// Those that are retried later, because others use them.
    public var deferred: Int
    /// The error of a store that failed, in one line.
    public var lastError: String?
    /// What keeps the host from migrating although it has its turn.
    public var obstacle: String?

    package init(
      host: String, wave: Int, state: String, stores: Int, migrated: Int, failed: Int,
      deferred: Int, lastError: String?, obstacle: String?
    ) {
      self.host = host
      self.wave = wave
      self.state = state
      self.stores = stores
      self.migrated = migrated
      self.failed = failed
      self.deferred = deferred
      self.lastError = lastError
      self.obstacle = obstacle
    }
  }

  /// Tells the rollout apart from earlier ones of the plan.
  public var id: String
  /// The name of the plan.
  public var plan: String
  /// Its last version.
  public var version: Schema.Version
  /// running, paused, halted or done.
  public var state: String
  /// Why it is paused or halted.
  public var why: String?
  /// The wave that is open, or ended last.
  public var wave: Int
  /// How many waves there are.
  public var waves: Int
  /// Whether the next wave waits for the end of the soak.
  public var isSoaking: Bool
  /// How many hosts may migrate at the same time.
  public var slots: Int
  /// How many do.
  public var slotsTaken: Int
  /// How many stores may fail, as it was ordered; left out for no limit.
  public var budget: String?
  /// The same as a number of stores.
  public var allowedFailures: Int?
  /// Who began it.
  public var by: String
  /// When, in seconds since 1970.
  public var began: Double
  /// The sums over all hosts.
  public var stores: Int
  public var migrated: Int
  public var failed: Int
  /// The hosts, by wave and name.
  public var hosts: [Host]

  package init(
    id: String, plan: String, version: Schema.Version, state: String, why: String?, wave: Int,
    waves: Int, isSoaking: Bool, slots: Int, slotsTaken: Int, budget: String?,
    allowedFailures: Int?, by user: String, began: Double, hosts: [Host]
  ) {
    self.id = id
    self.plan = plan
    self.version = version
    self.state = state
    self.why = why
    self.wave = wave
    self.waves = waves
    self.isSoaking = isSoaking
    self.slots = slots
    self.slotsTaken = slotsTaken
    self.budget = budget
    self.allowedFailures = allowedFailures
    by = user
    self.began = began
    stores = hosts.reduce(0) { $0 + $1.stores }
    migrated = hosts.reduce(0) { $0 + $1.migrated }
    failed = hosts.reduce(0) { $0 + $1.failed }
    self.hosts = hosts
  }
}
