import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// What the queue knows of one store.
extension StoreQueue {
  /// The state of a store.
  enum State: Sendable, Hashable {
    /// The store was touched; nothing happens to it until `until`.
    indirect case waiting(until: Instant, latest: Instant, before: WaitReason)
    /// The version of its file is being read.
    case readingVersion(before: WaitReason)
    case probeQueued
    case probing(touched: Bool)
    /// The store is behind, and its turn in the rollout of its plan has not come.
    case pending
    case runQueued
    case running(inDoubt: Bool)
    case recoveryQueued
    case recovering
    case resting(WaitReason)
  }

  /// What keeps a store's run from starting although its turn has come.
  enum Obstacle: Sendable, Hashable {
    /// An operator paused the start of runs.
    case pause
    /// The fleet has not permitted runs of its plan.
    case noPermission(Rollout.Key)
    /// The window of its watch is closed.
    case closedWindow(_ path: String)
    /// As many runs of its watch are in progress as its `parallel` allows.
    case fullWatch(_ path: String)
  }

  /// What a resting store waits for.
  enum WaitReason: Sendable, Hashable {
    /// A change of the store or of the plugins.
    case idle
    /// A point in time, or one of these changes.
    indirect case backingOff(until: Instant)
    /// One of these changes only: another attempt would fail in the same way.
    case quarantined
  }

  /// In the order that needs the fewest bytes: a queue of 100,000 stores must be small.
  @dynamicMemberLookup
  struct Entry {
    var state: State
    /// The share of the slots that a run takes; of a store that was not probed, a whole one.
    var weight = RunWeight.large
    /// A run was cut off and is not recovered yet.
    var isInterrupted = false
    /// That run was recovered, and the store was not found current since.
    var wasInterrupted = false
    /// An operator ordered to leave the store alone: it is behind, and no run is started.
    var isHeld = false
    /// It was probed since the plugins changed, or cannot be probed.
    var wasProbed = false
    /// A rehearsal of the run succeeded.
    var isRehearsed = false
    /// The digest of the version of its file.
    var version: Int?
    /// Of the file that `announced` was about; 0 for a current or held store, whose file changes all the time.
    var announcedFile: UInt32 = 0
    var owner = Entry.unknownOwner
    /// The last report on the store; the same is not reported twice. Most stores have an equal one.
    var announced: SharedValue<Announcement>?
    var plugin: String? { announced?.value.plugin }
    /// Few stores have these, so the others have no room for them.
    var trouble: SharedValue<Trouble>?
    /// The plan in whose rollout the store is.
    var rollout: Rollout.Key?
    static let unknownOwner = UInt32.max

    /// What failed, and what keeps the store waiting. An entry has these properties too, as if they were its own.
    struct Trouble: Sendable, Hashable {
      /// Failures in a row, of any kind: they set the length of the back-off.
      var failures = 0
      /// Failures in a row with the same cause.
      var equalFailures = 0
      var lastFailure: String?
      /// The last failure, until the store is migrated or found current.
      var error: InstarError?
      /// Even a changed store is not tried before.
      var notBefore: Instant?
      /// Runs that ended as `migrated` since the store was last found current.
      var migrations = 0
      /// Why it is `runQueued` and not in `runQueue`.
      var obstacle: Obstacle?
      /// The queue of `heldBack` that contains the store, even if its obstacle has changed: a queue contains a store
      /// once.
      var queueHeldBackIn: Obstacle?
      /// What the journal has, so that a reload does not repeat it for the same file.
      var reported: ReportedVerdict?
    }

    /// A failure to probe a store that ended its attempts, or damage that a run found.
    struct ReportedVerdict: Sendable, Hashable {
      var state: StoreState
      var cause: String
      /// The digest of the version of the file.
      var file: Int?
    }

    /// The properties of `Trouble`. A store without trouble has their initial values.
    subscript<Value>(dynamicMember property: WritableKeyPath<Trouble, Value>) -> Value {
      get { trouble?.value[keyPath: property] ?? Trouble()[keyPath: property] }
      set {
        var changed = trouble?.value ?? Trouble()
        changed[keyPath: property] = newValue
        if changed != trouble?.value {
          trouble = changed == Trouble() ? nil : SharedValue(changed)
        }
      }
    }

    /// Whether only a change of the store or the plugins causes another attempt. Stays true while the version of the
    /// file is read.
    var isQuarantined: Bool {
      switch state {
      case .resting(let reason), .waiting(_, _, let reason), .readingVersion(let reason):
        reason == .quarantined
      case .probeQueued, .probing, .pending, .runQueued, .running, .recoveryQueued, .recovering:
        false
      }
    }

    /// Whether a run has proven that the file is damaged. No other plugin or setting repairs it.
    var isDamaged: Bool { isQuarantined && announced?.value.state == .corrupt }

    /// As operators see it.
    var activity: Manager.Activity {
      switch state {
      case .waiting, .readingVersion: .waiting
      case .probeQueued, .probing: .probing
      case .pending: .pending
      case .runQueued: .queued
      case .running: .running
      case .recoveryQueued, .recovering: .recovering
      case .resting where isHeld: .held
      case .resting(.backingOff): .retrying
      case .resting(.quarantined): .quarantined
      case .resting(.idle): announced?.value.state.isUnusable == true ? .quarantined : .idle
      }
    }

    /// The plan and the version that a run of the store ends at, once it was probed.
    var rolloutKey: Rollout.Key? {
      if let rollout { return rollout }
      guard let plan = announced?.value.plan, let version = announced?.value.planVersion else {
        return nil
      }
      return Rollout.Key(plan: plan, version: version)
    }

    var group: Group { Group(state: announced?.value.state, plan: announced?.value.plan) }

    mutating func forgetFailures() {
      restartFailureCount()
      self.error = nil
    }

    /// Forgets how often the store failed, so that the next attempt counts as the first. Until then the last error says
    /// why the store failed.
    mutating func restartFailureCount() {
      self.failures = 0
      self.equalFailures = 0
      self.lastFailure = nil
    }
  }

  /// Stores that are counted together.
  struct Group: Sendable, Hashable {
    /// The state at the last probe; `nil` before the first one.
    var state: StoreState?
    /// The plan that knows the stores.
    var plan: String?
  }

  /// The parts of a report that a reader sees. Reports with equal parts are logged once.
  struct Announcement: Hashable {
    var state: StoreState
    var reason: String?
    var version: Schema.Version?
    var plan: String?
    var planVersion: Schema.Version?
    var hold: Hold?
    /// These two are ignored when the queue decides whether to report a store again.
    var plugin: String?
    /// Which processes have a busy store open.
    var holders: String?
    /// Why no plan can be chosen; without the store's path, so that many stores share it.
    var error: InstarError?

    init(_ report: ProbeReport) {
      state = report.state
      reason = report.reason
      version = report.version
      plan = report.plan
      planVersion = report.planVersion
      hold = report.hold
      plugin = report.plugin
      if report.state == .busy { holders = report.holdersInWords }
      if var error = report.error {
        error.what = "cannot choose a plan for the store"
        error.store = nil
        self.error = error
      }
    }
  }

  /// A value that many entries share, or few have: a queue of 100,000 stores must be small.
  final class SharedValue<Value: Sendable>: Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
  }
}
