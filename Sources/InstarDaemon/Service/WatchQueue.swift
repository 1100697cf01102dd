import DequeModule
import Dispatch
import InstarSchema
import Synchronization

/// Work on watches, one piece after the other and outside of the loop: the work blocks, and several pieces at the same
/// time would take disks and processors from runs.
///
/// A piece that notes no step for `patience` goes on, and no longer keeps those of other watches waiting: its file
/// system may never answer. The pieces of one watch always follow each other, so at most one for each watch is in
/// progress.
final class WatchQueue: Sendable {
  /// - Parameter noteStep: Says that the work still goes on.
  typealias Work = @Sendable (_ noteStep: @escaping @Sendable () -> Void) async -> Void
  private typealias Instant = ContinuousClock.Instant

  private struct State {
    var queue: Deque<(watch: String, work: Work)> = []
    /// The paths of the watches that are being worked on.
    var busy: Set<String> = []
    /// The piece for which the others wait, and when it began or noted its last step.
    var current: (number: Int, lastStep: Instant)?
    var begun = 0
    /// Whether `stopWaiting` is going to be called.
    var isTimed = false
  }

  private let patience: Duration
  private let state = Mutex(State())

  init(patience: Duration) { self.patience = patience }

  /// Begins the work when all work that was added before has ended. It does not wait for work on another watch that
  /// noted no step for `patience`. Returns at once.
  func add(_ watch: String, _ work: @escaping Work) {
    state.withLock { state in
      state.queue.append((watch, work))
      beginNext(&state)
    }
  }

  private func beginNext(_ state: inout State) {
    guard state.current == nil,
      let place = state.queue.firstIndex(where: { [busy = state.busy] in !busy.contains($0.watch) })
    else { return }
    let (watch, work) = state.queue.remove(at: place)
    state.busy.insert(watch)
    state.begun += 1
    let number = state.begun
    state.current = (number, .now)
    Task(executorPreference: BlockingExecutor.shared) {
      await work { self.noteStep(number) }
      self.end(number, watch)
    }
    if !state.isTimed { callStopWaiting(after: patience, &state) }
  }

  private func noteStep(_ number: Int) {
    state.withLock { state in
      if state.current?.number == number { state.current?.lastStep = .now }
    }
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
    DispatchQueue.global().asyncAfter(deadline: .now() + delay.inSeconds) { self.stopWaiting() }
  }

  private func stopWaiting() {
    state.withLock { state in
      state.isTimed = false
      guard let current = state.current else { return }
      let left = patience - (.now - current.lastStep)
      guard left <= .zero else { return callStopWaiting(after: left, &state) }
      state.current = nil
      beginNext(&state)
    }
  }
}
