import DequeModule
import Dispatch
import InstarSchema
import Synchronization

/// Scans of watches, one after the other and outside of the loop: a scan blocks, and scans at the same time would take
/// disks and processors from runs.
///
/// A scan that takes longer than `patience` goes on, and no longer keeps those of other watches waiting: its file
/// system may never answer. Scans of one watch always follow each other.
final class ScanLine: Sendable {
  private typealias Work = @Sendable () -> Void
  private typealias Instant = ContinuousClock.Instant

  private struct State {
    var line: Deque<(watch: String, work: Work)> = []
    /// The paths of the watches that are being scanned.
    var busy: Set<String> = []
    /// The scan for which the others wait, and when it began.
    var current: (number: Int, began: Instant)?
    var begun = 0
    /// Whether `stopWaiting` is going to be called.
    var isTimed = false
  }

  private let patience: Duration
  private let queue = DispatchQueue(label: "instard.scan", attributes: .concurrent)
  private let state = Mutex(State())

  init(patience: Duration = .seconds(10)) { self.patience = patience }

  /// Does the work after what was added before, but for that of other watches that takes too long. Returns at once.
  func add(_ watch: String, _ work: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.line.append((watch, work))
      beginNext(&state)
    }
  }

  private func beginNext(_ state: inout State) {
    guard state.current == nil,
      let place = state.line.firstIndex(where: { [busy = state.busy] in !busy.contains($0.watch) })
    else { return }
    let (watch, work) = state.line.remove(at: place)
    state.busy.insert(watch)
    state.begun += 1
    let number = state.begun
    state.current = (number, .now)
    queue.async {
      work()
      self.end(number, watch)
    }
    if !state.isTimed { callStopWaiting(after: patience, &state) }
  }

  private func end(_ number: Int, _ watch: String) {
    state.withLock { state in
      state.busy.remove(watch)
      if state.current?.number == number { state.current = nil }
      beginNext(&state)
    }
  }

  private func callStopWaiting(after delay: Duration, _ state: inout State) {
    state.isTimed = true
    queue.asyncAfter(deadline: .now() + delay.inSeconds) { self.stopWaiting() }
  }

  private func stopWaiting() {
    state.withLock { state in
      state.isTimed = false
      guard let current = state.current else { return }
      let left = patience - (.now - current.began)
      guard left <= .zero else { return callStopWaiting(after: left, &state) }
      state.current = nil
      beginNext(&state)
    }
  }
}
