import InstarSchema
import InstarWire

/// What operators, owners and metrics see of a rollout.
extension Rollout {
  private static let failuresInReport = 5

  /// Why no store has a run; `nil` if the rollout is not halted.
  ///
  /// - Parameter isAdmin: Whether the reader may resume it.
  func reasonOfHalt(isAdmin: Bool) -> String? {
    halt.map { halt in
      let why = halt.why.map { ": \($0)" } ?? ""
      let advice = CommandText.ofAdministrator(
        "instarctl resume --plan \(plan)", isAdmin: isAdmin)
      return "the rollout of \(plan) is halted\(why); \(advice)"
    }
  }

  /// Why a store that is behind has no run; `nil` if its turn has come.
  ///
  /// - Parameter isAdmin: Whether the reader may resume the rollout and approve all stores. Others approve their own.
  func reasonToWait(_ store: String, isAdmin: Bool) -> String? {
    if let reason = reasonOfHalt(isAdmin: isAdmin) { return reason }
    guard let place = stores[store]?.place else { return nil }
    if place.needsApproval {
      return "waits for an approval; run: instarctl approve \(isAdmin ? "--plan \(plan)" : "STORE")"
    }
    return wave == 0 ? "waits until all stores are probed" : "waits for a later wave"
  }

  /// As operators see it.
  func status(at now: Instant) -> Manager.Rollout {
    Manager.Rollout(
      plan: plan, version: version, wave: wave, waves: steps.count, stores: total,
      waiting: count(.waiting), admitted: count(.admitted), deferred: count(.deferred),
      migrated: count(.migrated), failed: count(.failed),
      unapproved: stores.unapprovedCount,
      secondsToNextWave: halt == nil ? soakEnds.map { max(0, ($0 - now).inSeconds) } : nil,
      halt: halt,
      failures: Array(stores.failed.sorted().prefix(Self.failuresInReport)),
      isFinished: isFinished && total == ended)
  }

  /// The first watch, by path, that has a closed window, if closed windows keep all runs from starting. The runs are
  /// those of the stores whose turn has come; if there are none, those of the stores whose turn comes next. `nil` where
  /// one of these runs may start.
  func closedWatch(_ isClosed: (String) -> Bool) -> String? {
    let isAdmitting = count(.admitted) > 0
    let counts = stores.watchCounts.compactMapValues { count in
      let inTurn = isAdmitting ? count.admitted : count.waiting
      return inTurn > 0 ? inTurn : nil
    }
    let closed = counts.filter { isClosed($0.key) }
    // A store whose watch is not known has no window.
    guard closed.values.reduce(0, +) == count(isAdmitting ? .admitted : .waiting) else {
      return nil
    }
    return closed.keys.min()
  }

  /// How long waves still wait for the next one, all together; `nil` where an operator decides when.
  func soakLeft(at now: Instant) -> Duration? {
    guard halt == nil, stores.unapprovedCount == 0 else { return nil }
    guard count(.waiting) > 0 else { return .zero }
    let first = max(wave, 1) + (soakEnds == nil ? 0 : 1)
    // A wave without stores of its own is skipped, and no wave follows the one with the last store.
    let ends = Set((first..<max(first, steps.count)).map(size)).filter { $0 < total }
    return (soakEnds.map { max(.zero, $0 - now) } ?? .zero) + soak * ends.count
  }
}
