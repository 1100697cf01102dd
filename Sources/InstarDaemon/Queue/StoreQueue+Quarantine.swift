import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// The quarantine on disk. Because of it, a restart does not retry a store whose next attempt would fail in the same
/// way.
extension StoreQueue {
  /// Restores what an earlier daemon recorded, before the first store is found. A store whose file is the same is
  /// quarantined again, unless the plugins turn out to be others.
  mutating func restore(_ records: [QuarantineRecord]) {
    for record in records {
      absent[record.store] = AbsentStore(entry: Entry(record))
      restoredQuarantines[record.store] = record.plugins
    }
  }

  /// Notes that a store's record may have to change.
  mutating func noteQuarantine(of store: String, from old: Entry?, to new: Entry) {
    let wasQuarantined = old?.isQuarantined == true
    guard wasQuarantined || new.isQuarantined else { return }
    let isSame =
      wasQuarantined == new.isQuarantined && old?.version == new.version && old?.error == new.error
    if !isSame { changedQuarantines.insert(store) }
  }

  /// Has the records of stores written or removed whose quarantine changed.
  mutating func noteQuarantines(_ actions: inout [Action]) {
    guard !changedQuarantines.isEmpty else { return }
    var ended: [String] = []
    for store in changedQuarantines.sorted() {
      if let record = record(of: store) {
        // What fails during a stop is retried after the next start.
        if !isStopping { actions.append(.keepQuarantine(record)) }
      } else if absent[store]?.entry.isQuarantined != true {
        ended.append(store)
      }
    }
    changedQuarantines = []
    if !ended.isEmpty { actions.append(.endQuarantine(ended)) }
  }

  /// The record of a quarantined store. An interrupted run has none: each start recovers it. Neither has a held store,
  /// whose hold may end before the next start, unless it is damaged.
  private func record(of store: String) -> QuarantineRecord? {
    guard let entry = entries[store], entry.isQuarantined, !entry.isInterrupted,
      !entry.isHeld || entry.isDamaged, let version = entry.version
    else { return nil }
    var record = QuarantineRecord(
      store: store, file: version, failures: entry.failures, plugins: knownPlugins)
    record.error = entry.error
    record.verdict = entry.announced.map { QuarantineRecord.Verdict($0.value) }
    if let key = entry.rollout {
      // The next start counts it as a failure. A store that was migrated before has its result in the ledger.
      if let turn = rollouts[key]?.turn(of: store), [.failed, .deferred].contains(turn) {
        record.rollout = QuarantineRecord.Rollout(plan: key.plan, version: key.version)
      }
      // The probe of a busy store finds no plan.
      record.verdict?.plan = key.plan
      record.verdict?.planVersion = key.version
    }
    return record
  }

  private var knownPlugins: [RolloutRecord.PluginFile] {
    pluginFiles.values.sorted { $0.path < $1.path }
  }

  /// Whether a restored quarantine stays until instard knows its plugins. If they are those that judged the store, it
  /// stays afterwards too.
  func awaitsPlugins(_ store: String, _ entry: Entry) -> Bool {
    entry.isQuarantined && restoredQuarantines[store] != nil
  }

  /// Retries restored stores that were judged with other plugins than the present ones. Damaged stores stay
  /// quarantined.
  mutating func liftOutdatedQuarantines(_ now: Instant) {
    let known = knownPlugins
    let outdated = restoredQuarantines.filter { store, plugins in
      plugins != known && (entries[store] ?? absent[store]?.entry)?.isDamaged != true
    }.keys.sorted()
    restoredQuarantines = [:]
    for store in outdated where entries[store] == nil && absent.removeValue(forKey: store) != nil {
      changedQuarantines.insert(store)
    }
    let lifted = outdated.filter { entries[$0]?.isQuarantined == true }
    for store in lifted { entries[store]?.wasProbed = false }
    retry(lifted, byOperator: true, now)
  }

  /// Forgets the stores that are missing, except those whose quarantine waits for the plugins, and damaged ones.
  mutating func forgetAbsent(keepingDamaged: Bool = true) {
    let known = absent
    absent = known.filter {
      awaitsPlugins($0.key, $0.value.entry) || keepingDamaged && $0.value.entry.isDamaged
    }
    for (store, value) in known where value.entry.isQuarantined && absent[store] == nil {
      changedQuarantines.insert(store)
    }
  }

  /// Gives a restored store its place in the rollout, which the ledger restored.
  mutating func rejoinRollout(_ store: String, _ entry: inout Entry) {
    // The probe of an unreadable store finds no plan.
    let key = entry.rolloutKey ?? rollouts.first { $0.value.has(store) }?.key
    entry.rollout = nil
    guard let key, rollouts[key]?.has(store) == true else { return }
    entry.rollout = rollouts[key]?.key
    let watch = settings.configuration.watch(ofStore: store)
    rollouts[key]?.noteWatch(watch?.path, of: store)
  }
}

extension StoreQueue.Entry {
  /// A store as an earlier daemon left it.
  init(_ record: QuarantineRecord) {
    self.init(state: .resting(.quarantined), version: record.file)
    announced = record.verdict.map {
      StoreQueue.SharedValue(StoreQueue.Announcement($0))
    }
    rollout = record.rollout.map { Rollout.Key(plan: $0.plan, version: $0.version) }
    wasProbed = true
    self.failures = max(1, record.failures)
    self.error = record.error
  }
}

extension StoreQueue.Announcement {
  init(_ verdict: QuarantineRecord.Verdict) {
    state = verdict.state
    reason = verdict.reason
    version = verdict.version
    plan = verdict.plan
    planVersion = verdict.planVersion
    plugin = verdict.plugin
  }
}

extension QuarantineRecord.Verdict {
  init(_ announcement: StoreQueue.Announcement) {
    self.init(state: announcement.state)
    reason = announcement.reason
    version = announcement.version
    plan = announcement.plan
    planVersion = announcement.planVersion
    plugin = announcement.plugin
  }
}
