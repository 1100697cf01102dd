import Dispatch
public import InstarSchema
import Synchronization

/// Brings to disk what several threads want to have there at the same time, in one step for all of them.
///
/// A step that is under way may miss what a thread adds meanwhile. So whoever comes then waits for the next step, which
/// the first of them makes for all who came since.
///
/// An error of a step is also the error of those who wait for the next one. The kernel reports a write that failed to
/// one fsync only, and that write may have been theirs.
public final class GroupCommit<Item: Sendable>: Sendable {
  /// The next step, and those who wait for it.
  private final class Step: Sendable {
    /// Signaled when the step before has ended.
    let mayBegin = DispatchSemaphore(value: 0)
    let hasEnded = DispatchSemaphore(value: 0)
    let items: Mutex<[Item]>
    let failure = Mutex<InstarError?>(nil)

    init(_ item: Item) { items = Mutex([item]) }

    func requireSuccess() throws(InstarError) {
      if let failure = failure.withLock({ $0 }) { throw failure }
    }
  }

  private struct State {
    var isCommitting = false
    var next: Step?
  }

  private enum Role {
    case alone
    case first(Step)
    case other(Step)
  }

  private let state = Mutex(State())

  public init() {}

  /// Has an item committed, by this thread or another one.
  ///
  /// - Parameter commit: Commits all items; after an error none counts as committed. The same for all callers.
  /// - Throws: The error of the step that has the item, or of the one under way when the item was given.
  public func perform(
    _ item: Item, commit: ([Item]) throws(InstarError) -> Void
  ) throws(InstarError) {
    switch role(of: item) {
    case .alone:
      do throws(InstarError) {
        try commit([item])
      } catch {
        beginNext(after: error)
        throw error
      }
      beginNext()
    case .first(let step):
      step.mayBegin.wait()
      let items = step.items.withLock { $0 }
      do throws(InstarError) {
        try step.requireSuccess()
        try commit(items)
      } catch {
        step.failure.withLock { $0 = error }
      }
      beginNext(after: step.failure.withLock { $0 })
      for _ in items.dropFirst() { step.hasEnded.signal() }
      try step.requireSuccess()
    case .other(let step):
      step.hasEnded.wait()
      try step.requireSuccess()
    }
  }

  private func role(of item: Item) -> Role {
    state.withLock { state in
      guard state.isCommitting else {
        state.isCommitting = true
        return .alone
      }
      guard let step = state.next else {
        let step = Step(item)
        state.next = step
        return .first(step)
      }
      step.items.withLock { $0.append(item) }
      return .other(step)
    }
  }

  /// Closes the next step for others, and lets it begin.
  ///
  /// - Parameter failure: Of the step that has ended.
  private func beginNext(after failure: InstarError? = nil) {
    let step = state.withLock { state in
      defer { state.next = nil }
      state.isCommitting = state.next != nil
      return state.next
    }
    guard let step else { return }
    step.failure.withLock { $0 = failure }
    step.mayBegin.signal()
  }
}
