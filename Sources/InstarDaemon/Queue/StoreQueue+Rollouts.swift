import HashTreeCollections
import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// The turns of stores: which stores that are behind may run now.
extension StoreQueue {
  /// Adds a probed store to the rollout of its plan.
  ///
  /// - Returns: whether a store that is behind may run. Otherwise it has its turn later.
  mutating func place(_ report: ProbeReport, _ entry: inout Entry) -> Bool {
    let store = report.store
    guard let key = report.rolloutKey else { return true }
    leaveOthers(than: key, store, &entry)
    let watch = settings.configuration.watch(ofStore: store)
    let needsApproval = watch?.policy == .ask
    let isWanted =
      settings.configuration.rollout != nil || settings.configuration.coordinator != nil
      || needsApproval || watch?.budget != nil
    let isUnforgettable = rollouts.contains { $0.key.plan == key.plan && !$0.value.isForgettable }
    guard isWanted || isUnforgettable else { return true }
    begin(key, report.plugin)
    entry.rollout = rollouts[key]?.key
    let mayRun =
      rollouts[key]?.add(store, wave: watch?.wave ?? 1, needsApproval: needsApproval) ?? true
    rollouts[key]?.noteWatch(watch?.path, of: store)
    return mayRun
  }

  /// Removes a store from the plan's rollouts to other versions, because another plugin migrates it now. A rollout that
  /// loses its last store in this way is forgotten.
  private mutating func leaveOthers(than key: Rollout.Key, _ store: String, _ entry: inout Entry) {
    if let old = entry.rollout, old != key { leaveRollout(store, &entry) }
    for (other, rollout) in rollouts where other.plan == key.plan && other != key {
      // After a restart its entry does not say that it is in that rollout.
      if rollout.has(store) { rollouts[other]?.leave(store) }
      if let left = rollouts[other], left.total == 0, left.isForgettable { rollouts[other] = nil }
    }
  }

  /// Begins a rollout, unless it is in progress already. It replaces the rollouts of the plan that it outdates.
  private mutating func begin(_ key: Rollout.Key, _ plugin: String?) {
    let plugin = plugin.flatMap { pluginFiles[$0] }
    if let same = rollouts[key], !isGone(same.plugin, for: plugin) { return }
    let ofPlan = rollouts.values.filter { $0.plan == key.plan }
    for old in ofPlan where isOutdated(old, by: key, plugin) { drop(old.key) }
    var new = Rollout(
      plan: key.plan, version: key.version, plugin: plugin,
      settings: settings.configuration.rolloutSettings)
    for old in ofPlan { carryHalt(from: old, to: &new) }
    rollouts[key] = new
  }

  /// Whether a rollout replaces another one of its plan. It does not replace one to an earlier version that another
  /// plugin still has.
  private func isOutdated(
    _ old: Rollout, by key: Rollout.Key, _ plugin: RolloutRecord.PluginFile?
  ) -> Bool {
    if old.key == key { return true }
    guard old.version < key.version else { return false }
    guard let path = old.plugin?.path, let plugin else { return true }
    return path == plugin.path || pluginFiles[path] == nil
  }

  /// Whether another plugin has replaced the one that a rollout began with.
  private func isGone(
    _ old: RolloutRecord.PluginFile?, for new: RolloutRecord.PluginFile?
  ) -> Bool {
    guard let old, let new else { return false }
    return new.path != old.path && pluginFiles[old.path] == nil
  }

  /// Keeps an operator's halt for the next version of the plan. A halt by failures ends with the old version.
  private func carryHalt(from old: Rollout, to new: inout Rollout) {
    guard let halt = old.halt, halt.by != Manager.Rollout.daemon else { return }
    new.halt(by: halt)
  }

  /// Opens and ends waves, and queues the stores whose turn it is.
  mutating func advanceRollouts(_ now: Instant, _ actions: inout [Action]) {
    guard !rollouts.isEmpty else { return }
    let areAllProbed = areAllProbed
    for key in rollouts.keys.sorted() {
      // Removed for the moment, so that it can be changed while `entries` is read.
      guard var rollout = rollouts.removeValue(forKey: key) else { continue }
      while let change = rollout.advance(
        at: now, areAllProbed: areAllProbed, isKnown: { entries[$0] != nil })
      {
        actions.append(.rolloutChanged(status(of: rollout, now), change))
      }
      while let store = rollout.admitNext({ entries[$0]?.state == .pending }) {
        enter(.runQueued, store)
        runQueue.append(store, to: entries[store]?.owner ?? Entry.unknownOwner)
      }
      if let deadline = rollout.deadline { noteDeadline(deadline) }
      rollouts[key] = rollout
    }
  }

  /// Records the result of a run in the rollout of its store.
  mutating func noteRun(
    _ report: RunReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let key = entry.rollout else { return }
    let isQuarantined = entry.state == .resting(.quarantined)
    if rollouts[key]?.note(report, isQuarantined: isQuarantined) == true {
      reportRollout(key, .halted, now, &actions)
    }
    noteLeft(report.store, &entry)
  }

  /// Records in the rollout that a store could not be probed, or was busy.
  mutating func noteProbeFailure(
    _ store: String, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    // After a restart, the ledger has the store, and its entry does not say so.
    if entry.rollout == nil { rejoinRollout(store, &entry) }
    guard let key = entry.rollout else { return }
    let isQuarantined = entry.state == .resting(.quarantined)
    if rollouts[key]?.putOff(store, isQuarantined: isQuarantined, by: entry.error?.code) == true {
      reportRollout(key, .halted, now, &actions)
    }
    noteLeft(store, &entry)
  }

  /// Forgets the rollout of a store that has left it, so that a restart does not find the store in it.
  private func noteLeft(_ store: String, _ entry: inout Entry) {
    if let key = entry.rollout, rollouts[key]?.has(store) != true { entry.rollout = nil }
  }

  /// Records in the rollout that a store was found current.
  mutating func endTurn(_ report: ProbeReport, _ entry: inout Entry) {
    let store = report.store
    if entry.wasInterrupted, let key = report.rolloutKey {
      // Its run ended after the rollouts were read from the ledger.
      rollouts[key]?.recovered(store)
    }
    entry.wasInterrupted = false
    // After a restart, the ledger has the store, and its entry does not say so.
    if entry.rollout == nil, let key = report.rolloutKey, rollouts[key]?.has(store) == true {
      entry.rollout = rollouts[key]?.key
    }
    guard let key = entry.rollout else { return }
    rollouts[key]?.foundCurrent(store)
    noteLeft(store, &entry)
    guard rollouts[key]?.hasWatchBudgets == true else { return }
    let watch = settings.configuration.watch(ofStore: store)
    rollouts[key]?.noteWatch(watch?.path, of: store)
  }

  /// Removes a store from its rollout, because the store is gone, is held, or is no longer behind although it had no
  /// run.
  mutating func leaveRollout(_ store: String, _ entry: inout Entry) {
    guard let key = entry.rollout else { return }
    rollouts[key]?.leave(store)
    entry.rollout = nil
  }

  /// Whether the rollout of a queued store was halted since the store was queued.
  func isHalted(_ entry: Entry) -> Bool {
    entry.rollout.map { rollouts[$0]?.halt != nil } ?? false
  }

  /// Lets a store that had its turn before a halt wait for the end of the halt.
  mutating func waitForTurn(_ store: String) {
    guard let key = entries[store]?.rollout else { return }
    enter(.pending, store)
    let watch = settings.configuration.watch(ofStore: store)
    _ = rollouts[key]?.add(
      store, wave: watch?.wave ?? 1, needsApproval: watch?.policy == .ask)
  }

  /// Whether the run of a store is a rehearsal.
  func needsRehearsal(_ store: String, _ entry: Entry) -> Bool {
    !entry.isRehearsed && settings.configuration.watch(ofStore: store)?.policy == .rehearse
  }

  // MARK: Plugins and settings

  /// Records the plugins in use. A rollout whose plugin has another file starts again: with other code, the first
  /// stores are canaries again.
  mutating func usePlugins(_ files: [RolloutRecord.PluginFile]) {
    pluginFiles = Dictionary(uniqueKeysWithValues: files.map { ($0.path, $0) })
    for (key, rollout) in rollouts {
      guard let old = rollout.plugin, let new = pluginFiles[old.path], old != new else { continue }
      drop(key)
      var next = Rollout(
        plan: key.plan, version: key.version, plugin: new,
        settings: settings.configuration.rolloutSettings)
      carryHalt(from: rollout, to: &next)
      if next.halt != nil { rollouts[key] = next }
    }
  }

  mutating func applySettingsToRollouts() {
    let new = settings.configuration.rolloutSettings
    let isWanted =
      settings.configuration.rollout != nil || settings.configuration.coordinator != nil
      || !new.watchBudgets.isEmpty
    for key in rollouts.keys.sorted() {
      if !isWanted, rollouts[key]?.isForgettable == true {
        drop(key)
      } else {
        rollouts[key]?.update(new)
      }
    }
  }

  /// Forgets a rollout. Stores that waited for their turn in it are probed again.
  private mutating func drop(_ key: Rollout.Key) {
    rollouts[key] = nil
    for (store, entry) in entries where entry.rollout == key {
      entries[store]?.rollout = nil
      if entry.state == .pending { queueProbe(store) }
    }
  }

  // MARK: Orders

  /// Applies an order to all rollouts of a plan, because an operator names the plan only.
  mutating func obey(
    _ order: RolloutOrder, _ plan: String, _ now: Instant, _ actions: inout [Action]
  ) {
    if case .halt = order { beginForHalt(plan) }
    for key in rollouts.keys.sorted() where key.plan == plan {
      switch order {
      case .halt(let pause):
        rollouts[key]?.halt(by: pause)
        reportRollout(key, .halted, now, &actions)
      case .resume:
        guard rollouts[key]?.halt != nil else { continue }
        rollouts[key]?.resume()
        reportRollout(key, .resumed, now, &actions)
      case .approve(let stores):
        // Any owner may approve all the time.
        guard rollouts[key]?.hasApproved(stores) == false else { continue }
        rollouts[key]?.approve(stores)
        reportRollout(key, .approved, now, &actions)
      }
    }
  }

  /// Whether an approval changes no rollout of a plan.
  func hasApproved(_ stores: [String], _ plan: String) -> Bool {
    rollouts.values.allSatisfy { $0.plan != plan || $0.hasApproved(stores) }
  }

  private func reportRollout(
    _ key: Rollout.Key, _ change: Rollout.Change, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let rollout = rollouts[key] else { return }
    actions.append(.rolloutChanged(status(of: rollout, now), change))
  }

  /// Adds all queued stores of a plan to its rollout, and creates the rollout: without waves, only a halt needs one.
  private mutating func beginForHalt(_ plan: String) {
    for (store, entry) in entries where entry.announced?.value.plan == plan {
      guard let version = entry.announced?.value.planVersion else { continue }
      let key = Rollout.Key(plan: plan, version: version)
      begin(key, entry.plugin)
      if entry.state == .runQueued { entries[store]?.rollout = key }
    }
  }

  /// Whether a rollout or a store belongs to a plan of this name.
  func knowsPlan(_ plan: String) -> Bool {
    rollouts.keys.contains { $0.plan == plan }
      || entries.values.contains {
        $0.announced?.value.plan == plan && $0.announced?.value.planVersion != nil
      }
  }

  // MARK: What outlasts the daemon, and what operators see

  /// Restores the rollouts that an earlier daemon recorded, before any store is probed.
  mutating func restore(
    _ recorded: [(RolloutRecord, runs: [RolloutRun])], at now: Rollout.Moment
  ) {
    for (record, runs) in recorded {
      var rollout = Rollout(
        record, settings: settings.configuration.rolloutSettings, runs: runs, at: now,
        isQuarantined: { restoredQuarantines[$0] != nil })
      for (store, plugins) in restoredQuarantines {
        // A store that failed with an earlier plugin is not in the rollout.
        guard let entry = absent[store]?.entry, entry.rollout == rollout.key,
          record.plugin.map({ plugins.contains($0) }) ?? true
        else { continue }
        rollout.restoreQuarantine(of: store, entry.error?.code)
      }
      rollouts[rollout.key] = rollout
    }
  }

  /// The records of the rollouts, by plan.
  mutating func rolloutRecords(at now: Rollout.Moment) -> [RolloutRecord] {
    rollouts.keys.sorted().compactMap { rollouts[$0]?.record(at: now) }
  }

  /// How many failures each rollout allows, `nil` without a budget, and how many it counts now.
  var rolloutBudgets: [(plan: String, allowed: Int?, counted: Int)] {
    rollouts.values.map { ($0.plan, $0.allowedFailures, $0.countedFailures) }
  }

  /// The rollouts as operators see them, by plan.
  func rolloutStatuses(at now: Instant) -> [Manager.Rollout] {
    rollouts.keys.sorted().compactMap { rollouts[$0].map { status(of: $0, now) } }
  }

  private func status(of rollout: Rollout, _ now: Instant) -> Manager.Rollout {
    var status = rollout.status(at: now)
    if runningCounts[rollout.plan] == nil {
      status.closedWindow = rollout.closedWatch(hasClosedWindow)
    }
    return status
  }
}

extension ProbeReport {
  /// The rollout in which the store has its turn; `nil` without a plan.
  fileprivate var rolloutKey: Rollout.Key? {
    guard let plan, let planVersion else { return nil }
    return Rollout.Key(plan: plan, version: planVersion)
  }
}
