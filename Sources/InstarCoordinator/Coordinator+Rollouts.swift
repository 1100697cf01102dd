import InstarConfiguration
import InstarSchema
import InstarWire

/// The rollouts as etcd has them.
extension Coordinator {
  private static let watchLimit = Duration.seconds(60)

  /// While this host has a slot, starts a step at once after each change of a rollout, such as a halt. Without a slot,
  /// steps read the rollouts when they renew the lease: watches of all waiting hosts would be most of a fleet's load on
  /// etcd.
  func watchRollouts() async {
    while !Task.isCancelled {
      // Without etcd each attempt is a new connection. The steps try it after growing times.
      if holdsSlot, !isEtcdLost {
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await self.watchUntilEnd() }
          group.addTask { await self.waitWhileSlotIsHeld() }
          await group.next()
          group.cancelAll()
        }
        isReadDue = true
      }
      // etcd may end watches at once, such as one from a revision that it has compacted.
      await Self.rest()
    }
  }

  private func watchUntilEnd() async {
    do throws(InstarError) {
      try await etcd.watch(
        below: FleetKeys.rollouts, from: revision + 1, limit: Self.watchLimit
      ) { await self.readSoon() }
    } catch {
      // The steps report that etcd is lost.
    }
  }

  private func waitWhileSlotIsHeld() async {
    while holdsSlot, !Task.isCancelled {
      await Self.rest()
    }
  }

  private func readSoon() {
    isReadDue = true
    // etcd answers: a halt waits for no further attempt.
    backoff.succeed()
    wakeUp.yield()
  }

  /// Reads all rollouts. A rollout that is gone or cannot be read no longer permits anything.
  func readRollouts(_ now: ContinuousClock.Instant) async throws(InstarError) {
    isReadDue = false
    let read: (rollouts: [Fleet.Revised], unreadable: [InstarError], revision: Int64)
    do throws(InstarError) {
      read = try await fleet.rollouts()
    } catch {
      isReadDue = true
      throw error
    }
    log.forget(.documentRefused, but: read.unreadable)
    for error in read.unreadable { log.note(.documentRefused, error) }
    revision = read.revision
    rolloutsRead = now
    let plans = Set(read.rollouts.map(\.rollout.plan))
    for plan in parts.keys where !plans.contains(plan) { parts[plan]?.rollout = nil }
    for rollout in read.rollouts { follow(rollout) }
    let known = Set(rollouts.map(\.rollout.id))
    reports = reports.filter { known.contains($0.key) }
  }

  /// Stores the rollout as it was just read, and logs what changed in it.
  func follow(_ new: Fleet.Revised) {
    let old = parts[new.rollout.plan]?.rollout
    // Another rollout is never the older one: an etcd that began empty counts revisions from 1 again.
    let isOther = old.map { $0.rollout.id != new.rollout.id } ?? true
    guard isOther || old.map({ $0.revision < new.revision }) ?? true else { return }
    parts[new.rollout.plan, default: PlanPart()].rollout = new
    if isOther { parts[new.rollout.plan]?.nextSlotAttempt = nil }
    let before = isOther ? nil : old?.rollout
    if let (event, line) = new.rollout.change(since: before) {
      log.write(event, line, plan: new.rollout.plan, wave: new.rollout.wave)
    }
  }
}
