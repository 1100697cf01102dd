import Foundation
import InstarSchema
import InstarWire

/// Slots: this host takes one for each rollout in which it has work, and returns it when no run of the plan is in
/// progress.
extension Coordinator {
  /// This host's part in the rollouts of one plan.
  struct PlanPart {
    /// The rollout as it was last read; `nil` if there is none, or none that can be read.
    var rollout: Fleet.Revised?
    /// The slot of this host. A new rollout of the plan inherits it, because runs of the former one may still be in
    /// progress.
    var slot: Int?
    /// A slot that this host has or may have. It permits nothing until etcd has deleted it.
    var returning: Int?
    /// When this host may next try to take a slot; `nil` for at once.
    var nextSlotAttempt: ContinuousClock.Instant?

    mutating func returnSlot() {
      returning = slot ?? returning
      slot = nil
    }
  }

  /// Whether this host has a slot that the rollout counts. One of a former rollout with more slots is only kept until
  /// the runs of the plan have ended.
  func hasSlot(of rollout: FleetRollout) -> Bool {
    parts[rollout.plan]?.slot.map { $0 < rollout.slots } ?? false
  }

  /// Tries to take a slot of a rollout, unless the next attempt is later. If all slots are taken or another host is
  /// faster, a later step tries again.
  func takeSlot(
    of revised: Fleet.Revised, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    let rollout = revised.rollout
    guard let lease = session?.lease,
      parts[rollout.plan]?.nextSlotAttempt.map({ $0 <= now }) ?? true
    else { return }
    let taken = try await etcd.entries(below: FleetKeys.slots(ofPlan: rollout.plan)).entries
    // An attempt whose answer was lost.
    if let own = taken.first(where: { $0.lease == lease }), let number = Self.number(of: own) {
      parts[rollout.plan]?.slot = number
      parts[rollout.plan]?.returning = nil
      return
    }
    let free = rollout.freeSlots(taken: Set(taken.compactMap(Self.number)))
    if let number = free.randomElement() {
      let key = FleetKeys.slot(ofPlan: rollout.plan, number)
      // Until the answer is here, etcd may have given the slot to this host.
      parts[rollout.plan]?.returning = number
      let revision = try await etcd.transaction(
        if: [
          .isUnchanged(FleetKeys.rollout(ofPlan: rollout.plan), since: revised.revision),
          .isAbsent(key), .hasLease(FleetKeys.host(host), lease),
        ], [.put(key, Data(host.utf8), lease: lease)])
      parts[rollout.plan]?.returning = nil
      if revision != nil {
        parts[rollout.plan]?.slot = number
        parts[rollout.plan]?.nextSlotAttempt = nil
        log.write(
          .slotTaken, "took slot \(number + 1) of \(rollout.slots) in wave \(rollout.wave)",
          plan: rollout.plan, wave: rollout.wave)
        return
      }
      isReadDue = true
    }
    // The more hosts wait, the less often each asks: together they ask some hundred times a second.
    let spread = max(1, Double(rollout.hosts) / 1000)
    parts[rollout.plan]?.nextSlotAttempt = now + .seconds(Double.random(in: 0.5...2) * spread)
  }

  private static func number(of entry: EtcdEntry) -> Int? { Int(FleetKeys.name(of: entry.key)) }

  /// Returns the slot of a plan, after the permission of instard has ended and no run of the plan is in progress. Until
  /// then each step tries again.
  func giveBackSlot(ofPlan plan: String) async throws(InstarError) {
    parts[plan]?.returnSlot()
    guard let number = parts[plan]?.returning, let lease = session?.lease else { return }
    // First revoke the permission, because another host may take the slot at once. A run may have begun before that.
    guard let reply = await sendPermissions(), !Self.runs(plan, reply) else { return }
    let key = FleetKeys.slot(ofPlan: plan, number)
    let isDeleted = try await etcd.transaction(if: [.hasLease(key, lease)], [.delete(key)]) != nil
    parts[plan]?.returning = nil
    if isDeleted { log.write(.slotReturned, "returned slot \(number + 1)", plan: plan) }
  }

  /// Whether runs of a plan are in progress. A store whose plan is not known yet may be one of its stores.
  static func runs(_ plan: String, _ reply: Manager.PermitReply) -> Bool {
    reply.running[plan] != nil || reply.running[""] != nil
  }
}
