import Dispatch
import InstarSchema
import Synchronization

/// What one call does with its keeper, seen by those who may want to end it.
///
/// States: starting → working ⇄ writing back; canceled from the first two. A canceled conversation
/// never writes back, and one that writes back is never canceled: whichever comes first decides,
/// under one lock. A run that could not write back because others had written the store works
/// again; if it was to be canceled meanwhile, it is then.
///
/// What is to be canceled and still writes after the grace has a keeper that hangs. It is killed, which
/// costs the store nothing: another keeper finishes the run or clears it away.
final class Conversation: Sendable {
  private enum State {
    case starting
    case working(KeeperSession)
    case writingBack(KeeperSession, isCancelWanted: Bool)
    case canceled
  }

  /// `nil` for calls that are no run.
  let run: String?
  private let writeBackGrace: Duration
  private let state = Mutex(State.starting)

  init(run: String?, writeBackGrace: Duration) {
    self.run = run
    self.writeBackGrace = writeBackGrace
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

  /// The run makes a clone, for the first time or once more: it can be canceled.
  ///
  /// - Returns: `false` where it was, or should have been while it wrote back.
  func beginCloning() -> Bool {
    state.withLock { state in
      switch state {
      case .canceled: return false
      case .starting, .working: return true
      case .writingBack(let session, let isCancelWanted):
        state = isCancelWanted ? .canceled : .working(session)
        return !isCancelWanted
      }
    }
  }

  /// From here on nothing cancels the run, until it clones again.
  ///
  /// - Returns: `false` where it was canceled before, or has not begun.
  func beginWritingBack() -> Bool {
    state.withLock { state in
      switch state {
      case .starting, .canceled: return false
      case .working(let session):
        state = .writingBack(session, isCancelWanted: false)
        return true
      case .writingBack: return true
      }
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
      case .writingBack(let session, let isCancelWanted):
        state = .writingBack(session, isCancelWanted: true)
        if !isCancelWanted { endAfterGrace() }
        return nil
      case .canceled:
        return nil
      }
    }
    session?.close()
  }

  /// Does nothing once the call is over: nobody holds the conversation then.
  private func endAfterGrace() {
    DispatchQueue.global().asyncAfter(deadline: .now() + writeBackGrace.inSeconds) { [weak self] in
      let session = self?.state.withLock { state -> KeeperSession? in
        guard case .writingBack(let session, isCancelWanted: true) = state else { return nil }
        return session
      }
      session?.kill()
    }
  }
}
