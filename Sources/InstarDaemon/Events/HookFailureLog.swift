import InstarSchema
import InstarWire

/// A failure of a hook, or of the runner.
struct HookFailure: Sendable, Hashable {
  var error: InstarError
  /// `nil` if no hook could be run.
  var report: HookReport?
  /// How often it failed since the last entry about it, this failure included.
  var count = 1
}

/// Joins the failures of a hook: one that is broken fails on each event.
///
/// The first failure of a hook is an entry of its own. Further ones are counted, and become an entry a minute later at
/// the earliest.
struct HookFailureLog {
  typealias Instant = ContinuousClock.Instant

  private struct Counted {
    var last: HookFailure
    var reportedAt: Instant
    /// How many are in no entry yet.
    var unreported = 0
  }

  private static let interval = Duration.seconds(60)
  /// By hook; the runner's own failures have no name.
  private var hooks: [String: Counted] = [:]

  /// - Returns: The entry that is due now.
  mutating func note(_ error: InstarError, report: HookReport?, at now: Instant) -> HookFailure? {
    let name = report?.hook ?? ""
    var failure = HookFailure(error: error, report: report)
    guard var counted = hooks[name] else {
      hooks[name] = Counted(last: failure, reportedAt: now)
      return failure
    }
    defer { hooks[name] = counted }
    counted.unreported += 1
    counted.last = failure
    guard counted.reportedAt + Self.interval <= now else { return nil }
    failure.count = counted.unreported
    counted.unreported = 0
    counted.reportedAt = now
    return failure
  }

  /// Returns all that was counted since the last entries.
  mutating func takeAll() -> [HookFailure] {
    let names = hooks.filter { $0.value.unreported > 0 }.keys.sorted()
    return names.compactMap { name in
      guard var counted = hooks[name] else { return nil }
      var failure = counted.last
      failure.count = counted.unreported
      counted.unreported = 0
      hooks[name] = counted
      return failure
    }
  }
}
