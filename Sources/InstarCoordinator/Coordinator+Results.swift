import Foundation
import InstarSchema
import InstarWire

/// What this host reports of its stores, in each rollout.
extension Coordinator {
  /// What this host and etcd know of this host's part in one rollout.
  struct HostReport {
    /// What this host has last reported.
    var result: HostResult?
    /// Whether etcd has no report of this host, or none that can be read. Nobody writes one but this host, and whoever
    /// began the rollout, before its document.
    var isMissing = false
    /// Since when etcd has the report.
    var writtenAt: ContinuousClock.Instant?
    /// What all hosts have reported, if one of this host's stores failed.
    var known: KnownResults?
    /// Since when only stores that are retried later are left.
    var deferredSince: ContinuousClock.Instant?
  }

  /// How often etcd gets counts that are only for display. Each write stays in etcd's history until its compaction.
  private static let countInterval = Duration.seconds(10)
  /// How long a host waits for stores that are retried later, if another one was migrated. Others may use such a store
  /// for days. An error that may pass has been repeated often enough by then to count as a failure.
  private static let deferredPatience = Duration.seconds(300)

  /// Takes or returns the slot, and reports the progress of this host.
  func takePart(
    in revised: Fleet.Revised, _ reply: Manager.PermitReply, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    let rollout = revised.rollout
    guard rollout.state != .done else { return try await giveBackSlot(ofPlan: rollout.plan) }
    guard reply.isCounted else { return }
    guard let last = try await lastResult(of: rollout, reply) else { return }
    let work = HostWork(reply, rollout, last)
    let hasReached = rollout.hasReached(host)
    let isDone = hasReached && isDone(work, rollout)
    if hasReached, !isDone, work.obstacle == nil, parts[rollout.plan]?.slot == nil {
      try await takeSlot(of: revised, now)
    }
    var new = last.updated(by: work)
    new.obstacle = hasReached && !isDone ? work.obstacle : nil
    if hasSlot(of: rollout) { new.state = .migrating }
    if isDone { new.state = .verified }
    let isFormer = parts[rollout.plan]?.slot != nil && !hasSlot(of: rollout)
    let isOver = isDone || !hasReached || isFormer || work.obstacle != nil
    let returnsSlot = isOver && !Self.runs(rollout.plan, reply)
    // The counts with which a host returns its slot may be the last ones for days.
    let isFinal = returnsSlot && parts[rollout.plan]?.slot != nil && new != last
    if isFinal || isDue(new, after: last, of: rollout, now) {
      new.at = Date().timeIntervalSince1970
      // The condition: nobody changed the rollout since it was read, so no other one has replaced it.
      let isWritten = try await etcd.transaction(
        if: [.isUnchanged(FleetKeys.rollout(ofPlan: rollout.plan), since: revised.revision)],
        [.put(FleetKeys.result(rollout.id, host), try Fleet.encoded(new))])
      guard isWritten != nil else {
        isReadDue = true
        return
      }
      // Before instard gets a permission after a failure.
      if new.failed > last.failed, try await !countFailures(in: revised) { return }
      reports[rollout.id, default: HostReport()].result = new
      reports[rollout.id]?.writtenAt = now
      if new.state == .verified, last.state != .verified {
        log.write(
          .hostFinished,
          "finished the part of this host: \(new.migrated) migrated, \(new.failed) failed",
          plan: rollout.plan, wave: rollout.wave)
      }
    }
    // After the report: a wave must not end, and no other host begin, before the failures of this one count.
    if returnsSlot { try await giveBackSlot(ofPlan: rollout.plan) }
  }

  /// Whether etcd should have a result now. Counts of stores wait for a while, if they are all that changed.
  private func isDue(
    _ new: HostResult, after last: HostResult, of rollout: FleetRollout,
    _ now: ContinuousClock.Instant
  ) -> Bool {
    guard new != last else { return false }
    var counted = last
    counted.stores = new.stores
    counted.migrated = new.migrated
    counted.deferred = new.deferred
    let writtenAt = reports[rollout.id]?.writtenAt
    return new != counted || writtenAt.map { now - $0 >= Self.countInterval } ?? true
  }

  /// Halts the rollout if failures exceed its budget.
  ///
  /// - Returns: `false` where another host changed the rollout first. The failures count in the next step, and until
  ///   then instard starts no run.
  private func countFailures(in revised: Fleet.Revised) async throws(InstarError) -> Bool {
    let id = revised.rollout.id
    var known = reports[id]?.known ?? KnownResults()
    try await known.update(of: id, from: fleet)
    reports[id, default: HostReport()].known = known
    // Only the leader needs to know which hosts are gone. Here all count as living, and nothing ends too early.
    let hosts = Set(known.results.results.keys).union(known.results.unreadable)
    if let changed = try await fleet.advance(revised, known.results, living: hosts) {
      follow(changed)
      return true
    }
    let current = try await fleet.rollout(of: revised.rollout.plan)
    follow(current)
    return current.revision == revised.revision || current.rollout.state != .running
  }

  /// Whether the part of this host is over: each store is done, or for `deferredPatience` only stores that are retried
  /// later were left.
  func isDone(_ work: HostWork, _ rollout: FleetRollout) -> Bool {
    guard work.isDeferred else {
      reports[rollout.id]?.deferredSince = nil
      return work.isDone
    }
    let since = reports[rollout.id]?.deferredSince ?? .now
    reports[rollout.id, default: HostReport()].deferredSince = since
    return .now - since >= Self.deferredPatience
  }

  /// What this host last reported; `nil` if it has no part in the rollout.
  private func lastResult(
    of rollout: FleetRollout, _ reply: Manager.PermitReply
  ) async throws(InstarError) -> HostResult? {
    let own = reports[rollout.id]
    if let known = own?.result { return known }
    if own?.isMissing != true {
      switch try await fleet.result(of: host, in: rollout.id) {
      case .result(let result):
        reports[rollout.id, default: HostReport()].result = result
        return result
      case .unreadable(let error):
        // Nothing counts twice: the numbers are those of instard, and go to the same key.
        log.note(.documentRefused, error, plan: rollout.plan)
      case .missing: break
      }
      reports[rollout.id, default: HostReport()].isMissing = true
    }
    let hasStores = reply.rollouts.contains {
      $0.plan == rollout.plan && $0.version == rollout.version && $0.stores > 0
    }
    // A host that came later has its turn too.
    return hasStores ? newResult(of: rollout) : nil
  }

  func newResult(of rollout: FleetRollout) -> HostResult {
    HostResult(
      wave: rollout.wave(of: host), stores: 0, at: Date().timeIntervalSince1970)
  }
}

extension HostResult {
  /// The result with the counts of the work. The last error stays as long as a store counts as failed.
  fileprivate func updated(by work: HostWork) -> HostResult {
    var new = self
    new.stores = work.stores
    new.migrated = work.migrated
    new.failed = work.failed
    new.deferred = work.deferred
    new.lastError = work.failed > 0 ? work.lastError ?? lastError : nil
    return new
  }
}
