import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// Runs and recoveries: which store has the next slot, and what follows from its result.
extension StoreQueue {
  /// How long one owner may have all slots while another one's store waits.
  static let patience: Duration = .seconds(60)

  /// Starts as many runs and recoveries as there are slots.
  mutating func beginRuns(_ now: Instant, _ actions: inout [Action]) {
    while let store = nextRun(now) {
      guard let entry = entries[store] else { continue }
      let watch = settings.configuration.watch(ofStore: store)
      switch entry.state {
      case .runQueued where isHalted(entry):
        // Its turn came before the halt.
        waitForTurn(store)
        continue
      case .runQueued:
        // Without a watch, no setting says whether and when the store may run.
        guard let watch else {
          remove(store)
          continue
        }
        if let obstacle = obstacle(toRunOf: entry, in: watch, now) {
          holdBack(store, entry, obstacle)
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

  /// Takes the next store from `runQueue`; `nil` while there is no slot for it.
  private mutating func nextRun(_ now: Instant) -> String? {
    let running = slots.values.reduce(into: [UInt32: Int]()) { $0[$1.owner, default: 0] += 1 }
    guard let owner = runQueue.nextOwner(running), let store = runQueue.first(of: owner) else {
      return nil
    }
    let taken = slots.values.reduce(0) { $0 + $1.weight.rawValue }
    let all = settings.parallelRuns * RunWeight.large.rawValue
    if taken + weight(ofQueued: store) <= all { return runQueue.popFirst(of: owner) }
    guard taken <= all, running.count == 1, running[owner] == nil,
      let newest = slots.values.map(\.since).max()
    else { return nil }
    guard newest + Self.patience <= now else {
      noteDeadline(newest + Self.patience)
      return nil
    }
    return runQueue.popFirst(of: owner)
  }

  /// A store that is in another state when its turn comes weighs 0, because it is skipped.
  private func weight(ofQueued store: String) -> Int {
    switch entries[store]?.state {
    case .runQueued, .recoveryQueued: entries[store]?.weight.rawValue ?? 0
    default: 0
    }
  }

  /// Takes back the probe, run or recovery of a store whose file system does not answer. The scan that finds the store
  /// again queues its probe or recovery, even if its file has not changed. Until then no wave waits for the store.
  mutating func leaveUnanswered(_ store: String, _ now: Instant) {
    guard var entry = entries[store] else { return }
    switch entry.state {
    case .probing: _ = answer(store)
    case .running:
      slots[store] = nil
      runRate.ended(at: now, counts: false, isIdle: slots.isEmpty)
    case .recovering: slots[store] = nil
    default: return
    }
    entry.state = .readingVersion(before: .backingOff(until: now))
    put(entry, store)
    if let key = entry.rollout { _ = rollouts[key]?.putOff(store, isQuarantined: false, by: nil) }
  }

  mutating func runEnded(
    _ report: RunReport, _ before: WatchedVersion?, _ after: WatchedVersion?, _ now: Instant,
    _ actions: inout [Action]
  ) {
    let store = report.store
    slots[store] = nil
    runRate.ended(at: now, counts: report.result != .rehearsed, isIdle: slots.isEmpty)
    guard var entry = entries[store], case .running(let inDoubt) = entry.state else { return }
    entry.isRehearsed = report.result == .rehearsed
    let expected =
      switch report.result {
      case .migrated, .restored, .rehearsed, .current: afterSuccess(report, &entry, now)
      case .busy: afterBusy(report, &entry, after, now)
      case .failed, .refused:
        afterFailure(report, &entry, before, after, inDoubt: inDoubt, now, &actions)
      }
    // Told after the run: the end of a run is the cause of a halt.
    var consequences: [Action] = []
    if !isStopping { noteRun(report, &entry, now, &consequences) }
    if inDoubt {
      entry.version = nil
      entry.notBefore = nil
      entry.state = wait(now, before: .idle)
    }
    let followUp = corrected(expected, inDoubt: inDoubt)
    var report = report
    if report.result == .busy, case .waitsForChange = followUp, let error = report.error {
      // The end of a lock is not a change of the store.
      report.error?.next = CommandText.retrying(store, after: error.next)
      entry.error = report.error
    }
    actions.append(.reportRun(report, followUp))
    actions += consequences
    put(entry, store)
  }

  private func afterSuccess(_ report: RunReport, _ entry: inout Entry, _ now: Instant) -> FollowUp {
    entry.forgetFailures()
    entry.notBefore = nil
    entry.version = nil
    if report.result == .migrated { entry.migrations += 1 }
    // The cutover touched the store: it is probed once more when nothing changes it.
    entry.state = wait(now, before: .idle)
    return .none
  }

  private func afterBusy(
    _ report: RunReport, _ entry: inout Entry, _ after: WatchedVersion?, _ now: Instant
  ) -> FollowUp {
    entry.version = after?.digest
    entry.failures += 1
    entry.error = report.error
    entry.notBefore = now + settings.retry.first
    entry.state = restAfterBusy(entry, now)
    return entry.state == .resting(.quarantined)
      ? .waitsForChange(failures: entry.failures)
      : .retry(after: backOff(failures: entry.failures))
  }

  private mutating func afterFailure(
    _ report: RunReport, _ entry: inout Entry, _ before: WatchedVersion?, _ after: WatchedVersion?,
    inDoubt: Bool, _ now: Instant, _ actions: inout [Action]
  ) -> FollowUp {
    entry.version = after?.digest
    let cause = report.error.map {
      "\($0.code.rawValue) \($0.stage ?? "") \($0.cause)"
        .split(separator: report.run, omittingEmptySubsequences: false).joined(separator: "RUN")
    }
    let followUp = failed(
      &entry, report.error, signature: cause ?? "", hasChanged: before != after, now)
    entry.isHeld = report.error?.code == .heldStore
    // A hold is an order, not a failure. After a failure, a hold and its release do not shorten the delay.
    if entry.isHeld { entry.error = nil }
    entry.notBefore = entry.isHeld ? nil : now + settings.retry.first
    // Damage of a file that was replaced says nothing about the new one.
    if let error = report.error, error.provesDamage == true, after != nil, before == after, !inDoubt
    {
      noteDamage(error, of: report.store, &entry, &actions)
    }
    return followUp
  }

  /// What follows a run if the store or the plugins changed during it, or the daemon stops.
  private func corrected(_ followUp: FollowUp, inDoubt: Bool) -> FollowUp {
    guard followUp != .none else { return .none }
    if isStopping { return .afterRestart }
    return inDoubt ? .atOnce : followUp
  }

  /// Makes the damage that a run found the verdict on the store. A probe reads less of the store, and would not find
  /// the damage.
  private mutating func noteDamage(
    _ error: InstarError, of store: String, _ entry: inout Entry, _ actions: inout [Action]
  ) {
    var report = ProbeReport(
      store: store, state: .corrupt, reason: error.cause, version: entry.announced?.value.version)
    report.plan = entry.announced?.value.plan
    report.plugin = entry.plugin
    report.planVersion = entry.announced?.value.planVersion
    report.hold = entry.announced?.value.hold
    var reports: [Action] = []
    announce(report, file: entry.version, &entry, &reports)
    let verdict = Entry.ReportedVerdict(state: .corrupt, cause: error.cause, file: entry.version)
    if entry.reported != verdict { actions += reports }
    entry.reported = verdict
  }

  /// Queues the recovery of a run that was cut off, or that could not be recovered or recorded when it ended.
  ///
  /// A store that does not rest keeps its state: its run may be the open one. If not, the next rescan finds it again.
  mutating func interrupted(_ store: String, _ owner: UInt32?) {
    if let entry = entries[store] {
      guard case .resting = entry.state, !entry.isInterrupted else { return }
    }
    let owner = owner ?? Entry.unknownOwner
    if absent.removeValue(forKey: store) != nil { changedQuarantines.insert(store) }
    var entry = Entry(state: .recoveryQueued, isInterrupted: true, owner: owner)
    entry.rollout = entries[store]?.rollout
    put(entry, store)
    runQueue.append(store, to: owner)
  }

  mutating func recovered(
    _ store: String, _ error: InstarError?, _ now: Instant, _ actions: inout [Action]
  ) {
    slots[store] = nil
    guard var entry = entries[store], entry.state == .recovering else { return }
    if let error {
      var followUp = failed(
        &entry, error, signature: error.cause, hasChanged: false, now)
      if isStopping { followUp = .afterRestart }
      entry.wasProbed = true
      // A stopping daemon cancels recoveries itself.
      if !isStopping || error.code != .interrupted {
        actions.append(.reportRecoveryFailure(error, followUp))
      }
    } else {
      let rollout = entry.rollout
      entry = Entry(
        state: wait(now, before: .idle), wasInterrupted: true, owner: entry.owner)
      entry.rollout = rollout
    }
    put(entry, store)
  }
}
