import InstarConfiguration
import InstarSchema
import InstarSupervisor
public import InstarWire

/// The turns of stores: which stores that are behind may run now.
extension StoreQueue {
  /// What the rollout of its plan makes of a store that was probed.
  ///
  /// - Returns: whether a store that is behind may run. Otherwise it has its turn later.
  mutating func place(_ report: ProbeReport, _ entry: inout Entry) -> Bool {
    let store = report.store
    guard let plan = report.plan, let version = report.planVersion else { return true }
    if let old = entry.rollout, old != plan { leaveRollout(store, &entry) }
    let watch = settings.configuration.watch(ofStore: store)
    let needsApproval = watch?.policy == .ask
    let isWanted = settings.configuration.rollout != nil || needsApproval
    guard isWanted || rollouts[plan]?.isForgettable == false else { return true }
    begin(plan, version, report.plugin)
    entry.rollout = plan
    return rollouts[plan]?.add(store, wave: watch?.wave ?? 1, needsApproval: needsApproval) ?? true
  }

  /// Begins the plan's rollout, unless one to this version or a later one goes on already.
  private mutating func begin(_ plan: String, _ version: Schema.Version, _ plugin: String?) {
    let old = rollouts[plan]
    let plugin = plugin.flatMap { pluginFiles[$0] }
    if let old, old.version >= version, !isGone(old.plugin, for: plugin) { return }
    if old != nil { drop(plan) }
    var new = Rollout(
      plan: plan, version: version, plugin: plugin,
      settings: settings.configuration.rollout ?? RolloutSettings())
    carryHalt(from: old, to: &new)
    rollouts[plan] = new
  }

  /// Whether another plugin has taken the place of the one that a rollout began with.
  private func isGone(
    _ old: RolloutRecord.PluginFile?, for new: RolloutRecord.PluginFile?
  ) -> Bool {
    guard let old, let new else { return false }
    return new.path != old.path && pluginFiles[old.path] == nil
  }

  /// An operator's order to stop a plan holds for its next version too; a halt by failures does not.
  private func carryHalt(from old: Rollout?, to new: inout Rollout) {
    guard let halt = old?.halt, halt.by != Manager.Rollout.daemon else { return }
    new.stop(halt)
  }

  /// Opens and ends waves, and queues the stores whose turn it is.
  mutating func advanceRollouts(_ now: Instant, _ actions: inout [Action]) {
    guard !rollouts.isEmpty else { return }
    let isSettled = isSettled
    for plan in rollouts.keys.sorted() {
      // Taken out, so that it can be changed while `entries` is read.
      guard var rollout = rollouts.removeValue(forKey: plan) else { continue }
      while let change = rollout.advance(
        at: now, isSettled: isSettled, isKnown: { entries[$0] != nil })
      {
        actions.append(.rolloutChanged(rollout.status(at: now), change))
      }
      while let store = rollout.admitNext({ entries[$0]?.state == .pending }) {
        enter(.runQueued, store)
        runLine.append(store, entries[store]?.owner ?? Entry.unknownOwner)
      }
      if let deadline = rollout.deadline { noteDeadline(deadline) }
      rollouts[plan] = rollout
    }
  }

  /// Takes in what a run means for the rollout of its store.
  mutating func noteRun(
    _ report: RunReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let plan = entry.rollout else { return }
    let isQuarantined = entry.state == .resting(.quarantined)
    if rollouts[plan]?.note(report, isQuarantined: isQuarantined) == true {
      reportRollout(plan, .halted, now, &actions)
    }
    if rollouts[plan]?.has(report.store) != true { entry.rollout = nil }
  }

  /// Takes in that a store of a rollout could not be probed, or was busy.
  mutating func noteProbeFailure(_ store: String, _ entry: Entry) {
    guard let plan = entry.rollout else { return }
    rollouts[plan]?.putOff(store, isQuarantined: entry.state == .resting(.quarantined))
  }

  /// Takes in that a store was found current.
  mutating func endTurn(_ report: ProbeReport, _ entry: inout Entry) {
    let store = report.store
    if entry.wasInterrupted, let plan = report.plan, rollouts[plan]?.version == report.planVersion {
      // Its run ended after the rollouts were read from the ledger.
      rollouts[plan]?.recovered(store)
    }
    entry.wasInterrupted = false
    // After a restart, the ledger has the store, and its entry does not say so.
    if entry.rollout == nil, let plan = report.plan, rollouts[plan]?.has(store) == true {
      entry.rollout = plan
    }
    if let plan = entry.rollout { rollouts[plan]?.foundCurrent(store) }
  }

  /// Takes a store out of its rollout that is gone, held, or no longer behind by itself.
  mutating func leaveRollout(_ store: String, _ entry: inout Entry) {
    guard let plan = entry.rollout else { return }
    rollouts[plan]?.leave(store)
    entry.rollout = nil
  }

  /// Whether the rollout of a queued store was halted meanwhile.
  func isHalted(_ entry: Entry) -> Bool {
    entry.rollout.map { rollouts[$0]?.halt != nil } ?? false
  }

  /// Lets a store that had its turn before a halt wait for the end of the halt.
  mutating func waitForTurn(_ store: String) {
    guard let plan = entries[store]?.rollout else { return }
    enter(.pending, store)
    let watch = settings.configuration.watch(ofStore: store)
    _ = rollouts[plan]?.add(
      store, wave: watch?.wave ?? 1, needsApproval: watch?.policy == .ask)
  }

  /// Whether the run of a store is a rehearsal.
  func needsRehearsal(_ store: String, _ entry: Entry) -> Bool {
    !entry.isRehearsed && settings.configuration.watch(ofStore: store)?.policy == .rehearse
  }

  // MARK: Plugins and settings

  /// Takes in the plugins that are used. A rollout whose plugin has another file starts again: with other code,
  /// the first stores are canaries again.
  mutating func usePlugins(_ files: [RolloutRecord.PluginFile]) {
    pluginFiles = Dictionary(uniqueKeysWithValues: files.map { ($0.path, $0) })
    for (plan, rollout) in rollouts {
      guard let old = rollout.plugin, let new = pluginFiles[old.path], old != new else { continue }
      drop(plan)
      var next = Rollout(
        plan: plan, version: rollout.version, plugin: new,
        settings: settings.configuration.rollout ?? RolloutSettings())
      carryHalt(from: rollout, to: &next)
      if next.halt != nil { rollouts[plan] = next }
    }
  }

  mutating func applySettingsToRollouts() {
    let new = settings.configuration.rollout
    for plan in rollouts.keys.sorted() {
      if new == nil, rollouts[plan]?.isForgettable == true {
        drop(plan)
      } else {
        rollouts[plan]?.update(new ?? RolloutSettings())
      }
    }
  }

  /// Forgets a rollout. Stores that waited for their turn in it are probed again.
  private mutating func drop(_ plan: String) {
    rollouts[plan] = nil
    for (store, entry) in entries where entry.rollout == plan {
      entries[store]?.rollout = nil
      if entry.state == .pending { queueProbe(store) }
    }
  }

  // MARK: Orders

  mutating func obey(
    _ order: RolloutOrder, _ plan: String, _ now: Instant, _ actions: inout [Action]
  ) {
    switch order {
    case .halt(let pause):
      beginForHalt(plan)
      rollouts[plan]?.stop(pause)
      reportRollout(plan, .halted, now, &actions)
    case .resume:
      rollouts[plan]?.resume()
      reportRollout(plan, .resumed, now, &actions)
    case .approve(let stores):
      rollouts[plan]?.approve(stores)
      reportRollout(plan, .approved, now, &actions)
    }
  }

  private func reportRollout(
    _ plan: String, _ change: Rollout.Change, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let rollout = rollouts[plan] else { return }
    actions.append(.rolloutChanged(rollout.status(at: now), change))
  }

  /// Brings all queued stores of a plan into its rollout, which may not exist: without waves, nothing else needs one.
  private mutating func beginForHalt(_ plan: String) {
    guard let version = version(ofPlan: plan) else { return }
    for (store, entry) in entries where entry.announced?.plan == plan {
      begin(plan, version, entry.plugin)
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
    _ recorded: [(RolloutRecord, runs: [RunReport])], at now: Rollout.Moment
  ) {
    for (record, runs) in recorded {
      rollouts[record.plan] = Rollout(
        record, settings: settings.configuration.rollout ?? RolloutSettings(), runs: runs, at: now)
    }
  }

  /// What is recorded of the rollouts, by plan.
  mutating func rolloutRecords(at now: Rollout.Moment) -> [RolloutRecord] {
    rollouts.keys.sorted().compactMap { rollouts[$0]?.record(at: now) }
  }

  /// The rollouts as operators see them, by plan.
  public func rolloutStatuses(at now: Instant) -> [Manager.Rollout] {
    rollouts.values.map { $0.status(at: now) }.sorted { $0.plan < $1.plan }
  }
}
