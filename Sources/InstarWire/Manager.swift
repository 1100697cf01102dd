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

    /// A store of which only the activity is known.
    public init(store: String, activity: Activity) {
      self.store = store
      self.activity = activity
    }
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

    /// A folder, and why it is not watched.
    public init(folder: String, error: InstarError? = nil) {
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

    /// A plugin and its error.
    public init(plugin: String, error: InstarError) {
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

    /// An order.
    public init(by: String, since: Double, why: String?) {
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
    /// The watch whose closed window keeps all stores from running whose turn has come; left out if some may run.
    public var closedWindow: String?
    /// Why no run of the plan is started; left out if runs are started.
    public var halt: Pause?
    /// The first stores, by path, whose run failed.
    public var failures: [String]

    /// Whether failures beyond the budget halted it, and not an operator.
    public var isHaltedByFailures: Bool { halt?.by == Self.daemon }
    /// Who halts a rollout for its failures.
    public static let daemon = "instard"

    /// A rollout.
    public init(
      plan: String, version: Schema.Version, wave: Int, waves: Int, stores: Int, waiting: Int,
      admitted: Int, deferred: Int, migrated: Int, failed: Int, unapproved: Int,
      secondsToNextWave: Double?, closedWindow: String? = nil, halt: Pause?, failures: [String]
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
    /// unreadable or not a store. Of the latter, `state` and `reason` are the cause.
    public var failures: [Store]

    /// How long it takes to migrate all stores that are behind, at the rate of the last runs; left out where that is
    /// not known.
    public var secondsLeft: Double?

    /// How many failures a status lists.
    public static let failureLimit = 20

    /// A status without runs and failures.
    public init(
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

// MARK: - Parameters

extension Manager {
  /// What `GetStatus` returns.
  public struct StatusReply: Sendable, Codable, Hashable {
    /// The status.
    public var status: Status

    /// A reply with the status.
    public init(status: Status) { self.status = status }
  }

  /// Which stores `ListStores` returns. A field that is left out allows every value.
  public struct StoreFilter: Sendable, Codable, Hashable {
    /// The state at the last probe.
    public var state: StoreState?
    /// What instard does with the store.
    public var activity: Activity?
    /// The plan that knows the store.
    public var plan: String?
    /// The wave of its plan's rollout in which the store had its turn.
    public var wave: Int?
    /// How its path begins.
    public var prefix: String?

    /// A filter that allows every store.
    public init(
      state: StoreState? = nil, activity: Activity? = nil, plan: String? = nil, wave: Int? = nil,
      prefix: String? = nil
    ) {
      self.state = state
      self.activity = activity
      self.plan = plan
      self.wave = wave
      self.prefix = prefix
    }

    /// Whether the filter allows a store with this path.
    public func allows(path: String) -> Bool { prefix.map(path.hasPrefix) ?? true }

    /// Whether the filter allows a store.
    public func allows(_ store: Store) -> Bool {
      (state == nil || store.state == state) && (activity == nil || store.activity == activity)
        && (plan == nil || store.plan == plan) && (wave == nil || store.wave == wave)
        && allows(path: store.store)
    }
  }

  /// What `ListStores` and `Retry` return: some stores, by path. More replies have the rest.
  public struct StoresReply: Sendable, Codable, Hashable {
    /// The stores.
    public var stores: [Store]

    /// A reply with these stores.
    public init(stores: [Store]) { self.stores = stores }
  }

  /// What the journal got too.
  public struct Event: Sendable, Codable, Hashable {
    /// The name, such as "run-migrated": `INSTAR_EVENT` in the journal.
    public var event: String
    /// In seconds since 1970.
    public var at: Double
    /// As of syslog(3), from 3 (an error) to 6.
    public var priority: Int
    /// One line.
    public var message: String
    /// The other fields of the journal's entry, such as `INSTAR_STORE`.
    public var fields: [String: String]

    /// An event.
    public init(
      event: String, at seconds: Double, priority: Int, message: String, fields: [String: String]
    ) {
      self.event = event
      at = seconds
      self.priority = priority
      self.message = message
      self.fields = fields
    }
  }

  /// What `Monitor` returns: one event. More replies follow.
  public struct EventReply: Sendable, Codable, Hashable {
    /// The event.
    public var event: Event
    /// How many events before it the client has missed, because it read too slowly; left out for none.
    public var missed: Int?

    /// A reply.
    public init(event: Event, missed: Int? = nil) {
      self.event = event
      self.missed = missed
    }
  }

  /// The parameters of `Retry`.
  public struct RetryParameters: Sendable, Codable, Hashable {
    /// The paths of the stores; empty for all that failed.
    public var stores: [String]

    /// The stores to retry.
    public init(stores: [String]) { self.stores = stores }
  }

  /// The parameters of `Pause`.
  public struct PauseParameters: Sendable, Codable, Hashable {
    /// The reason.
    public var why: String?
    /// The plan whose rollout is halted; `nil` for all runs.
    public var plan: String?

    /// An order with a reason.
    public init(why: String?, plan: String? = nil) {
      self.why = why
      self.plan = plan
    }
  }

  /// The parameters of `Resume`.
  public struct ResumeParameters: Sendable, Codable, Hashable {
    /// The plan whose rollout goes on; `nil` to end a pause of all runs.
    public var plan: String?

    /// An order.
    public init(plan: String?) { self.plan = plan }
  }

  /// The parameters of `Approve`: one of them, or both.
  public struct ApproveParameters: Sendable, Codable, Hashable {
    /// The plan whose stores are approved.
    public var plan: String?
    /// The paths of the stores; empty for all stores of the plan.
    public var stores: [String]

    /// An approval.
    public init(plan: String?, stores: [String]) {
      self.plan = plan
      self.stores = stores
    }
  }

  /// The parameters of `Hold`.
  public struct HoldParameters: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String
    /// The reason, one line.
    public var why: String

    /// An order with its reason.
    public init(store: String, why: String) {
      self.store = store
      self.why = why
    }
  }

  /// The parameters of `Release`.
  public struct ReleaseParameters: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String

    /// The store to release.
    public init(store: String) { self.store = store }
  }

  /// What `Hold` and `Release` return.
  public struct HoldReply: Sendable, Codable, Hashable {
    /// The hold that was placed or ended; left out where there was none to end.
    public var hold: Hold?

    /// A reply.
    public init(hold: Hold?) { self.hold = hold }
  }

  /// What `ListHolds` returns.
  public struct HoldsReply: Sendable, Codable, Hashable {
    /// The holds on the client's stores, the oldest first.
    public var holds: [Hold]
    /// One error for each hold that cannot be read. Only administrators get these.
    public var unreadable: [InstarError]

    /// A reply.
    public init(holds: [Hold], unreadable: [InstarError]) {
      self.holds = holds
      self.unreadable = unreadable
    }
  }

  /// Which runs `History` returns. A field that is left out allows every value.
  public struct RunFilter: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String?
    /// How the run ended.
    public var result: RunReport.Result?
    /// The name of the plan.
    public var plan: String?
    /// How many runs at most, the newest ones; never more than `historyLimit`.
    public var limit: Int?

    /// A filter.
    public init(
      store: String? = nil, result: RunReport.Result? = nil, plan: String? = nil, limit: Int? = nil
    ) {
      self.store = store
      self.result = result
      self.plan = plan
      self.limit = limit
    }

    /// Whether a run has the result and the plan.
    public func allows(_ run: RunReport) -> Bool {
      (result == nil || run.result == result) && (plan == nil || run.plan == plan)
    }
  }

  /// How many runs `History` returns at most: the daemon remembers where the ledger has each.
  public static let historyLimit = 10_000

  /// What `History` returns: some runs, oldest first. More replies have the rest.
  public struct RunsReply: Sendable, Codable, Hashable {
    /// The runs.
    public var runs: [RunReport]
    /// How many lines of the ledger cannot be read.
    public var unreadableLines: Int

    /// A reply.
    public init(runs: [RunReport], unreadableLines: Int) {
      self.runs = runs
      self.unreadableLines = unreadableLines
    }
  }

  /// The right of this host to start runs of a plan. instard needs it only where `coordinator` is configured.
  public struct Permission: Sendable, Codable, Hashable {
    /// The name of the plan.
    public var plan: String
    /// Its last version.
    public var version: Schema.Version
    /// When it ends, in seconds of the host's CLOCK_BOOTTIME; left out for until it is taken back. A time and not a
    /// duration: a message that is late must not make a permission longer.
    public var until: Double?
    /// How many stores may have failed; with more, no run starts. Left out for no limit.
    public var failures: Int?

    /// A permission.
    public init(plan: String, version: Schema.Version, until: Double?, failures: Int? = nil) {
      self.plan = plan
      self.version = version
      self.until = until
      self.failures = failures
    }
  }

  /// The parameters of `Permit`.
  public struct PermitParameters: Sendable, Codable, Hashable {
    /// All permissions that hold from now on. Others are taken back.
    public var permissions: [Permission]
    /// When they were decided, in seconds of the host's CLOCK_BOOTTIME. instard ignores permissions that are older than
    /// those that it has: calls may arrive in another order than they were made.
    public var decidedAt: Double

    /// These permissions and no others.
    public init(permissions: [Permission], decidedAt: Double) {
      self.permissions = permissions
      self.decidedAt = decidedAt
    }
  }

  /// What `Permit` returns: how far this host is.
  public struct PermitReply: Sendable, Codable, Hashable {
    /// Whether each store was probed, so the numbers of the rollouts are right.
    public var isCounted: Bool
    /// How many stores run or recover now, by plan; under "" those whose plan is not known, because they recover before
    /// their first probe.
    public var running: [String: Int]
    /// The order to start no run; left out without one.
    public var pause: Pause?
    /// The rollouts, by plan. A plan none of whose stores is or was behind has none.
    public var rollouts: [Rollout]
    /// The stores that the rollouts list as failures, with their errors.
    public var failures: [Store]

    /// A reply.
    public init(
      isCounted: Bool, running: [String: Int], pause: Pause?, rollouts: [Rollout],
      failures: [Store]
    ) {
      self.isCounted = isCounted
      self.running = running
      self.pause = pause
      self.rollouts = rollouts
      self.failures = failures
    }
  }

  /// The parameters of the error `Failed`.
  public struct Failure: Sendable, Codable, Hashable {
    /// What failed.
    public var error: InstarError

    /// A failure.
    public init(error: InstarError) { self.error = error }
  }

  /// The name of the one error of the interface.
  public static let failed = "\(interface).Failed"

  /// The interface in Varlink's language.
  public static let description = """
    # Shows and controls instard, the daemon that migrates stores. instard(8) explains who may call what.
    interface io.instar.Manager

    # What went wrong, as in all JSON of Instar. instarctl(1) lists the codes.
    type Error (
      code: string,
      what: string,
      store: ?string,
      stage: ?string,
      cause: string,
      state: ?string,
      next: ?string,
      rows: ?Rows,
      provesDamage: ?bool
    )

    # The rows that an error is about: how many, and the keys of the first ones.
    type Rows (
      count: int,
      keys: []string
    )

    # How far a long piece of work is: what is counted, how many are done of how many, and how fast.
    type Progress (
      what: string,
      done: int,
      total: ?int,
      perSecond: float,
      secondsLeft: ?float
    )

    # A run in progress. The other fields are set while a stage takes long.
    type Run (
      store: string,
      run: ?string,
      stage: ?string,
      progress: ?Progress
    )

    # A watched folder, and why it cannot be watched. With a time window: whether runs of its stores may start now, and
    # when that changes, in seconds since 1970.
    type Folder (
      folder: string,
      error: ?Error,
      windowIsOpen: ?bool,
      windowChangesAt: ?float
    )

    # An operator's order to start no run. 'since' is in seconds since 1970.
    type PauseOrder (
      by: string,
      since: float,
      why: ?string
    )

    # An order to leave a store alone. It belongs to the path and to the file of then; 'createdNanoseconds' and 'since'
    # count from 1970. 'run' is the restore that placed it.
    type HoldOrder (
      id: string,
      store: string,
      device: int,
      inode: int,
      createdNanoseconds: int,
      by: string,
      since: float,
      why: string,
      run: ?string
    )

    # One plan's way through the stores that are behind, wave after wave. 'wave' is 0 while stores are counted. The
    # numbers from 'waiting' to 'failed' add up to 'stores'; 'unapproved' are some of the waiting ones. 'halt' says why
    # no run of the plan is started.
    type Rollout (
      plan: string,
      version: string,
      wave: int,
      waves: int,
      stores: int,
      waiting: int,
      admitted: int,
      deferred: int,
      migrated: int,
      failed: int,
      unapproved: int,
      secondsToNextWave: ?float,
      closedWindow: ?string,
      halt: ?PauseOrder,
      failures: []string
    )

    # One store: what instard does with it (waiting, probing, pending, queued, running, recovering, retrying,
    # quarantined, held or idle), what the last probe found, and the last failure.
    type Store (
      store: string,
      activity: string,
      state: ?string,
      version: ?string,
      plan: ?string,
      planVersion: ?string,
      reason: ?string,
      error: ?Error,
      secondsToRetry: ?float,
      wave: ?int
    )

    # A plugin that cannot be used, and why.
    type RefusedPlugin (
      plugin: string,
      error: Error
    )

    # The daemon as a whole. 'phase' is scanning, running or stopping; 'states' and 'activities' count stores;
    # 'failures' has the first twenty stores whose last attempt failed, then those that are damaged, encrypted, unreadable
    # or not a store: their cause is in 'state' and 'reason'. 'secondsLeft' says how long it takes to migrate all stores
    # that are behind, those of all users, at the rate of the last runs; it is left out where that is not known.
    type Status (
      version: string,
      pid: int,
      startedAt: float,
      phase: string,
      pause: ?PauseOrder,
      folders: []Folder,
      plugins: []string,
      refusedPlugins: []RefusedPlugin,
      stores: int,
      states: [string]int,
      activities: [string]int,
      rollouts: []Rollout,
      runs: []Run,
      failures: []Store,
      secondsLeft: ?float
    )

    # Something that happened, as the journal has it. 'at' is in seconds since 1970, 'priority' as in syslog(3), and
    # 'fields' has the other fields of the entry, such as INSTAR_STORE.
    type Event (
      event: string,
      at: float,
      priority: int,
      message: string,
      fields: [string]string
    )

    # The right to start runs of a plan to this last version, for so many seconds or until it is taken back, and while
    # no more than so many stores have failed.
    type Permission (
      plan: string,
      version: string,
      until: ?float,
      failures: ?int
    )

    # Returns the status. With 'more', also each time when it changes, at most once a second.
    method GetStatus() -> (status: Status)

    # Returns the stores that match, by path; 'prefix' is how the path begins. Needs 'more': a long list comes in
    # several replies.
    method ListStores(state: ?string, activity: ?string, plan: ?string, wave: ?int, prefix: ?string)
      -> (stores: []Store)

    # Retries stores at once: those that failed or wait for another attempt. Without names, all of these.
    method Retry(stores: []string) -> (stores: []Store)

    # Reads all watched folders again.
    method Rescan() -> ()

    # Starts no run until Resume; with 'plan', no run of that plan. Runs in progress go on. A pause survives restarts of
    # the daemon.
    method Pause(why: ?string, plan: ?string) -> ()

    # Ends a pause; with 'plan', lets the plan's rollout go on after its failures.
    method Resume(plan: ?string) -> ()

    # Approves stores whose watch has the policy 'ask': the named stores, or all stores of a plan. Owners may approve
    # their own stores by name.
    method Approve(plan: ?string, stores: []string) -> ()

    # Orders the daemon to leave a store alone until Release. A run in progress stops before its cutover.
    method Hold(store: string, why: string) -> (hold: HoldOrder)

    # Ends the hold on a store, and returns it. Without a hold, nothing is done.
    method Release(store: string) -> (hold: ?HoldOrder)

    # Returns the holds on all stores; to ordinary users, on those that they own.
    method ListHolds() -> (holds: []HoldOrder, unreadable: []Error)

    # Returns runs of the ledger, oldest first: with 'limit' the newest ones, and never more than 10000. Ordinary users get
    # those of the stores that they own. The keys of a run are those of 'instarctl history --json', see instarctl(1).
    # Needs 'more': many runs come in several replies. 'unreadableLines' counts the lines that cannot be read.
    method History(store: ?string, result: ?string, plan: ?string, limit: ?int)
      -> (runs: []object, unreadableLines: int)

    # Sends each event from now on; ordinary users get those about the stores that they own. Needs 'more'. 'missed' says
    # how many events the client has missed before this one, because it read too slowly.
    method Monitor() -> (event: Event, missed: ?int)

    # Replaces all permissions to start runs, where 'coordinator' is configured. 'until' and 'decidedAt' are seconds of
    # CLOCK_BOOTTIME; permissions that were decided before the last ones are ignored. Only root and the user
    # instar-coordinator may call it. Returns how far this host is: 'isCounted' says whether all stores were probed, and
    # 'running' how many stores run or recover, by plan, under "" those whose plan is not known yet.
    method Permit(permissions: []Permission, decidedAt: float)
      -> (isCounted: bool, running: [string]int, pause: ?PauseOrder, rollouts: []Rollout, failures: []Store)

    # The call failed, and nothing was done.
    error Failed (error: Error)

    """
}
