/// How fast runs end, measured over the last ones that ended.
///
/// Only time in which stores run counts: the pauses between waves, and days without work, do not make runs slower.
struct RunRate: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// The number of runs that count: the rate follows a change of the stores, and one slow store does not decide.
  private static let limit = 100
  /// When the last run ended, or the first one began after an idle time; `nil` while nothing runs.
  private var mark: Instant?
  /// The time since the last run that counts.
  private var elapsed = Duration.zero
  /// The time between the ends of two runs, of the last ones; the oldest is at `next` once there are `limit`.
  private var times: [Duration] = []
  private var next = 0

  /// Begins to count time, if nothing ran before.
  mutating func began(at now: Instant) { mark = mark ?? now }

  /// - Parameters:
  ///   - counts: Whether the run counts by itself. A rehearsal does not: its time counts for the run that follows.
  ///   - isIdle: Whether nothing runs now.
  mutating func ended(at now: Instant, counts: Bool, isIdle: Bool) {
    if let mark { elapsed += now - mark }
    mark = isIdle ? nil : now
    guard counts else { return }
    if times.count < Self.limit { times.append(elapsed) } else { times[next] = elapsed }
    next = (next + 1) % Self.limit
    elapsed = .zero
  }

  /// Returns how long so many runs will take; `nil` before the first one has ended.
  func time(for runs: Int) -> Duration? {
    guard !times.isEmpty else { return nil }
    return times.reduce(.zero, +) / times.count * runs
  }
}
