import Dispatch
import InstarLinux
import InstarSchema
import Synchronization

/// Keepers that wait for the next request: starting one costs about as much as migrating a small
/// store.
///
/// Invariant: a keeper in `idle` has answered everything it was asked. Whoever takes one out is its
/// only user, and gives it back only after an orderly end of a request.
final class KeeperPool: Sendable {
  private struct Idle {
    var session: KeeperSession
    var since: ContinuousClock.Instant
  }

  private static let idleLimit = 4
  private static let idleTime: Duration = .seconds(10)

  private let installation: Installation
  private let idle = Mutex<[Idle]>([])

  init(installation: Installation) {
    self.installation = installation
  }

  func take() throws(InstarError) -> KeeperSession {
    while let session = idle.withLock({ $0.popLast()?.session }) {
      if !session.hasEnded { return session }
    }
    return try KeeperSession.start(installation)
  }

  func giveBack(_ session: KeeperSession) {
    let isKept = idle.withLock { idle in
      guard idle.count < Self.idleLimit else { return false }
      idle.append(Idle(session: session, since: .now))
      return true
    }
    guard isKept else {
      session.end()
      return
    }
    let wait = Double(Self.idleTime.components.seconds) + 0.1
    DispatchQueue.global().asyncAfter(deadline: .now() + wait) { [weak self] in
      self?.endIdle(for: Self.idleTime)
    }
  }

  /// Ends those that nobody wanted for that long.
  func endIdle(for time: Duration) {
    let limit = ContinuousClock.now - time
    let ended = idle.withLock { idle in
      let ended = idle.filter { $0.since <= limit }
      idle.removeAll { $0.since <= limit }
      return ended
    }
    for entry in ended { entry.session.end() }
  }
}
