import Foundation
import InstarConfiguration
import InstarSchema
import InstarWire

/// How many stores may fail before the rollout is halted.
extension Rollout {
  var hasWatchBudgets: Bool { !watchBudgets.isEmpty }

  /// How many stores may fail before the rollout is halted; `nil` without a budget of its own.
  var allowedFailures: Int? { budget?.failures(of: total) }

  /// The stores that failed and count.
  var countedFailures: Int { stores.failed.count { !forgiven.contains($0) } }

  /// Halts if more stores failed than a budget allows: that of the rollout, or of a watch.
  mutating func haltIfOverBudget(at now: Double) -> Bool {
    guard halt == nil, hasCounted, count(.failed) > 0 else { return false }
    if let budget, let excess = excess(count(.failed), of: total, budget, in: nil) {
      haltForFailures(excess, at: now)
      return true
    }
    for (watch, budget) in watchBudgets.sorted(by: { $0.key < $1.key }) {
      guard let count = stores.watchCounts[watch],
        let excess = excess(count.failed, of: count.total, budget, in: watch)
      else { continue }
      haltForFailures(excess, at: now)
      return true
    }
    return false
  }

  /// Why failures are more than a budget allows; `nil` where they are not. Stores that an operator has forgiven do not
  /// count.
  private func excess(
    _ failed: Int, of total: Int, _ budget: RolloutSettings.Share, in watch: String?
  ) -> String? {
    let allowed = budget.failures(of: total)
    guard failed > allowed else { return nil }
    let counted = stores.failed.count { store in
      !forgiven.contains(store) && (watch == nil || stores[store]?.watch == watch)
    }
    guard counted > allowed else { return nil }
    let more = forgiven.isEmpty ? "" : " more"
    let place = watch.map { " of '\($0)'" } ?? ""
    return "\(counted)\(more) of \(total) stores\(place) failed, and the budget is \(budget)"
  }

  private mutating func haltForFailures(_ why: String, at now: Double) {
    halt = Manager.Pause(by: Manager.Rollout.daemon, since: now, why: why)
  }
}
