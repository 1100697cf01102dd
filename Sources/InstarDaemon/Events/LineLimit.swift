import Synchronization

/// Limits how many lines of SQL and of plugins are logged.
///
/// The journal drops all entries of a service beyond a number in 30 s, reports of runs too: 10,000 by default
/// (journald.conf(5), `RateLimitBurst=`). These lines stay well below that, so that they never cause the loss of a
/// report.
final class LineLimit: Sendable {
  static let window = Duration.seconds(30)
  static let lines = 4000

  private struct State {
    var windowEnd = ContinuousClock.now
    var logged = 0
    var leftOut = 0
  }
  private let state = Mutex(State())

  /// Counts one more line.
  ///
  /// - Returns: Whether it may be logged.
  func countLine(at now: ContinuousClock.Instant) -> Bool {
    state.withLock { state in
      if state.windowEnd <= now {
        state.windowEnd = now + Self.window
        state.logged = 0
      }
      guard state.logged < Self.lines else {
        state.leftOut += 1
        return false
      }
      state.logged += 1
      return true
    }
  }

  /// - Returns: How many lines were left out since the last call.
  func resetLeftOut() -> Int {
    state.withLock { state in
      defer { state.leftOut = 0 }
      return state.leftOut
    }
  }
}
