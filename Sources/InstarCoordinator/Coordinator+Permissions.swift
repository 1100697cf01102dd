import InstarConfiguration
import InstarSchema
import InstarWire

/// What instard may do now. A permission is never longer than the slot on which it rests.
extension Coordinator {
  /// Sends the permissions to instard.
  ///
  /// - Returns: The progress of instard; `nil` if it cannot be reached.
  @discardableResult
  func sendPermissions() async -> Manager.PermitReply? {
    let now = ContinuousClock.now
    let permissions = permissions(at: now)
    do throws(InstarError) {
      let reply = try await daemon.permit(permissions, decidedAt: now)
      permitted = Self.timeless(permissions)
      lastReply = (.now, reply)
      if log.forget(.daemonLost) { log.write(.daemonReached, "reached instard again") }
      return reply
    } catch {
      log.note(.daemonLost, error)
      return nil
    }
  }

  static func timeless(_ permissions: [Manager.Permission]) -> Set<Manager.Permission> {
    Set(
      permissions.map {
        Manager.Permission(plan: $0.plan, version: $0.version, until: nil, failures: $0.failures)
      })
  }

  /// The permissions of instard, by plan.
  func permissions(at now: ContinuousClock.Instant) -> [Manager.Permission] {
    rollouts.sorted { $0.rollout.plan < $1.rollout.plan }.compactMap { revised in
      let rollout = revised.rollout
      guard rollout.hasReached(host), rollout.state == .done || hasSlot(of: rollout) else {
        return nil
      }
      var until = rolloutsRead.map { $0 + settings.lease } ?? now
      if rollout.state == .running, let session {
        until = min(until, session.renewed + settings.lease)
      }
      let isHeld = isEtcdLost && settings.onLoss == .finishWave && rollout.state == .running
      guard isHeld || until > now else { return nil }
      let hasLimit = rollout.state == .running && rollout.allowedFailures != nil
      return Manager.Permission(
        plan: rollout.plan, version: rollout.version,
        until: isHeld ? nil : until.secondsSinceBoot,
        failures: hasLimit ? reports[rollout.id]?.result?.failed ?? 0 : nil)
    }
  }

  /// With the policy `finishWave`, ends this host's part in a rollout while etcd is lost.
  func finishAlone() {
    guard settings.onLoss == .finishWave, let reply = lastReply?.reply, reply.isCounted else {
      return
    }
    for rollout in rollouts.map(\.rollout) where parts[rollout.plan]?.slot != nil {
      let work = HostWork(
        reply, rollout, reports[rollout.id]?.result ?? newResult(of: rollout))
      if isDone(work, rollout) {
        parts[rollout.plan]?.returnSlot()
      }
    }
  }
}
