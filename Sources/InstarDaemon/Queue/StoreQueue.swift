import HeapModule
import InstarConfiguration
import InstarSupervisor
import InstarWire

/// Decides what happens to every store, and when: events in, actions out.
///
/// It does no I/O and reads no clock. `Daemon` performs the actions and returns their results as events.
///
/// States of a store:
///
/// ```text
///            touched                due                  changed
///  (none) ───────────▶ waiting ───────▶ readingVersion ────────▶ probeQueued ──▶ probing
///     │                  ▲  ▲                  │ unchanged                         │
///     └── found by a scan│──│──────────────────┼───────────────▶ probeQueued       │ behind
///                        │  └──── touched ─ resting ◀───────── anything else ──────┤
///                        │                     ▲                                   ▼
///                        └──── migrated ───────┼── failed, busy ──── running ◀── runQueued
///                                                                        ▲
///  (none) ───────── interrupted ─────▶ recoveryQueued ──▶ recovering ─────┘ then as after a run
/// ```
///
/// Invariants:
/// - A store that is `runQueued` is in `runQueue`, or has an `obstacle` and is in `heldBack`.
/// - At most `settings.parallelRuns` stores are running or recovering, where four small stores count as one
///   (`RunWeight`), and a store has at most one run. The owner with the fewest runs is next. If the stores of one owner
///   have all slots for the time `patience`, one more run may start for another owner: stores of one owner never stop
///   the work on those of another.
/// - A store whose run was cut off is neither probed nor migrated before its recovery.
/// - At most one batch of probes is in progress. It has stores of one owner, and ends at the first store for which its
///   keeper gives no answer. Then the next owner has a turn: if stores hang their keepers, other owners wait for one of
///   them at a time.
/// - `Entry.version` is the version of the file at the last verdict, or `nil` if that verdict is in doubt. A store
///   whose file still has that version is not probed again. So the events of our own reads and writes cause at most
///   one probe.
/// - A verdict is dropped if the file changed during the probe, with two exceptions. `behind` is kept, because a run
///   probes the store again under its lock; so a store that an app writes all the time is migrated too. `current` is
///   kept for the file as it was before the probe.
/// - A store waits at most `debounce * 10`, even if an app writes it all the time.
/// - Every entry that waits for a point in time is in `deadlines`, and no other is; each of these is in `alarms`, and
///   `nextDeadline` is never later than the earliest of them.
struct StoreQueue: Sendable {
  /// A point in time, which the caller passes in.
  typealias Instant = ContinuousClock.Instant

  /// The parts of the configuration that decide when something happens.
  struct Settings: Sendable, Hashable {
    /// How long a store must be quiet before it is probed.
    var debounce: Duration
    /// The first and the longest delay after a failure.
    var retry: Configuration.Retry
    /// How many large stores may run or recover at the same time.
    var parallelRuns: Int
    /// How many stores one keeper is asked about at a time.
    var probeBatch = 256
    /// The watches and the rollout.
    var configuration: Configuration

    /// The settings of a configuration, with the default size of a batch.
    init(_ configuration: Configuration) {
      debounce = configuration.debounce
      retry = configuration.retry
      parallelRuns = configuration.parallelRuns
      self.configuration = configuration
      namesPlans = configuration.watches.contains { !$0.plans.isEmpty }
    }

    /// Whether some watch names plans.
    private let namesPlans: Bool

    /// The plans that a store's watch names.
    func plans(ofStore store: String) -> [String] {
      namesPlans ? configuration.watch(ofStore: store)?.plans ?? [] : []
    }
  }

  /// The settings that hold now.
  private(set) var settings: Settings
  /// The earliest moment at which `tick` is wanted; `nil` when nothing waits.
  private(set) var nextDeadline: Instant?
  var entries = StoreTable<Entry>()
  /// The stores by what the last probe said, and by what happens to them.
  private(set) var groupCounts: [Group: Int] = [:]
  private(set) var activityCounts: [Manager.Activity: Int] = [:]
  /// How many stores each owner has.
  private var ownerCounts: [UInt32: Int] = [:]
  private var deadlines: [String: Instant] = [:]
  /// The points in time of `deadlines`, the earliest first, and some that no longer count.
  private var alarms = Heap<QueueAlarm>()
  /// Announcements that entries share.
  var announcements: [Announcement: SharedValue<Announcement>] = [:]
  /// The stores that are held.
  var held: Set<String> = []
  /// Stores that are missing, with what is known of them if they come back.
  var absent: [String: AbsentStore] = [:]
  /// Stores whose quarantine began, changed or ended since the last action about it.
  var changedQuarantines: Set<String> = []
  /// Stores that an earlier daemon quarantined, with the plugins that it used, until the present plugins are known.
  var restoredQuarantines: [String: [RolloutRecord.PluginFile]] = [:]
  /// A store that is in another state when its turn comes is skipped.
  var probeQueue = OwnerQueue()
  var runQueue = OwnerQueue()
  /// The stores that are running or recovering, each with its watch. Only `StoreQueue+Runs.swift` changes them.
  var slots: [String: (owner: UInt32, weight: RunWeight, since: Instant, watch: String?)] = [:]
  /// How fast the last runs ended.
  var runRate = RunRate()
  /// The stores of the batch in progress that have no answer yet; `nil` if no batch is in progress. Only
  /// `StoreQueue+Probes.swift` changes it.
  var probesOut: [String]?
  var batchWasAnswered = false
  /// Whose stores the batch has.
  var ownerOfProbes = Entry.unknownOwner
  var probeRest = ProbeRest()
  /// Each plan with stores that have their turn in waves, or after an approval.
  var rollouts: [Rollout.Key: Rollout] = [:]
  /// The plugins in use, by path.
  var pluginFiles: [String: RolloutRecord.PluginFile] = [:]
  private var isScanned = false
  /// Stores that were not probed since the plugins changed.
  private var unprobedCount = 0
  private var mayProbe = false
  private(set) var isPaused = false
  /// Until when runs of a plan may start, where the fleet coordinates them; without a deadline, until it is revoked.
  var permissions: [Rollout.Key: Permission] = [:]
  /// When the coordinator decided the permissions, in seconds since the boot.
  var permissionsDecidedAt = -Double.infinity
  /// Stores whose turn came while something kept them from running. A store with another `obstacle` by now is skipped.
  var heldBack: [Obstacle: OwnerQueue] = [:]
  /// The windows of watches by path. A window that is not in here counts as closed.
  private(set) var windows: [String: TimeWindow.State] = [:]
  private(set) var isStopping = false

  /// A queue that probes nothing before `released`.
  init(settings: Settings) {
    self.settings = settings
  }

  /// The number of stores that a user owns.
  func storeCount(ofOwner owner: UInt32) -> Int { ownerCounts[owner] ?? 0 }

  /// Returns the state of a store; `nil` where the queue does not know it.
  func state(of store: String) -> State? { entries[store]?.state }

  /// Takes an event in and returns what to do, in order.
  mutating func handle(_ event: Event, at now: Instant) -> [Action] {
    var actions: [Action] = []
    switch event {
    case .touched(let store): touched(store, now)
    case .versionRead(let store, let version): versionRead(store, version)
    case .found(let stores):
      for store in stores { versionRead(store.path, store.version) }
    case .missing(let store): setAside(store)
    case .unanswered(let store): leaveUnanswered(store, now)
    case .forgotten(let store): remove(store)
    case .folderMoved(let old, let new): move(from: old, to: new, now)
    case .probed(let report, let before, let after):
      probed(report, before, after, now, &actions)
    case .probesEnded(let error): probesEnded(error, now, &actions)
    case .runEnded(let report, let before, let after):
      runEnded(report, before, after, now, &actions)
    case .interrupted(let store, let owner): interrupted(store, owner)
    case .recovered(let store, let error): recovered(store, error, now, &actions)
    case .released:
      mayProbe = true
      liftOutdatedQuarantines(now)
    case .holdsChanged(let changed, let held): doubtHolds(of: changed, held: held)
    case .retryWanted(let stores, let byOperator): retry(stores, byOperator: byOperator, now)
    case .pauseChanged(let isPaused): self.isPaused = isPaused
    case .permitted(let new): permit(new, now)
    case .windowsKnown(let windows): self.windows = windows
    case .verdictsInDoubt: doubtVerdicts()
    case .pluginsKnown(let files): usePlugins(files)
    case .scanned: isScanned = true
    case .rolloutOrder(let plan, let order): obey(order, plan, now, &actions)
    case .settingsChanged(let settings):
      self.settings = settings
      // The settings may cure what failed before the start, too.
      restoredQuarantines = [:]
      windows = [:]
      applySettingsToRollouts()
      // No work begins before the verdicts are in doubt: a run would use the old policy, plans or rollout.
      return actions
    case .tick: tick(now, &actions)
    case .stopping: isStopping = true
    }
    noteQuarantines(&actions)
    beginWork(now, &actions)
    return actions
  }

  // MARK: Events

  private mutating func touched(_ store: String, _ now: Instant) {
    guard let entry = entries[store] else {
      put(Entry(state: wait(now, before: .idle)), store)
      return
    }
    switch entry.state {
    case .waiting(_, let latest, let reason):
      let until = min(now + settings.debounce, latest)
      enter(.waiting(until: until, latest: latest, before: reason), store)
    case .readingVersion(let reason), .resting(let reason):
      enter(wait(now, before: reason), store)
    case .probing:
      enter(.probing(touched: true), store)
    case .pending:
      // It may wait for days. Its place in the rollout stays.
      entries[store]?.version = nil
      enter(wait(now, before: .idle), store)
    case .probeQueued, .runQueued, .running, .recoveryQueued, .recovering:
      // The probe or the run sees the change; after a run the version is read again.
      break
    }
  }

  private mutating func versionRead(_ store: String, _ version: WatchedVersion) {
    guard var entry = entries[store] else {
      if bringBack(store, version) { return }
      put(Entry(state: .probeQueued, owner: version.owner), store)
      probeQueue.append(store, to: version.owner)
      return
    }
    // Most stores that a scan finds.
    if entry.version == version.digest, case .resting = entry.state { return }
    if entry.owner != version.owner {
      entry.owner = version.owner
      put(entry, store)
    }
    switch entry.state {
    case .readingVersion(let reason), .resting(let reason):
      if entry.version == version.digest {
        enter(.resting(reason), store)
      } else {
        queueProbe(store)
      }
    case .waiting, .probeQueued, .probing, .pending, .runQueued, .running, .recoveryQueued,
      .recovering:
      break
    }
  }

  private mutating func tick(_ now: Instant, _ actions: inout [Action]) {
    var due: [String] = []
    while let alarm = alarms.min, !isSet(alarm) || alarm.at <= now {
      alarms.removeMin()
      if isSet(alarm) { due.append(alarm.store) }
    }
    for store in due.sorted() {
      guard let entry = entries[store] else { continue }
      switch entry.state {
      case .waiting(_, _, let reason):
        enter(.readingVersion(before: reason), store)
        actions.append(.readVersion(store))
      case .resting(.backingOff):
        queueProbe(store)
      default:
        break
      }
    }
    // `beginWork` adds the deadline of a store that waits for a slot.
    nextDeadline =
      ([alarms.min?.at, probeRest.deadline(after: now)] + rollouts.values.map(\.deadline))
      .compactMap { $0 }.min()
  }

  /// Whether the store still waits for this point in time.
  private func isSet(_ alarm: QueueAlarm) -> Bool { deadlines[alarm.store] == alarm.at }

  // MARK: Steps

  /// Starts the next batch of probes and as many runs as allowed.
  private mutating func beginWork(_ now: Instant, _ actions: inout [Action]) {
    guard !isStopping else { return }
    if mayProbe { beginProbes(now, &actions) }
    advanceRollouts(now, &actions)
    releaseHeldBack(now)
    beginRuns(now, &actions)
  }

  /// Whether every known store was probed, so that a rollout knows how many stores it has.
  var areAllProbed: Bool { isScanned && mayProbe && unprobedCount == 0 }

  /// The state of a store that was just touched.
  func wait(_ now: Instant, before reason: WaitReason) -> State {
    .waiting(until: now + settings.debounce, latest: now + settings.debounce * 10, before: reason)
  }

  /// Queues the next step of a store without a verdict: its recovery if a run was cut off, else its probe.
  mutating func queueProbe(_ store: String) {
    if let entry = entries[store], entry.isInterrupted {
      enter(.recoveryQueued, store)
      runQueue.append(store, to: entry.owner)
    } else {
      enter(.probeQueued, store)
      probeQueue.append(store, to: entries[store]?.owner ?? Entry.unknownOwner)
    }
  }

  mutating func enter(_ state: State, _ store: String) {
    guard var entry = entries[store] else { return }
    entry.state = state
    put(entry, store)
  }

  /// Changes an entry, and with it the deadlines and counts. Nothing else may change entries.
  mutating func put(_ entry: Entry, _ store: String) {
    noteQuarantine(of: store, from: entries[store], to: entry)
    if entries[store]?.wasProbed == false { unprobedCount -= 1 }
    if !entry.wasProbed { unprobedCount += 1 }
    if let old = entries[store] { count(old, -1) }
    count(entry, 1)
    entries[store] = entry
    if entry.state != .runQueued { entries[store]?.obstacle = nil }
    switch entry.state {
    case .waiting(let until, _, _), .resting(.backingOff(let until)):
      if deadlines.updateValue(until, forKey: store) != until {
        alarms.insert(QueueAlarm(at: until, store: store))
      }
      noteDeadline(until)
    default:
      if deadlines[store] != nil { deadlines[store] = nil }
    }
  }

  /// Forgets a store, unless it has a run that was cut off or is in progress.
  mutating func remove(_ store: String) {
    if let entry = entries[store], entry.isInterrupted {
      // Also a store that is gone is recovered.
      if case .readingVersion = entry.state { queueProbe(store) }
      return
    }
    if case .running? = entries[store]?.state {
      // A run ends by itself; reading the version after it finds the store missing.
      enter(.running(inDoubt: true), store)
      return
    }
    if entries[store]?.isQuarantined == true { changedQuarantines.insert(store) }
    if entries[store]?.wasProbed == false { unprobedCount -= 1 }
    _ = answer(store)
    if var entry = entries[store] {
      count(entry, -1)
      leaveRollout(store, &entry)
      for key in rollouts.keys.sorted() { rollouts[key]?.forgetOrders(for: store) }
    }
    entries[store] = nil
    deadlines[store] = nil
  }

  private mutating func count(_ entry: Entry, _ difference: Int) {
    activityCounts[entry.activity, default: 0] += difference
    groupCounts[entry.group, default: 0] += difference
    if groupCounts[entry.group] == 0 { groupCounts[entry.group] = nil }
    ownerCounts[entry.owner, default: 0] += difference
    if ownerCounts[entry.owner] == 0 { ownerCounts[entry.owner] = nil }
  }

  mutating func noteDeadline(_ deadline: Instant) {
    nextDeadline = nextDeadline.map { min($0, deadline) } ?? deadline
  }
}

/// A point in time at which a store has waited long enough.
private struct QueueAlarm: Comparable {
  var at: StoreQueue.Instant
  var store: String

  static func < (one: QueueAlarm, other: QueueAlarm) -> Bool { one.at < other.at }
}
