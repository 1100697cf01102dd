import Foundation
import InstarSchema
import InstarWire

/// How far the long stages of runs are: for the status of the service, and every few seconds for the journal.
struct RunsInProgress {
  typealias Instant = ContinuousClock.Instant

  private struct Run {
    var event: RunEvent
    var entryDue: Instant
  }
  private var runs: [String: Run] = [:]
  /// How long a stage runs before its progress is logged. A shorter stage needs no entry of its own.
  private static let patience = Duration.seconds(4)
  private static let entryInterval = Duration.seconds(10)

  /// Remembers the last report of a run, or forgets the run when its stage has ended.
  ///
  /// - Returns: Whether the journal is to get this report.
  mutating func note(_ event: RunEvent, at now: Instant) -> Bool {
    guard event.progress != nil else {
      runs[event.run] = nil
      return false
    }
    let due = runs[event.run]?.entryDue ?? now + Self.patience
    let isDue = due <= now
    runs[event.run] = Run(event: event, entryDue: isDue ? now + Self.entryInterval : due)
    return isDue
  }

  /// The run on a store, with its last reported progress.
  func run(on store: String) -> Manager.Run {
    var run = Manager.Run(store: store)
    let event = runs.values.first { $0.event.store == store }?.event
    run.run = event?.run
    run.stage = event?.stage
    run.progress = event?.progress
    return run
  }

  /// The seconds that the last of the long stages in progress still needs; `nil` if no run has a long stage, or none
  /// knows its end.
  var secondsLeft: Double? { runs.values.compactMap(\.event.progress?.secondsLeft).max() }

  mutating func end(_ run: String) { runs[run] = nil }

  /// "'a.store': stage 1.0.0 → 2.0.0 (1 of 1): 34 %, 13 s left", of the run that will take longest; `nil` where no
  /// run has a long stage.
  var status: String? {
    guard let event = runs.values.map(\.event).ofLongestRun, let progress = event.progress else {
      return nil
    }
    let name = event.store.lastName
    let amount = [progress.percentText ?? progress.amount, progress.timeLeftText].compactMap { $0 }
    return "'\(name)': stage \(event.stage ?? ""): \(amount.joined(separator: ", "))"
  }
}
