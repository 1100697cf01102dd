import InstarSchema
import InstarWire

/// What the instard of this host says of its stores of one plan.
struct HostWork {
  /// Each store was migrated and found current, or failed.
  var isDone: Bool
  /// All that is left are stores that are retried later, and some store was migrated.
  var isDeferred: Bool
  /// What keeps the host from its work, although it has its turn; `nil` if nothing does.
  var obstacle: String?
  var stores: Int
  var migrated: Int
  var failed: Int
  var deferred: Int
  var lastError: String?

  /// - Parameters:
  ///   - reply: What instard says of all plans.
  ///   - result: What this host has reported before.
  init(_ reply: Manager.PermitReply, _ rollout: FleetRollout, _ result: HostResult) {
    let own = reply.rollouts.first { $0.plan == rollout.plan && $0.version == rollout.version }
    stores = own?.stores ?? result.stores
    migrated = own?.migrated ?? result.migrated
    failed = own?.failed ?? result.failed
    deferred = own?.deferred ?? 0
    obstacle = Self.obstacle(reply, own, rollout)
    let isIdle = own.map { $0.waiting == 0 && $0.admitted == 0 } ?? false
    isDone = isIdle && deferred == 0
    isDeferred = isIdle && deferred > 0 && migrated > 0
    lastError = own.flatMap { own in
      reply.failures.first { own.failures.contains($0.store) && $0.error != nil }?.error
        .map { "\($0.what): \($0.cause)" }
    }
  }

  private static func obstacle(
    _ reply: Manager.PermitReply, _ own: Manager.Rollout?, _ rollout: FleetRollout
  ) -> String? {
    if let pause = reply.pause {
      return "instard is paused on this host\(pause.why.map { ": \($0)" } ?? "")"
    }
    guard let own else {
      return "no plugin of this host has \(rollout.plan) \(rollout.version) with stores behind it"
    }
    if let halt = own.halt {
      return "halted on this host by \(halt.by)\(halt.why.map { ": \($0)" } ?? "")"
    }
    if let watch = own.closedWindow {
      return "the window of '\(watch)' is closed on this host"
    }
    if own.unapproved > 0, own.unapproved == own.waiting, own.admitted == 0 {
      return "\(own.unapproved) stores wait for 'instarctl approve' on this host"
    }
    return nil
  }
}
