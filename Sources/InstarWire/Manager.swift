public import InstarSchema

/// `io.instar.Manager`: the Varlink interface of instard, for `instarctl` and other tools.
public enum Manager {
  /// The name of the interface.
  public static let interface = "io.instar.Manager"
  /// The longest reply; a list of stores comes in several.
  public static let replyLimitBytes = 16 << 20

  /// A method of the interface.
  public enum Method: String, Sendable, Hashable, CaseIterable {
    case getStatus = "GetStatus"
    case listStores = "ListStores"
    case retry = "Retry"
    case rescan = "Rescan"
    case pause = "Pause"
    case resume = "Resume"
    case approve = "Approve"
    case hold = "Hold"
    case release = "Release"
    case listHolds = "ListHolds"
    case history = "History"
    case monitor = "Monitor"
    case permit = "Permit"

    /// The name of the method with that of the interface.
    public var qualifiedName: String { "\(interface).\(rawValue)" }
  }

  /// What instard does with a store now.
  public enum Activity: String, Sendable, Codable, Hashable, CaseIterable {
    /// The store changed a moment ago.
    case waiting
    /// A keeper reads the store, or will.
    case probing
    /// The store is behind. Its wave has not come, its rollout is halted, or nobody has approved its run.
    case pending
    /// The store waits for its run.
    case queued
    case running
    /// An interrupted run is recovered, or will be.
    case recovering
    /// instard retries the failed or busy store later.
    case retrying
    /// Another attempt would fail in the same way, or nothing can be read: the store waits for a change, of itself or
    /// of the plugins.
    case quarantined
    /// An operator ordered to leave the store alone.
    case held
    /// There is nothing to do.
    case idle
  }

  /// One store.
  public struct Store: Sendable, Codable, Hashable {
    /// The path.
    public var store: String
    /// What instard does with it.
    public var activity: Activity
    /// Its state at the last probe; left out before the first one.
    public var state: StoreState?
    /// Its version.
    public var version: Schema.Version?
    /// The plan that knows it.
    public var plan: String?
    /// The last version of that plan.
    public var planVersion: Schema.Version?
    /// Why it has this state.
    public var reason: String?
    /// The last failure, if the store was not migrated since.
    public var error: InstarError?
    /// How long until instard retries it.
    public var secondsToRetry: Double?
    /// The wave of its plan's rollout in which it had its turn; left out before that, and without a rollout.
    public var wave: Int?
    /// Its turn in that rollout, or its result there; left out without a rollout.
    public var turn: Turn?
    /// Why `Retry` does not retry it now, and what to run; left out in all other replies.
    public var notRetried: String?

    /// A store of which only the activity is known.
    public init(store: String, activity: Activity) {
      self.store = store
      self.activity = activity
    }
  }

  /// The turn of a store in the rollout of its plan, or its result.
  public enum Turn: String, Sendable, Codable, Hashable, CaseIterable {
    /// Its turn has not come.
    case waiting
    /// The store waits for its first run, has it, or is probed after it.
    case admitted
    /// The store is retried later, because others use it, the disk is full, or the error may be temporary. Another
    /// store replaces it.
    case deferred
    case migrated
    case failed
  }

  /// A run in progress.
  public struct Run: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String
    /// The run identifier; left out before the first report of progress.
    public var run: String?
    /// The stage that takes long.
    public var stage: String?
    /// How far it is.
    public var progress: WorkProgress?

    /// A run without a report of progress.
    public init(store: String) { self.store = store }
  }

  /// A watched folder.
  public struct Folder: Sendable, Codable, Hashable {
    /// The path.
    public var folder: String
    /// Why it cannot be watched; left out if it is watched.
    public var error: InstarError?
    /// Whether runs of its stores may start now; left out if they always may.
    public var windowIsOpen: Bool?
    /// When that changes, in seconds since 1970; left out if it never does.
    public var windowChangesAt: Double?
    /// That its watch names a plan that no plugin has; left out otherwise.
    public var warning: String?

    package init(folder: String, error: InstarError? = nil) {
      self.folder = folder
      self.error = error
    }
  }

  /// A plugin that instard does not use.
  public struct RefusedPlugin: Sendable, Codable, Hashable {
    /// The path.
    public var plugin: String
    /// Why it cannot be used.
    public var error: InstarError

    package init(plugin: String, error: InstarError) {
      self.plugin = plugin
      self.error = error
    }
  }

  /// An operator's order to start no run.
  public struct Pause: Sendable, Codable, Hashable {
    /// Who gave it, such as "anna (1000)".
    public var by: String
    /// When, in seconds since 1970.
    public var since: Double
    /// The reason.
    public var why: String?

    /// `by` is a user's label such as "anna (1000)", or `Rollout.daemon`.
    package init(by: String, since: Double, why: String?) {
      self.by = by
      self.since = since
      self.why = why
    }
  }

  /// One plan's way through the stores that are behind, wave after wave.
  public struct Rollout: Sendable, Codable, Hashable {
    /// The name of the plan.
    public var plan: String
    /// Its last version.
    public var version: Schema.Version
    /// The wave that is open, or ended last; 0 while stores are counted.
    public var wave: Int
    /// How many waves there are.
    public var waves: Int
    /// The stores of the rollout. The other numbers add up to this one.
    public var stores: Int
    /// Those whose turn has not come.
    public var waiting: Int
    /// Those that have a run, or will soon.
    public var admitted: Int
    /// Those that are retried later: others use them, or the disk is full.
    public var deferred: Int
    /// Those that were migrated and found current afterwards.
    public var migrated: Int
    /// Those whose run failed.
    public var failed: Int
    /// Those of the waiting stores that need an approval.
    public var unapproved: Int
    /// When the next wave opens; left out while a wave is open.
    public var secondsToNextWave: Double?
    /// The watch whose closed window keeps the runs of all stores from starting whose turn has come; left out if a run
    /// may start.
    public var closedWindow: String?
    /// Why no run of the plan is started; left out if runs are started.
    public var halt: Pause?
    /// The first stores, by path, whose run failed.
    public var failures: [String]
    /// Whether it has ended, in whichever wave, and no store has come since; `nil` from an earlier release.
    public var isFinished: Bool?

    /// Whether failures beyond the budget halted it, and not an operator.
    public var isHaltedByFailures: Bool { halt?.by == Self.daemon }
    /// Who halts a rollout for its failures.
    public static let daemon = "instard"

    package init(
      plan: String, version: Schema.Version, wave: Int, waves: Int, stores: Int, waiting: Int,
      admitted: Int, deferred: Int, migrated: Int, failed: Int, unapproved: Int,
      secondsToNextWave: Double?, closedWindow: String? = nil, halt: Pause?, failures: [String],
      isFinished: Bool? = nil
    ) {
      self.plan = plan
      self.version = version
      self.wave = wave
      self.waves = waves
      self.stores = stores
      self.waiting = waiting
      self.admitted = admitted
      self.deferred = deferred
      self.migrated = migrated
      self.failed = failed
      self.unapproved = unapproved
      self.secondsToNextWave = secondsToNextWave
      self.closedWindow = closedWindow
      self.halt = halt
      self.failures = failures
      self.isFinished = isFinished
    }
  }

  /// The daemon as a whole.
  public struct Status: Sendable, Codable, Hashable {
    /// What the daemon does.
    public enum Phase: String, Sendable, Codable, Hashable {
      /// It reads the watched folders for the first time.
      case scanning
      case running
      /// It waits for runs in their cutover.
      case stopping
    }

    /// The release.
    public var version: String
    /// The process.
    public var pid: Int32
    /// When it started, in seconds since 1970.
    public var startedAt: Double
    /// What it does.
    public var phase: Phase
    /// The order to start no run; left out without one.
    public var pause: Pause?
    /// The watched folders, by path.
    public var folders: [Folder]
    /// The plugins in use.
    public var plugins: [String]
    /// The names of their plans; `nil` from an earlier release.
    public var plans: [String]?
    /// The plugins that cannot be used, by path.
    public var refusedPlugins: [RefusedPlugin]
    /// The number of stores.
    public var stores: Int
    /// Their number by state at the last probe.
    public var states: [String: Int]
    /// Their number by activity.
    public var activities: [String: Int]
    /// The rollouts, by plan.
    public var rollouts: [Rollout]
    /// The runs in progress, by store.
    public var runs: [Run]
    /// The first stores, by path, whose last attempt failed; then those that the last probe found damaged, encrypted,
    /// unreadable or not a store, whose `state` and `reason` are the cause, or for which it could not choose a plan.
    public var failures: [Store]

    /// How long it takes to migrate all stores that are behind, at the rate of the last runs; left out where that is
    /// not known.
    public var secondsLeft: Double?
    /// Where the ledger and the holds are; `nil` from an earlier release.
    public var stateFolder: String?
    /// Where instard looks for plugins; `nil` from an earlier release.
    public var pluginFolders: [String]?

    /// How many failures a status lists.
    public static let failureLimit = 20

    package init(
      version: String, pid: Int32, startedAt: Double, phase: Phase, pause: Pause?,
      folders: [Folder], plugins: [String], refusedPlugins: [RefusedPlugin] = [], stores: Int,
      states: [String: Int], activities: [String: Int], rollouts: [Rollout], runs: [Run],
      failures: [Store]
    ) {
      self.version = version
      self.pid = pid
      self.startedAt = startedAt
      self.phase = phase
      self.pause = pause
      self.folders = folders
      self.plugins = plugins
      self.refusedPlugins = refusedPlugins
      self.stores = stores
      self.states = states
      self.activities = activities
      self.rollouts = rollouts
      self.runs = runs
      self.failures = failures
    }
  }
}
