import Dispatch
import InstarLinux
import InstarSchema
import Synchronization

/// Keepers that wait for the next request: starting one costs about as much as migrating a small
/// store.
///
/// Invariants:
/// - A keeper in `idle` has answered everything it was asked. Whoever takes one out is its only
///   user, and gives it back only after an orderly end of a request.
/// - A keeper works for one user all its life: what a hostile store has made of it reaches no other
///   user's stores.
final class KeeperPool: Sendable {
  private struct Idle {
    var session: KeeperSession
    var since: ContinuousClock.Instant
  }

  private static let idleLimit = 4
  private static let idleTime: Duration = .seconds(10)

  private let installation: Installation
  private let opensOwnStoresOnly: Bool
  /// Oldest first.
  private let idle = Mutex<[Idle]>([])

  /// - Parameter opensOwnStoresOnly: as of `KeeperSession.start`.
  init(installation: Installation, opensOwnStoresOnly: Bool) {
    self.installation = installation
    self.opensOwnStoresOnly = opensOwnStoresOnly
  }

  func take(as identity: ProcessIdentity) throws(InstarError) -> KeeperSession {
    while let session = takeIdle(identity) {
      if !session.hasEnded { return session }
    }
    return try KeeperSession.start(
      installation, as: identity, opensOwnStoresOnly: opensOwnStoresOnly)
  }

  private func takeIdle(_ identity: ProcessIdentity) -> KeeperSession? {
    idle.withLock { idle in
      idle.lastIndex { $0.session.identity == identity }.map { idle.remove(at: $0).session }
    }
  }

  func giveBack(_ session: KeeperSession) {
    // One too many: the one that was wanted least lately, maybe of another user.
    let surplus = idle.withLock { idle in
      idle.append(Idle(session: session, since: .now))
      return idle.count > Self.idleLimit ? idle.removeFirst().session : nil
    }
    surplus?.end()
    let wait = Self.idleTime.inSeconds + 0.1
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
