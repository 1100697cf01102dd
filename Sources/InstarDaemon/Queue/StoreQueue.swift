import HeapModule
public import InstarConfiguration
import InstarSchema
import InstarSupervisor
public import InstarWire

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
/// - A store that is `runQueued` is in `runLine`, or has an `obstacle` and is in `heldBack`.
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
public struct StoreQueue: Sendable {
  /// A point in time, which the caller passes in.
  public typealias Instant = ContinuousClock.Instant

  /// The parts of the configuration that decide when something happens.
  public struct Settings: Sendable, Hashable {
    /// How long a store must be quiet before it is probed.
    public var debounce: Duration
    /// The first and the longest delay after a failure.
    public var retry: Configuration.Retry
    /// How many large stores may run or recover at the same time.
    public var parallelRuns: Int
    /// How many stores one keeper is asked about at a time.
    public var probeBatch = 256
    /// The watches and the rollout.
    var configuration: Configuration

    /// The settings of a configuration, with the default size of a batch.
    public init(_ configuration: Configuration) {
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

  private struct Permission {
    var until: Instant?
    /// How many stores may have failed.
    var failures: Int?
  }

  struct AbsentStore {
    var entry: Entry
    var member: Rollout.EndedMember?
  }

  /// After this number of failures with the same cause, the store is not retried until something changes.
  public static let equalFailureLimit = 3

  /// How long one owner may have all slots while another one's store waits.
  public static let patience: Duration = .seconds(60)

  /// The settings that hold now.
  public private(set) var settings: Settings
  /// Stores that are running or recovering.
  public var runningCount: Int { slots.count }
  /// Stores that run or recover, by plan; under "" those that recover before their first probe.
  var runningCounts: [String: Int] {
    slots.keys.reduce(into: [:]) { $0[entries[$1]?.rolloutKey?.plan ?? "", default: 0] += 1 }
  }
  /// Stores that are not retried before they or the plugins change.
  public var quarantinedCount: Int { activityCounts[.quarantined] ?? 0 }
  /// The earliest moment at which `tick` is wanted; `nil` when nothing waits.
  public private(set) var nextDeadline: Instant?
  var entries = StoreTable<Entry>()
  /// The stores by what the last probe said, and by what happens to them.
  public private(set) var groupCounts: [Group: Int] = [:]
  public private(set) var activityCounts: [Manager.Activity: Int] = [:]
  /// How many stores each owner has.
  private var ownerCounts: [UInt32: Int] = [:]
  private var deadlines: [String: Instant] = [:]
  /// The same, the earliest first, with points in time that no longer count.
  private var alarms = Heap<QueueAlarm>()
  /// Announcements that entries share.
  private var announcements: [Announcement: SharedValue<Announcement>] = [:]
  private static let announcementLimit = 1000
  /// Stores that are missing, with what is known of them if they come back.
  var absent: [String: AbsentStore] = [:]
  private static let absentLimit = 100_000
  /// Stores whose quarantine began, changed or ended since the last action about it.
  var changedQuarantines: Set<String> = []
  /// Stores that an earlier daemon quarantined, each with the plugins of then, until the plugins of now are known.
  var restoredQuarantines: [String: [RolloutRecord.PluginFile]] = [:]
  /// A store that is in another state when its turn comes is skipped.
  private var probeLine = OwnerLine()
  var runLine = OwnerLine()
  /// The stores that are running or recovering, each with its watch.
  private var slots: [String: (owner: UInt32, weight: RunWeight, since: Instant, watch: String?)] =
    [:]
  /// How fast the last runs ended.
  private(set) var runRate = RunRate()
  /// The batch that is out, less the stores already answered. `nil`: none is out.
  private var probesOut: [String]?
  private var batchWasAnswered = false
  /// Whose stores the batch has.
  private var ownerOfProbes = Entry.unknownOwner
  private var probeRest = ProbeRest()
  /// Each plan with stores that have their turn in waves, or after an approval.
  var rollouts: [Rollout.Key: Rollout] = [:]
  /// The plugins in use, by path.
  var pluginFiles: [String: RolloutRecord.PluginFile] = [:]
  private var isScanned = false
  /// Stores that were not probed since the plugins changed.
  private var unprobedCount = 0
  private var mayProbe = false
  private(set) var isPaused = false
  /// Until when runs of a plan may start, where the fleet coordinates them; without a deadline, until it is taken back.
  private var permissions: [Rollout.Key: Permission] = [:]
  /// When the coordinator decided the permissions, in seconds since the boot.
  private var permissionsDecidedAt = -Double.infinity
  /// Stores whose turn came while something kept them from running. A store with another `obstacle` by now is skipped.
  private var heldBack: [Obstacle: OwnerLine] = [:]
  /// The windows of watches by path. A window that is not in here counts as closed.
  private var windows: [String: TimeWindow.State] = [:]
  private(set) var isStopping = false

  /// A queue that probes nothing before `released`.
  public init(settings: Settings) {
    self.settings = settings
  }

  /// Stores that the queue knows, in any state.
  public var storeCount: Int { entries.count }
  /// Their paths, in no order.
  public var stores: [String] { entries.keys }
  /// The number of stores that a user owns.
  func storeCount(ofOwner owner: UInt32) -> Int { ownerCounts[owner] ?? 0 }
  /// Returns the paths of the stores in those of their folders that are wanted, in no order.
  func stores(inFolders isWanted: (String) -> Bool) -> [String] {
    entries.folders(where: isWanted).flatMap { entries.paths(in: $0) }
  }
  /// Returns the state of a store; `nil` where the queue does not know it.
  public func state(of store: String) -> State? { entries[store]?.state }
  /// Stores that wait for a probe.
  public var probeQueueLength: Int { probeLine.count }
  /// Stores that wait for a probe or a run; one that was queued twice counts twice.
  public var queuedCount: Int {
    probeLine.count + runLine.count + heldBack.values.reduce(0) { $0 + $1.count }
  }

  /// Takes an event in and returns what to do, in order.
  public mutating func handle(_ event: Event, at now: Instant) -> [Action] {
    var actions: [Action] = []
    switch event {
    case .touched(let store): touched(store, now)
    case .versionRead(let store, let version): versionRead(store, version)
    case .found(let stores):
      for store in stores { versionRead(store.path, store.version) }
    case .missing(let store): setAside(store)
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
      liftOutdatedQuarantines()
    case .holdsChanged(let changed, let held): doubtHolds(of: changed, held: held)
    case .retryWanted(let stores, let byOperator): retry(stores, byOperator: byOperator)
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

  private mutating func versionRead(_ store: String, _ version: FileVersion) {
    guard var entry = entries[store] else {
      if bringBack(store, version) { return }
      put(Entry(state: .probeQueued, owner: version.owner), store)
      probeLine.append(store, version.owner)
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

  /// Queues the recovery of a run that was cut off, or that could not be recovered or recorded when it ended.
  ///
  /// A store that does not rest keeps its state: its run may be the open one. If not, the next rescan finds it again.
  private mutating func interrupted(_ store: String, _ owner: UInt32?) {
    if let entry = entries[store] {
      guard case .resting = entry.state, !entry.isInterrupted else { return }
    }
    let owner = owner ?? Entry.unknownOwner
    if absent.removeValue(forKey: store) != nil { changedQuarantines.insert(store) }
    var entry = Entry(state: .recoveryQueued, isInterrupted: true, owner: owner)
    entry.rollout = entries[store]?.rollout
    put(entry, store)
    runLine.append(store, owner)
  }

  private mutating func recovered(
    _ store: String, _ error: InstarError?, _ now: Instant, _ actions: inout [Action]
  ) {
    slots[store] = nil
    guard var entry = entries[store], entry.state == .recovering else { return }
    if let error {
      var followUp = failed(
        &entry, error, signature: error.cause, hasChanged: false, now)
      if isStopping { followUp = .afterRestart }
      entry.wasProbed = true
      actions.append(.reportRecoveryFailure(error, followUp))
    } else {
      let rollout = entry.rollout
      entry = Entry(
        state: wait(now, before: .idle), wasInterrupted: true, owner: entry.owner)
      entry.rollout = rollout
    }
    put(entry, store)
  }

  /// Removes a missing store from the queue. Its file system may only be unmounted, so facts that a probe cannot find
  /// again are kept: whether it is quarantined, and its result in its rollout.
  private mutating func setAside(_ store: String) {
    guard let entry = entries[store] else { return }
    let member = entry.rollout.flatMap { rollouts[$0]?.ended(store) }
    remove(store)
    guard entries[store] == nil, entry.version != nil, entry.failures > 0 || member != nil else {
      return
    }
    if absent.count >= Self.absentLimit { forgetAbsent() }
    absent[store] = AbsentStore(entry: entry, member: member)
  }

  /// Restores a store that was missing, if its file has not changed.
  private mutating func bringBack(_ store: String, _ version: FileVersion) -> Bool {
    guard let known = absent.removeValue(forKey: store) else { return false }
    guard known.entry.version == version.digest else {
      if known.entry.isQuarantined { changedQuarantines.insert(store) }
      return false
    }
    var entry = known.entry
    entry.owner = version.owner
    if let key = entry.rollout, let member = known.member {
      rollouts[key]?.bringBack(store, member)
    } else if restoredQuarantines[store] != nil {
      rejoinRollout(store, &entry)
    }
    switch entry.state {
    // What was under way when it went missing is begun again.
    case .waiting(_, _, let reason), .readingVersion(let reason), .resting(let reason):
      entry.state = .resting(reason)
      put(entry, store)
      // Its record is on disk.
      changedQuarantines.remove(store)
    default:
      put(entry, store)
      queueProbe(store)
    }
    return true
  }

  /// Gives the stores in a folder their new paths, or forgets those that no watch has there. A run goes on under the
  /// old path, and a store that is probed is probed again.
  private mutating func move(from old: String, to new: String, _ now: Instant) {
    let prefix = old + "/"
    for (store, var entry) in entries where store.hasPrefix(prefix) {
      let path = new + "/" + store.dropFirst(prefix.count)
      switch entry.state {
      case .running, .recoveryQueued, .recovering: continue
      default: break
      }
      guard entries[path] == nil, !entry.isInterrupted else { continue }
      let member = entry.rollout.flatMap { rollouts[$0]?.ended(store) }
      remove(store)
      guard let watch = settings.configuration.watch(ofStore: path) else { continue }
      if let key = entry.rollout, let member {
        rollouts[key]?.bringBack(path, member)
        rollouts[key]?.noteWatch(watch.path, of: path)
      }
      switch entry.state {
      case .resting: put(entry, path)
      default:
        entry.version = nil
        entry.state = wait(now, before: .idle)
        put(entry, path)
      }
    }
  }

  private mutating func remove(_ store: String) {
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

  private mutating func probed(
    _ report: ProbeReport, _ before: FileVersion?, _ after: FileVersion?, _ now: Instant,
    _ actions: inout [Action]
  ) {
    let store = report.store
    guard answer(store), var entry = entries[store], case .probing(let touched) = entry.state
    else { return }
    guard let after else {
      remove(store)
      return
    }
    let hasChanged = before != after
    if Self.mayBeOutdated(report, touched: touched, hasChanged: hasChanged) {
      entry.version = nil
      entry.state = wait(now, before: .idle)
      put(entry, store)
      return
    }
    entry.wasProbed = true
    let known = (hasChanged ? before : after)?.digest
    if entry.version != known { entry.forgetFailures() }
    entry.version = known
    entry.weight = RunWeight(storeBytes: report.sizeBytes)
    if [.unknown, .unreadable].contains(report.state), report.format == nil {
      // The keeper died, or could not read the store. That may pass.
      actions.append(reportProbeFailure(report, &entry, now))
      noteProbeFailure(store, entry)
    } else {
      announce(report, file: known, &entry, &actions)
      entry.isHeld = report.hold != nil
      follow(report, &entry, now, &actions)
    }
    put(entry, store)
  }

  /// Keeps a verdict, and reports it unless it is the last one on this file.
  private mutating func announce(
    _ report: ProbeReport, file known: Int?, _ entry: inout Entry, _ actions: inout [Action]
  ) {
    let announcement = Announcement(report)
    let isAnyFile = report.state == .current || report.hold != nil
    let file = isAnyFile ? 0 : UInt32(truncatingIfNeeded: known ?? 0)
    var last = entry.announced?.value
    last?.plugin = report.plugin
    if entry.announced?.value != announcement { entry.announced = shared(announcement) }
    guard last != announcement || entry.announcedFile != file else { return }
    entry.announcedFile = file
    actions.append(.reportProbe(report))
  }

  private mutating func shared(_ announcement: Announcement) -> SharedValue<Announcement> {
    if let known = announcements[announcement] { return known }
    // Reasons may name the store. Then no two announcements are equal, so their number is limited.
    if announcements.count >= Self.announcementLimit { announcements = [:] }
    let new = SharedValue(announcement)
    announcements[announcement] = new
    return new
  }

  /// Whether a verdict may concern an earlier content of the file.
  private static func mayBeOutdated(
    _ report: ProbeReport, touched: Bool, hasChanged: Bool
  ) -> Bool {
    switch report.state {
    case .behind: touched && report.hold != nil
    case .busy: false
    case .current: touched
    default: touched || hasChanged
    }
  }

  private func reportProbeFailure(
    _ report: ProbeReport, _ entry: inout Entry, _ now: Instant
  ) -> Action {
    let store = report.store
    let what = "cannot probe '\(store)'"
    let error =
      report.error?.about(what, store: store, state: "unchanged")
      ?? InstarError(
        .unreadableStore, what, store: store,
        cause: report.reason ?? "the keeper gave no reason", state: "unchanged",
        next: "let the store's owner read the file")
    let followUp = failed(&entry, error, signature: error.cause, hasChanged: false, now)
    entry.announced = nil
    return .reportProbeFailure(store, error, followUp)
  }

  /// Decides what a probed store does next.
  private mutating func follow(
    _ report: ProbeReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    let store = report.store
    switch report.state {
    case .behind where entry.isHeld:
      entry.migrations = 0
      leaveRollout(store, &entry)
      entry.state = .resting(.idle)
    case .behind:
      if entry.migrations > 0 {
        // Migrated a moment ago and behind again: somebody restores an old file each time, or the
        // plugin does not do what it declares. Each run leaves a backup, so this must not spin.
        entry.notBefore = max(entry.notBefore ?? now, now + backOff(failures: entry.migrations))
      }
      if let notBefore = entry.notBefore, notBefore > now {
        entry.state = .resting(.backingOff(until: notBefore))
      } else if place(report, &entry) {
        entry.state = .runQueued
        runLine.append(store, entry.owner)
      } else {
        entry.state = .pending
      }
    case .busy:
      entry.failures += 1
      entry.state = restAfterBusy(entry, now)
      noteProbeFailure(store, entry)
      if entry.state == .resting(.quarantined) { actions.append(reportQuarantine(report, &entry)) }
    case .current:
      endTurn(report, &entry)
      entry.forgetFailures()
      entry.migrations = 0
      entry.state = .resting(.idle)
    case .ahead, .unversioned, .unknown, .notAStore, .corrupt, .encrypted, .unreadable:
      leaveRollout(store, &entry)
      entry.migrations = 0
      entry.state = .resting(.idle)
    }
  }

  private mutating func probesEnded(
    _ error: InstarError?, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let left = probesOut else { return }
    probesOut = nil
    for store in left {
      if case .probing? = entries[store]?.state { queueProbe(store) }
    }
    let error =
      error
      ?? (batchWasAnswered ? nil : left.first).map {
        InstarError(
          .protocolViolation, "cannot probe '\($0)'", store: $0,
          cause: "the keeper stopped answering before this store", state: "unchanged",
          next: InstarError.adviceOnOtherVersion)
      }
    guard let error else { return probeRest.end(of: ownerOfProbes) }
    // A store that kills its keeper has an answer that says so. So this error concerns all stores of the owner, or of
    // everybody: no keeper can be started, or a plugin cannot be used after all.
    let delay = probeRest.begin(
      error, of: ownerOfProbes, wasAnswered: batchWasAnswered, at: now, retry: settings.retry)
    noteDeadline(now + delay)
    if !isStopping { actions.append(.reportProbesFailure(error, .retry(after: delay))) }
  }

  private mutating func runEnded(
    _ report: RunReport, _ before: FileVersion?, _ after: FileVersion?, _ now: Instant,
    _ actions: inout [Action]
  ) {
    let store = report.store
    slots[store] = nil
    runRate.ended(at: now, counts: report.result != .rehearsed, isIdle: slots.isEmpty)
    guard var entry = entries[store], case .running(let inDoubt) = entry.state else { return }
    var followUp = FollowUp.none
    entry.isRehearsed = report.result == .rehearsed
    switch report.result {
    case .migrated, .restored, .rehearsed, .current:
      entry.forgetFailures()
      entry.notBefore = nil
      entry.version = nil
      if report.result == .migrated { entry.migrations += 1 }
      // The cutover touched the store: it is probed once more when nothing changes it.
      entry.state = wait(now, before: .idle)
    case .busy:
      entry.version = after?.digest
      entry.failures += 1
      entry.error = report.error
      entry.notBefore = now + settings.retry.first
      entry.state = restAfterBusy(entry, now)
      followUp =
        entry.state == .resting(.quarantined)
        ? .waitsForChange(failures: entry.failures)
        : .retry(after: backOff(failures: entry.failures))
    case .failed, .refused:
      entry.version = after?.digest
      let cause = report.error.map {
        "\($0.code.rawValue) \($0.stage ?? "") \($0.cause)"
          .split(separator: report.run, omittingEmptySubsequences: false).joined(separator: "RUN")
      }
      followUp = failed(
        &entry, report.error, signature: cause ?? "", hasChanged: before != after, now)
      entry.isHeld = report.error?.code == .heldStore
      // A hold is an order, not a failure. After a failure, a hold and its release do not shorten the delay.
      if entry.isHeld { entry.error = nil }
      entry.notBefore = entry.isHeld ? nil : now + settings.retry.first
      // Damage of a file that was replaced says nothing about the new one.
      if let error = report.error, error.provesDamage == true, after != nil, before == after,
        !inDoubt
      {
        noteDamage(error, of: store, &entry, &actions)
      }
    }
    if !isStopping { noteRun(report, &entry, now, &actions) }
    if inDoubt {
      entry.version = nil
      entry.notBefore = nil
      entry.state = wait(now, before: .idle)
      if followUp != .none { followUp = .atOnce }
    }
    if isStopping, followUp != .none { followUp = .afterRestart }
    actions.append(.reportRun(report, followUp))
    put(entry, store)
  }

  /// Takes damage that a run has found for the verdict on the store. A probe reads less of it, and would not find out.
  private mutating func noteDamage(
    _ error: InstarError, of store: String, _ entry: inout Entry, _ actions: inout [Action]
  ) {
    var report = ProbeReport(
      store: store, state: .corrupt, reason: error.cause, version: entry.announced?.value.version)
    report.plan = entry.announced?.value.plan
    report.plugin = entry.plugin
    report.planVersion = entry.announced?.value.planVersion
    report.hold = entry.announced?.value.hold
    announce(report, file: entry.version, &entry, &actions)
  }

  private mutating func doubtVerdicts() {
    probeRest.endAll()
    forgetAbsent()
    for store in entries.keys.sorted() {
      guard var entry = entries[store], !awaitsPlugins(store, entry) else { continue }
      entry.version = nil
      entry.forgetFailures()
      entry.notBefore = nil
      entry.isRehearsed = false
      entry.wasProbed = false
      put(entry, store)
      switch entry.state {
      case .waiting, .readingVersion, .probeQueued, .recoveryQueued, .recovering:
        break
      case .resting, .pending, .runQueued:
        queueProbe(store)
      case .probing:
        enter(.probing(touched: true), store)
      case .running:
        enter(.running(inDoubt: true), store)
      }
    }
  }

  /// Has three kinds of stores probed again: stores that were held, stores that are held now and have no run, and
  /// stores in a probe that may have read their hold before it changed. Without a probe, a store would show its hold
  /// only when its run starts.
  ///
  /// - Parameter changed: Only these; `nil` for all. Any user may change holds all the time, which must not keep the
  ///   stores of others from their verdicts.
  private mutating func doubtHolds(of changed: Set<String>?, held: Set<String>) {
    var affected: [String] = []
    var migrated: [String] = []
    func note(_ store: String, _ entry: Entry) {
      if entry.migrations != 0 { migrated.append(store) }
      let isAffected =
        switch entry.state {
        case .probing: true
        case .pending, .runQueued: held.contains(store)
        default: entry.isHeld || held.contains(store)
        }
      if isAffected { affected.append(store) }
    }
    // The file of a hold on a path without a store may be a store elsewhere by now.
    let isElsewhere = changed?.contains { entries[$0] == nil && !held.contains($0) } ?? false
    if let changed, !isElsewhere {
      for store in changed { if let entry = entries[store] { note(store, entry) } }
    } else {
      for (store, entry) in entries
      where changed?.contains(store) ?? true || entry.isHeld && !held.contains(store) {
        note(store, entry)
      }
    }
    // An operator has restored a store, or released it. If it is behind once more, its plugin is not to blame, even if
    // the hold ended before this daemon saw it.
    for store in migrated { entries[store]?.migrations = 0 }
    for store in affected.sorted() { doubtHold(of: store) }
  }

  private mutating func doubtHold(of store: String) {
    guard var entry = entries[store] else { return }
    switch entry.state {
    case .probing: enter(.probing(touched: true), store)
    case .pending, .runQueued:
      entry.version = nil
      put(entry, store)
      queueProbe(store)
    case .resting, .waiting, .readingVersion:
      entry.version = nil
      if entry.isHeld { entry.forgetFailures() }
      put(entry, store)
      if case .resting = entry.state { queueProbe(store) }
    case .probeQueued, .running, .recoveryQueued, .recovering: break
    }
  }

  mutating func retry(_ stores: [String], byOperator: Bool) {
    for store in stores where canRetry(store) {
      guard var entry = entries[store] else { continue }
      entry.version = nil
      entry.forgetFailures()
      if byOperator { entry.notBefore = nil }
      switch entry.state {
      case .waiting(let until, let latest, _):
        entry.state = .waiting(until: until, latest: latest, before: .idle)
        put(entry, store)
      case .readingVersion:
        entry.state = .readingVersion(before: .idle)
        put(entry, store)
      default:
        put(entry, store)
        queueProbe(store)
      }
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
    if mayProbe, probesOut == nil, !probeRest.isForAll(at: now) {
      let batch = nextBatch(now)
      if !batch.isEmpty {
        probesOut = batch
        batchWasAnswered = false
        actions.append(.probe(batch))
      }
    }
    advanceRollouts(now, &actions)
    releaseHeldBack(now)
    while let store = nextRun(now) {
      guard let entry = entries[store] else { continue }
      let watch = settings.configuration.watch(ofStore: store)
      switch entry.state {
      case .runQueued where isHalted(entry):
        // Its turn came before the halt.
        waitForTurn(store)
        continue
      case .runQueued:
        if let obstacle = obstacle(toRunOf: entry, in: watch, now) {
          entries[store]?.obstacle = obstacle
          if entry.lineHeldBackIn != obstacle {
            entries[store]?.lineHeldBackIn = obstacle
            heldBack[obstacle, default: OwnerLine()].append(store, entry.owner)
          }
          continue
        }
        enter(.running(inDoubt: false), store)
        runRate.began(at: now)
        actions.append(
          .run(store, plugin: entry.plugin, rehearses: needsRehearsal(store, entry)))
      case .recoveryQueued:
        enter(.recovering, store)
        actions.append(.recover(store))
      default: continue
      }
      slots[store] = (entry.owner, entry.weight, now, watch?.path)
    }
  }

  /// What keeps a store of a watch from running now; `nil` if nothing does.
  private func obstacle(
    toRunOf entry: Entry, in watch: Configuration.Watch?, _ now: Instant
  ) -> Obstacle? {
    if isPaused { return .pause }
    if let key = entry.rolloutKey, !isPermitted(key, now) { return .noPermission(key) }
    guard let watch else { return nil }
    if isClosed(watch) { return .closedWindow(watch.path) }
    if freeRuns(of: watch) == 0 { return .fullWatch(watch.path) }
    return nil
  }

  private mutating func permit(_ new: Manager.PermitParameters, _ now: Instant) {
    // A late call may arrive after the next one, and would restore permissions that the next one revoked.
    guard new.decidedAt >= permissionsDecidedAt else { return }
    permissionsDecidedAt = min(new.decidedAt, now.secondsSinceBoot)
    permissions = [:]
    for permission in new.permissions {
      let key = Rollout.Key(plan: permission.plan, version: permission.version)
      permissions[key] = Permission(
        until: permission.until.map(Instant.init(secondsSinceBoot:)), failures: permission.failures)
    }
  }

  private func isPermitted(_ key: Rollout.Key, _ now: Instant) -> Bool {
    guard settings.configuration.coordinator != nil else { return true }
    guard let permission = permissions[key] else { return false }
    if let until = permission.until, until <= now { return false }
    return (rollouts[key]?.count(.failed) ?? 0) <= permission.failures ?? .max
  }

  private func isClosed(_ watch: Configuration.Watch) -> Bool {
    watch.window != nil && windows[watch.path]?.isOpen != true
  }

  func hasClosedWindow(_ path: String) -> Bool { watch(at: path).map(isClosed) == true }

  /// How many more stores of a watch may run.
  private func freeRuns(of watch: Configuration.Watch) -> Int {
    guard let limit = watch.parallelRuns else { return .max }
    return max(0, limit - slots.values.count { $0.watch == watch.path })
  }

  /// Lets stores wait for a slot again whose obstacle is gone.
  private mutating func releaseHeldBack(_ now: Instant) {
    for obstacle in heldBack.keys {
      let count =
        switch obstacle {
        case .pause: isPaused ? 0 : Int.max
        case .noPermission(let key): isPermitted(key, now) ? Int.max : 0
        case .closedWindow(let path): hasClosedWindow(path) ? 0 : Int.max
        case .fullWatch(let path): watch(at: path).map(freeRuns) ?? .max
        }
      release(count, obstacle)
    }
  }

  private func watch(at path: String) -> Configuration.Watch? {
    settings.configuration.watches.first { $0.path == path }
  }

  private mutating func release(_ limit: Int, _ obstacle: Obstacle) {
    var count = 0
    while count < limit, let owner = heldBack[obstacle]?.nextOwner([:]),
      let store = heldBack[obstacle]?.popFirst(of: owner)
    {
      if entries[store]?.lineHeldBackIn == obstacle { entries[store]?.lineHeldBackIn = nil }
      guard let entry = entries[store], entry.obstacle == obstacle else { continue }
      entries[store]?.obstacle = nil
      runLine.append(store, entry.owner)
      count += 1
    }
    if heldBack[obstacle]?.count == 0 { heldBack[obstacle] = nil }
  }

  /// Whether some store has its turn, and waits for more than other runs.
  var hasObstacles: Bool {
    heldBack.keys.contains { if case .fullWatch = $0 { false } else { true } }
  }

  /// Whether every known store was probed, so that a rollout knows how many stores it has.
  var isSettled: Bool { isScanned && mayProbe && unprobedCount == 0 }

  /// Takes stores of the owner who has waited longest from `probeLine`; none where no store waits.
  private mutating func nextBatch(_ now: Instant) -> [String] {
    let rest = probeRest
    while let owner = probeLine.nextOwner([:], where: { !rest.isFor($0, at: now) }) {
      var batch: [String] = []
      var plans: [String]?
      while batch.count < settings.probeBatch, let next = probeLine.first(of: owner) {
        // One request has one selection of plans.
        let wanted = settings.plans(ofStore: next)
        guard plans == nil || plans == wanted else { break }
        guard let store = probeLine.popFirst(of: owner),
          case .probeQueued? = entries[store]?.state
        else { continue }
        plans = wanted
        enter(.probing(touched: false), store)
        batch.append(store)
      }
      if !batch.isEmpty {
        ownerOfProbes = owner
        return batch
      }
    }
    return []
  }

  /// Takes the next store from `runLine`; `nil` while there is no slot for it.
  private mutating func nextRun(_ now: Instant) -> String? {
    let running = slots.values.reduce(into: [UInt32: Int]()) { $0[$1.owner, default: 0] += 1 }
    guard let owner = runLine.nextOwner(running), let store = runLine.first(of: owner) else {
      return nil
    }
    let taken = slots.values.reduce(0) { $0 + $1.weight.rawValue }
    let all = settings.parallelRuns * RunWeight.large.rawValue
    if taken + weight(ofQueued: store) <= all { return runLine.popFirst(of: owner) }
    guard taken <= all, running.count == 1, running[owner] == nil,
      let newest = slots.values.map(\.since).max()
    else { return nil }
    guard newest + Self.patience <= now else {
      noteDeadline(newest + Self.patience)
      return nil
    }
    return runLine.popFirst(of: owner)
  }

  /// 0 for a store that is in another state when its turn comes: it is skipped.
  private func weight(ofQueued store: String) -> Int {
    switch entries[store]?.state {
    case .runQueued, .recoveryQueued: entries[store]?.weight.rawValue ?? 0
    default: 0
    }
  }

  /// Counts a failure and decides what follows.
  ///
  /// - Parameter hasChanged: the store changed during the attempt, so that another one may end otherwise.
  private func failed(
    _ entry: inout Entry, _ error: InstarError?, signature: String, hasChanged: Bool,
    _ now: Instant
  ) -> FollowUp {
    entry.error = error
    entry.failures += 1
    entry.equalFailures = entry.lastFailure == signature ? entry.equalFailures + 1 : 1
    entry.lastFailure = signature
    let limit =
      switch RetryPolicy(for: error?.code) {
      case .always: settings.retry.attempts ?? Int.max
      case .fewTimes: Self.equalFailureLimit
      case .never: 1
      }
    if entry.equalFailures >= limit, !hasChanged {
      entry.state = .resting(.quarantined)
      return .waitsForChange(failures: entry.equalFailures)
    }
    let delay = backOff(failures: entry.failures)
    entry.state = .resting(.backingOff(until: now + delay))
    return .retry(after: delay)
  }

  /// Reports that a store is quarantined because it was busy at each of the allowed attempts.
  private func reportQuarantine(_ report: ProbeReport, _ entry: inout Entry) -> Action {
    let error = InstarError(
      .busyStore, "cannot probe '\(report.store)'", store: report.store,
      cause: report.reason ?? "another process has locked the store", state: "unchanged",
      next: "stop that process, then run: instarctl retry \(CommandText.quoted(report.store))")
    entry.error = error
    return .reportProbeFailure(
      report.store, error, .waitsForChange(failures: entry.failures))
  }

  /// What a busy store does next.
  private func restAfterBusy(_ entry: Entry, _ now: Instant) -> State {
    if let attempts = settings.retry.attempts, entry.failures >= attempts {
      return .resting(.quarantined)
    }
    return .resting(.backingOff(until: now + backOff(failures: entry.failures)))
  }

  private func backOff(failures: Int) -> Duration { settings.retry.delay(failures: failures) }

  private func wait(_ now: Instant, before reason: WaitReason) -> State {
    .waiting(until: now + settings.debounce, latest: now + settings.debounce * 10, before: reason)
  }

  /// Removes a store from the batch of probes in progress. `false` if the batch does not contain it.
  private mutating func answer(_ store: String) -> Bool {
    // Answers come in the order of the batch, so the store is at its beginning.
    guard let place = probesOut?.firstIndex(of: store) else { return false }
    probesOut?.remove(at: place)
    batchWasAnswered = true
    return true
  }

  /// Queues the next step of a store of which nothing is known: its probe, or first its recovery.
  mutating func queueProbe(_ store: String) {
    if let entry = entries[store], entry.isInterrupted {
      enter(.recoveryQueued, store)
      runLine.append(store, entry.owner)
    } else {
      enter(.probeQueued, store)
      probeLine.append(store, entries[store]?.owner ?? Entry.unknownOwner)
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
