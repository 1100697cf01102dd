import Dispatch
import InstarSchema
import Synchronization

/// The state of one call and its keeper, for whoever cancels the call.
///
/// States: starting → working ⇄ cutting over; canceled from the first two. A canceled conversation never cuts over, and
/// one that cuts over is never canceled: whichever comes first decides, under one lock. A run that could not cut over
/// because other processes wrote to the store works again; a cancellation requested meanwhile takes effect then.
///
/// A keeper that still writes back after the grace hangs. It is killed, which does not damage the store: another keeper
/// recovers the run.
final class Conversation: Sendable {
  private enum State {
    case starting
    case working(KeeperSession)
    case cuttingOver(KeeperSession, isCancelWanted: Bool)
    case canceled
  }

  private let cutoverGrace: Duration
  private let state = Mutex(State.starting)

  init(cutoverGrace: Duration) {
    self.cutoverGrace = cutoverGrace
  }

  var isCanceled: Bool {
    state.withLock { if case .canceled = $0 { true } else { false } }
  }

  /// Whether somebody canceled the conversation, also where its cutover may still finish.
  var isCancelWanted: Bool {
    state.withLock { state in
      switch state {
      case .canceled, .cuttingOver(_, isCancelWanted: true): true
      case .starting, .working, .cuttingOver: false
      }
    }
  }

  /// - Throws: `interrupted` if the conversation was canceled.
  func begin(_ session: KeeperSession) throws(InstarError) {
    let isCanceled = state.withLock { state in
      if case .canceled = state { return true }
      state = .working(session)
      return false
    }
    if isCanceled { throw interrupted() }
  }

  /// Enters the phase `cloning`, in which the run can be canceled.
  ///
  /// - Returns: `false` if the run was canceled, or a cancellation was requested while it wrote back.
  func beginCloning() -> Bool {
    state.withLock { state in
      switch state {
      case .canceled: return false
      case .starting, .working: return true
      case .cuttingOver(let session, let isCancelWanted):
        state = isCancelWanted ? .canceled : .working(session)
        return !isCancelWanted
      }
    }
  }

  /// Enters the phase of the cutover, in which nothing cancels the run.
  ///
  /// - Returns: `false` if the run was canceled, or has not started.
  func beginCutover() -> Bool {
    state.withLock { state in
      switch state {
      case .starting, .canceled: return false
      case .working(let session):
        state = .cuttingOver(session, isCancelWanted: false)
        return true
      case .cuttingOver: return true
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
      case .cuttingOver(let session, let isCancelWanted):
        state = .cuttingOver(session, isCancelWanted: true)
        if !isCancelWanted { endAfterGrace() }
        return nil
      case .canceled:
        return nil
      }
    }
    session?.close()
  }

  /// Does nothing once the call has ended: nothing holds the conversation then.
  private func endAfterGrace() {
    DispatchQueue.global().asyncAfter(deadline: .now() + cutoverGrace.inSeconds) { [weak self] in
      let session = self?.state.withLock { state -> KeeperSession? in
        guard case .cuttingOver(let session, isCancelWanted: true) = state else { return nil }
        return session
      }
      session?.kill()
    }
  }
}
