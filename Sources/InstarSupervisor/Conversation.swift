import InstarSchema
import Synchronization

/// What one call does with its keeper, seen by those who may want to end it.
///
/// States: starting → working → writing back; canceled from the first two. A canceled conversation
/// never writes back, and one that writes back is never canceled: whichever comes first decides,
/// under one lock.
final class Conversation: Sendable {
  private enum State {
    case starting
    case working(KeeperSession)
    case writingBack
    case canceled
  }

  /// `nil` for calls that are no run.
  let run: String?
  private let state = Mutex(State.starting)

  init(run: String?) {
    self.run = run
  }

  var isCanceled: Bool {
    state.withLock { if case .canceled = $0 { true } else { false } }
  }

  /// - Throws: `interrupted` where it was canceled before.
  func begin(_ session: KeeperSession) throws(InstarError) {
    let isCanceled = state.withLock { state in
      if case .canceled = state { return true }
      state = .working(session)
      return false
    }
    if isCanceled { throw interrupted() }
  }

  /// From here on nothing cancels the run.
  ///
  /// - Returns: `false` where it was canceled before.
  func beginWritingBack() -> Bool {
    state.withLock { state in
      if case .canceled = state { return false }
      state = .writingBack
      return true
    }
  }

  func cancel() {
    let session = state.withLock { state -> KeeperSession? in
      switch state {
      case .starting:
        state = .canceled
        return nil
      case .working(let session):
        state = .canceled
        return session
      case .writingBack, .canceled:
        return nil
      }
    }
    session?.close()
  }
}
