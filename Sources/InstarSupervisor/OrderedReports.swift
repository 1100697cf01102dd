import Synchronization

/// Passes on the reports on stores that are read in several parts at once: one at a time, in the order of the stores.
final class OrderedReports: Sendable {
  /// Passes one report on.
  typealias Passing = @Sendable () -> Void

  private struct State {
    /// The part whose reports are passed on as they come.
    var current = 0
    /// The reports of later parts.
    var waiting: [Int: [Passing]] = [:]
    var ended: Set<Int> = []
  }

  private let state = Mutex(State())

  func add(_ pass: @escaping Passing, of part: Int) {
    state.withLock { state in
      guard part != state.current else { return pass() }
      state.waiting[part, default: []].append(pass)
    }
  }

  /// No report of the part follows.
  func end(_ part: Int) {
    state.withLock { state in
      state.ended.insert(part)
      while state.ended.contains(state.current) {
        state.current += 1
        state.waiting.removeValue(forKey: state.current)?.forEach { $0() }
      }
    }
  }
}
