import InstarSchema
import InstarWire
import Logging

/// What the journal says about rollouts.
extension DaemonEvent {
  static func changed(_ rollout: Manager.Rollout, _ change: Rollout.Change) -> EventEntry {
    let name = "the rollout of \(rollout.plan) to \(rollout.version)"
    let wave = "wave \(rollout.wave) of \(rollout.waves)"
    let done =
      "\(rollout.migrated) of \(rollout.stores.counted("store")) migrated, \(rollout.failed) failed"
      + (rollout.deferred > 0 ? ", \(rollout.deferred) retried later" : "")
    let kind: EventKind
    var level = Logger.Level.notice
    let message: String
    switch change {
    case .waveOpened:
      (kind, message) = (.waveOpened, "opened \(wave) of \(name): \(done)")
    case .waveDone:
      let next = rollout.secondsToNextWave.flatMap {
        $0 > 0
          ? "; the next wave opens in \(Quantity.duration(microseconds: Int64($0 * 1_000_000)))"
          : nil
      }
      (kind, message) = (.waveDone, "finished \(wave) of \(name): \(done)\(next ?? "")")
    case .finished:
      (kind, message) = (.rolloutFinished, "finished \(name): \(done)")
    case .halted:
      // Failures beyond the budget need a person at once; an operator's order does not.
      level = rollout.isHaltedByFailures ? .error : .notice
      kind = .rolloutHalted
      message =
        halted(rollout, name, wave) + "; \(done)" + names(of: rollout)
        + "; to go on, run: instarctl resume --plan \(rollout.plan)"
    case .resumed:
      (kind, message) = (.rolloutResumed, "resumed \(name): \(done)")
    case .approved:
      let left = rollout.unapproved.counted("store still waits", "stores still wait")
      (kind, message) = (.rolloutApproved, "approved \(name): \(left) for an approval")
    }
    return .make(
      kind, level, message,
      [
        ("INSTAR_PLAN", rollout.plan), ("INSTAR_TO", rollout.version.description),
        ("INSTAR_COUNT", String(rollout.stores)), ("INSTAR_WAVE", String(rollout.wave)),
      ])
  }

  private static func halted(_ rollout: Manager.Rollout, _ name: String, _ wave: String) -> String {
    let why = rollout.halt?.why.map { ": \($0)" } ?? ""
    let place = rollout.wave > 0 ? " in \(wave)" : ""
    return "\(rollout.halt?.by ?? "an operator") halted \(name)\(place)\(why)"
  }

  private static func names(of rollout: Manager.Rollout) -> String {
    guard !rollout.failures.isEmpty else { return "" }
    let others = rollout.failed - rollout.failures.count
    return " (" + rollout.failures.map { "'\($0)'" }.joined(separator: ", ")
      + (others > 0 ? " and \(others.counted("other"))" : "") + ")"
  }
}
