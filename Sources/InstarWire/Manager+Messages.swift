public import InstarSchema

/// The parameters and the replies of the methods.
extension Manager {
  /// What `GetStatus` returns.
  public struct StatusReply: Sendable, Codable, Hashable {
    /// As it is when the daemon replies.
    public var status: Status

    package init(status: Status) { self.status = status }
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
    /// Its turn in that rollout, or its result there.
    public var turn: Turn?
    /// How its path begins.
    public var prefix: String?

    package init(
      state: StoreState? = nil, activity: Activity? = nil, plan: String? = nil, wave: Int? = nil,
      turn: Turn? = nil, prefix: String? = nil
    ) {
      self.state = state
      self.activity = activity
      self.plan = plan
      self.wave = wave
      self.turn = turn
      self.prefix = prefix
    }

    /// Whether the filter allows a store with this path.
    public func allows(path: String) -> Bool { prefix.map(path.hasPrefix) ?? true }

    /// Whether the filter allows a store.
    public func allows(_ store: Store) -> Bool {
      (state == nil || store.state == state) && (activity == nil || store.activity == activity)
        && (plan == nil || store.plan == plan) && (wave == nil || store.wave == wave)
        && (turn == nil || store.turn == turn) && allows(path: store.store)
    }
  }

  /// What `ListStores` returns: some stores, by path. More replies have the rest.
  public struct StoresReply: Sendable, Codable, Hashable {
    /// Those that the caller may see and that match the filter. Each is in one reply.
    public var stores: [Store]

    package init(stores: [Store]) { self.stores = stores }
  }

  /// What `Retry` returns.
  public struct RetryReply: Sendable, Codable, Hashable {
    /// The stores that are retried now.
    public var stores: [Store]
    /// The other wanted stores, each with `notRetried`; `nil` from an earlier release.
    public var others: [Store]?

    /// `others` is empty if instard retries every wanted store now.
    package init(stores: [Store], others: [Store]?) {
      self.stores = stores
      self.others = others
    }
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

    package init(
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
    /// It was posted after the events of all replies before.
    public var event: Event
    /// How many events before it the client has missed, because it read too slowly; left out for none.
    public var missed: Int?

    package init(event: Event, missed: Int? = nil) {
      self.event = event
      self.missed = missed
    }
  }

  /// The parameters of `Retry`.
  public struct RetryParameters: Sendable, Codable, Hashable {
    /// The paths of the stores; empty for all that failed.
    public var stores: [String]

    package init(stores: [String]) { self.stores = stores }
  }

  /// The parameters of `Pause`.
  public struct PauseParameters: Sendable, Codable, Hashable {
    /// The reason.
    public var why: String?
    /// The plan whose rollout is halted; `nil` for all runs.
    public var plan: String?

    package init(why: String?, plan: String? = nil) {
      self.why = why
      self.plan = plan
    }
  }

  /// The parameters of `Resume`.
  public struct ResumeParameters: Sendable, Codable, Hashable {
    /// The plan whose rollout goes on; `nil` to end a pause of all runs.
    public var plan: String?

    package init(plan: String?) { self.plan = plan }
  }

  /// The parameters of `Approve`: one of them, or both.
  public struct ApproveParameters: Sendable, Codable, Hashable {
    /// The plan whose stores are approved.
    public var plan: String?
    /// The paths of the stores; empty for all stores of the plan.
    public var stores: [String]

    package init(plan: String?, stores: [String]) {
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

    package init(store: String, why: String) {
      self.store = store
      self.why = why
    }
  }

  /// The parameters of `Release`.
  public struct ReleaseParameters: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String
    /// The identifier of the hold to end; left out to end any hold on the store.
    public var hold: String?

    package init(store: String, hold: String? = nil) {
      self.store = store
      self.hold = hold
    }
  }

  /// What `Hold` and `Release` return.
  public struct HoldReply: Sendable, Codable, Hashable {
    /// The hold that was placed or ended; left out where there was none to end.
    public var hold: Hold?

    package init(hold: Hold?) { self.hold = hold }
  }

  /// What `ListHolds` returns.
  public struct HoldsReply: Sendable, Codable, Hashable {
    /// The holds on the client's stores, the oldest first.
    public var holds: [Hold]
    /// One error for each hold that cannot be read. Only administrators get these.
    public var unreadable: [InstarError]

    package init(holds: [Hold], unreadable: [InstarError]) {
      self.holds = holds
      self.unreadable = unreadable
    }
  }

  /// Which runs `History` returns. A field that is left out allows every value.
  public struct RunFilter: Sendable, Codable, Hashable {
    /// The path of the store.
    public var store: String?
    /// How the run ended: in one of these ways.
    public var results: [RunReport.Result]?
    /// The name of the plan.
    public var plan: String?
    /// How many runs at most, the newest ones; never more than `historyLimit`.
    public var limit: Int?

    package init(
      store: String? = nil, results: [RunReport.Result]? = nil, plan: String? = nil,
      limit: Int? = nil
    ) {
      self.store = store
      self.results = results
      self.plan = plan
      self.limit = limit
    }

    /// Whether a run has one of the results, and the plan.
    public func allows(_ run: RunReport) -> Bool {
      results?.contains(run.result) != false && (plan == nil || run.plan == plan)
    }
  }

  /// How many runs `History` returns at most: the daemon remembers where the ledger has each.
  public static let historyLimit = 10_000

  /// What `History` returns: some runs, oldest first. More replies have the rest.
  public struct RunsReply: Sendable, Codable, Hashable {
    /// Those that the caller may see and that match the filter. Each is in one reply.
    public var runs: [RunReport]
    /// How many lines of the ledger cannot be read.
    public var unreadableLines: Int

    package init(runs: [RunReport], unreadableLines: Int) {
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
    /// When it ends, in seconds of the host's CLOCK_BOOTTIME; left out if it lasts until it is revoked. A time and not
    /// a duration: a message that is late must not make a permission longer.
    public var until: Double?
    /// How many stores may have failed; with more, no run starts. Left out for no limit.
    public var failures: Int?

    package init(plan: String, version: Schema.Version, until: Double?, failures: Int? = nil) {
      self.plan = plan
      self.version = version
      self.until = until
      self.failures = failures
    }
  }

  /// The parameters of `Permit`.
  public struct PermitParameters: Sendable, Codable, Hashable {
    /// All permissions that hold from now on. All others are revoked.
    public var permissions: [Permission]
    /// When they were decided, in seconds of the host's CLOCK_BOOTTIME. instard ignores permissions that are older than
    /// those that it has: calls may arrive in another order than they were made.
    public var decidedAt: Double

    package init(permissions: [Permission], decidedAt: Double) {
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

    package init(
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

    package init(error: InstarError) { self.error = error }
  }
}
