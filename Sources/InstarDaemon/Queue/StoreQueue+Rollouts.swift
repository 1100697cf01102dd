import InstarConfiguration
import InstarSchema
import InstarSupervisor
public import InstarWire

/// The turns of stores: which stores that are behind may run now.
extension StoreQueue {
  /// Whether a store that was found behind may run. Otherwise it has its turn later.
  mutating func mayRun(
    _ report: ProbeReport, _ entry: inout Entry, _ now: Instant
  ) -> Bool {
    let store = report.store
    guard let plan = report.plan, let version = report.planVersion else { return true }
    let watch = settings.configuration.watch(ofStore: store)
    let needsApproval = watch?.policy == .ask
    guard settings.configuration.rollout != nil || needsApproval || rollouts[plan]?.halt != nil
    else { return true }
    if entry.rollout != plan { leaveRollout(store, &entry) }
    begin(plan, version, report.plugin, now)
    entry.rollout = plan
    return rollouts[plan]?.add(store, wave: watch?.wave ?? 1, needsApproval: needsApproval) ?? true
  }

  /// Begins the plan's rollout, unless it goes on already to the same version.
  private mutating func begin(
    _ plan: String, _ version: Schema.Version, _ plugin: String?, _ now: Instant
  ) {
    guard rollouts[plan]?.version != version else { return }
    rollouts[plan] = Rollout(
      plan: plan, version: version, plugin: plugin.flatMap { pluginFiles[$0] },
      settings: settings.configuration.rollout ?? RolloutSettings(), began: now)
  }

  /// Opens and ends waves, and queues the stores whose turn it is.
  mutating func advanceRollouts(_ now: Instant, _ actions: inout [Action]) {
    guard !rollouts.isEmpty else { return }
    let isSettled = isSettled
    for plan in rollouts.keys.sorted() {
      while let change = rollouts[plan]?.advance(at: now, isSettled: isSettled) {
        actions.append(.rolloutChanged(plan: plan, change))
      }
      if let end = rollouts[plan]?.soakEnds { noteDeadline(end) }
      while let store = rollouts[plan]?.admitNext() {
        guard let entry = entries[store], entry.state == .pending else { continue }
        enter(.runQueued, store)
        runLine.append(store, entry.owner)
      }
    }
  }

  /// Takes in what a run means for the rollout of its store.
  mutating func noteRun(
    _ report: RunReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let plan = entry.rollout else { return }
    let member: Rollout.Member
    switch (report.result, entry.state) {
    case (.failed, .resting(.quarantined)), (.refused, .resting(.quarantined)),
      (.busy, .resting(.quarantined)):
      if entry.isHeld { return leaveRollout(report.store, &entry) }
      member = .failed
    case (.busy, _): member = .deferred
    case (.failed, _), (.refused, _):
      guard RetryPolicy(for: report.error?.code) == .always else { return }
      member = .deferred
    default: return
    }
    let end = report.startedAt + Double(report.durationMicroseconds) / 1_000_000
    if rollouts[plan]?.end(report.store, as: member, on: end) == true {
      actions.append(.rolloutChanged(plan: plan, .halted))
    }
  }

  /// Takes in that a store was found current.
  mutating func endTurn(_ report: ProbeReport, _ entry: inout Entry) {
    if let plan = entry.rollout {
      rollouts[plan]?.foundCurrent(report.store, isMigrated: entry.migrations > 0)
    } else if entry.wasInterrupted, let plan = report.plan,
      rollouts[plan]?.version == report.planVersion
    {
      // Its run ended after the rollouts were read from the ledger.
      entry.rollout = plan
      rollouts[plan]?.recovered(report.store)
    }
    entry.wasInterrupted = false
  }

  /// Takes a store that is gone out of its rollout.
  mutating func leaveRollout(_ store: String) {
    guard let plan = entries[store]?.rollout else { return }
    rollouts[plan]?.leave(store)
  }

  mutating func leaveRollout(_ store: String, _ entry: inout Entry) {
    guard let plan = entry.rollout else { return }
    rollouts[plan]?.leave(store)
    entry.rollout = nil
  }

  /// Whether the rollout of a queued store was halted meanwhile.
  func isHalted(_ entry: Entry) -> Bool {
    entry.rollout.map { rollouts[$0]?.halt != nil } ?? false
  }

  /// Lets a queued store wait for its turn once more.
  mutating func waitForTurn(_ store: String) {
    guard let plan = entries[store]?.rollout else { return }
    let wave = settings.configuration.watch(ofStore: store)?.wave ?? 1
    _ = rollouts[plan]?.add(store, wave: wave, needsApproval: false)
    enter(.pending, store)
  }

  /// Whether the run of a store is a rehearsal.
  func needsRehearsal(_ store: String, _ entry: Entry) -> Bool {
    !entry.isRehearsed && settings.configuration.watch(ofStore: store)?.policy == .rehearse
  }

  // MARK: Plugins and settings

  /// Takes in the plugins that are used. A rollout whose plugin has another file starts again: with other code, the
  /// first stores are canaries again.
  mutating func follow(_ files: [RolloutRecord.PluginFile]) {
    pluginFiles = Dictionary(uniqueKeysWithValues: files.map { ($0.path, $0) })
    for (plan, rollout) in rollouts {
      guard let old = rollout.plugin, let new = pluginFiles[old.path], old != new else { continue }
      drop(plan)
    }
  }

  mutating func applySettingsToRollouts() {
    for (plan, rollout) in rollouts {
      if let new = settings.configuration.rollout {
        rollouts[plan]?.update(new)
      } else if rollout.halt == nil, rollout.count(.waiting) == 0 {
        drop(plan)
      } else {
        rollouts[plan]?.update(RolloutSettings())
      }
    }
  }

  /// Forgets a rollout. Its stores are probed again by whoever calls this.
  private mutating func drop(_ plan: String) {
    rollouts[plan] = nil
    for (store, entry) in entries where entry.rollout == plan { entries[store]?.rollout = nil }
  }

  // MARK: Orders

  mutating func follow(
    _ order: RolloutOrder, _ plan: String, _ now: Instant, _ actions: inout [Action]
  ) {
    switch order {
    case .halt(let pause):
      beginForHalt(plan, now)
      rollouts[plan]?.stop(pause)
      actions.append(.rolloutChanged(plan: plan, .halted))
    case .resume:
      rollouts[plan]?.resume()
      actions.append(.rolloutChanged(plan: plan, .resumed))
    case .approve(let stores):
      rollouts[plan]?.approve(stores)
      actions.append(.rolloutChanged(plan: plan, .approved))
    }
  }

  /// Brings all queued stores of a plan into its rollout, which may not exist: without waves, nothing else needs one.
  private mutating func beginForHalt(_ plan: String, _ now: Instant) {
    guard let version = version(ofPlan: plan) else { return }
    for (store, entry) in entries where entry.announced?.plan == plan {
      begin(plan, version, entry.plugin, now)
      if entry.state == .runQueued { entries[store]?.rollout = plan }
    }
  }

  /// The last version of a plan, as the probe of some store said; `nil` where no store is of this plan.
  func version(ofPlan plan: String) -> Schema.Version? {
    rollouts[plan]?.version
      ?? entries.values.first { $0.announced?.plan == plan && $0.announced?.planVersion != nil }?
      .announced?.planVersion
  }

  // MARK: What outlasts the daemon, and what operators see

  /// Takes in the rollouts that an earlier daemon recorded, before any store is probed.
  mutating func restore(
    _ recorded: [(RolloutRecord, migrated: Set<String>, failed: Set<String>)],
    at now: Rollout.Moment
  ) {
    for (record, migrated, failed) in recorded {
      rollouts[record.plan] = Rollout(
        record, settings: settings.configuration.rollout ?? RolloutSettings(), migrated: migrated,
        failed: failed, at: now)
    }
  }

  /// What is recorded of the rollouts, by plan.
  func rolloutRecords(at now: Rollout.Moment) -> [RolloutRecord] {
    rollouts.values.map { $0.record(at: now) }.sorted { $0.plan < $1.plan }
  }

  /// The rollouts as operators see them, by plan.
  public func rolloutStatuses(at now: Instant) -> [Manager.Rollout] {
    rollouts.values.map { $0.status(at: now) }.sorted { $0.plan < $1.plan }
  }
}
