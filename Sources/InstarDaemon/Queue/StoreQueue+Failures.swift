import InstarConfiguration
import InstarSchema
import InstarWire

/// Failures and busy stores: when the next attempt is made, or none.
extension StoreQueue {
  /// After this number of failures with the same cause, the store is not retried until something changes.
  static let equalFailureLimit = 3

  /// Counts a failure and decides what follows.
  ///
  /// - Parameter hasChanged: the store changed during the attempt, so that another one may end otherwise.
  func failed(
    _ entry: inout Entry, _ error: InstarError?, signature: String, hasChanged: Bool,
    _ now: Instant
  ) -> FollowUp {
    entry.error = error
    entry.failures += 1
    entry.equalFailures = entry.lastFailure == signature ? entry.equalFailures + 1 : 1
    entry.lastFailure = signature
    let limit =
      switch RetryPolicy(for: error?.code) {
      case .always: settings.retry.attempts ?? Int.max
      case .fewTimes: Self.equalFailureLimit
      case .never: 1
      }
    if entry.equalFailures >= limit, !hasChanged {
      entry.state = .resting(.quarantined)
      return .waitsForChange(failures: entry.equalFailures)
    }
    let delay = backOff(failures: entry.failures)
    entry.state = .resting(.backingOff(until: now + delay))
    return .retry(after: delay)
  }

  /// What a busy store does next.
  func restAfterBusy(_ entry: Entry, _ now: Instant) -> State {
    if let attempts = settings.retry.attempts, entry.failures >= attempts {
      return .resting(.quarantined)
    }
    return .resting(.backingOff(until: now + backOff(failures: entry.failures)))
  }

  func backOff(failures: Int) -> Duration { settings.retry.delay(failures: failures) }

  func reportProbeFailure(
    _ report: ProbeReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    let store = report.store
    let what = "cannot probe '\(store)'"
    var error =
      report.error?.about(what, store: store, state: "unchanged")
      ?? InstarError(
        .unreadableStore, what, store: store,
        cause: report.reason ?? "the keeper gave no reason", state: "unchanged",
        next: "to see who may read the store, run: ls -l \(CommandText.quoted(store))")
    error.completeNext(.command(CommandText.retry(store)))
    let followUp = failed(&entry, error, signature: error.cause, hasChanged: false, now)
    entry.announced = nil
    let verdict = Entry.ReportedVerdict(
      state: .unreadable, cause: error.cause, file: entry.version)
    guard entry.reported != verdict else { return }
    if case .waitsForChange = followUp { entry.reported = verdict }
    actions.append(.reportProbeFailure(store, error, followUp))
  }

  /// Reports that a store is quarantined because it was busy at each of the allowed attempts.
  func reportQuarantine(
    _ report: ProbeReport, _ entry: inout Entry, _ actions: inout [Action]
  ) {
    let holders = report.holdersInWords
    let reason = report.reason ?? InstarError.lockedCause
    let error = InstarError(
      .busyStore, "cannot probe '\(report.store)'", store: report.store,
      cause: [reason, holders].compactMap(\.self).joined(separator: "; "), state: "unchanged",
      next: CommandText.retrying(
        report.store, after: ProbeReport.adviceOnLock(of: report.store, report.holders)))
    entry.error = error
    let verdict = Entry.ReportedVerdict(state: .busy, cause: error.cause, file: entry.version)
    guard entry.reported != verdict else { return }
    entry.reported = verdict
    actions.append(
      .reportProbeFailure(
        report.store, error, .waitsForChange(failures: entry.failures)))
  }
}
