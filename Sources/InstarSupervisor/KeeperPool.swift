import Dispatch
import InstarLinux
import InstarSchema
import Synchronization

/// Idle keepers, kept for the next request: starting a keeper takes about as long as migrating a small store.
///
/// Invariants:
/// - A keeper in `idle` has answered every request. Whoever takes it is its only user, and returns it only after a
///   complete answer.
/// - A keeper serves one user all its life: a keeper that a hostile store has taken over reaches no other user's
///   stores. It keeps its priority too: without capabilities it could not raise it again.
final class KeeperPool: Sendable {
  private struct Idle {
    var session: KeeperSession
    var since: ContinuousClock.Instant
  }

  /// As many as serve small stores at once on two processors: while one run is being reported, the next ones begin.
  private static let idleLimit = 8
  private static let idleTime: Duration = .seconds(10)

  private let installation: Installation
  private let opensOwnStoresOnly: Bool
  private let trustedKeys = Mutex<[TrustedKeys.Key]?>(nil)
  /// Oldest first.
  private let idle = Mutex<[Idle]>([])
  private let killed = Atomic<Int>(0)

  /// How many keepers were killed: they had ended before they finished their work, or hung.
  var killedCount: Int { killed.load(ordering: .relaxed) }

  /// - Parameter opensOwnStoresOnly: as of `KeeperSession.start`.
  init(installation: Installation, opensOwnStoresOnly: Bool) {
    self.installation = installation
    self.opensOwnStoresOnly = opensOwnStoresOnly
  }

  /// From now on no keeper is handed out that trusts other keys.
  func trust(_ keys: [TrustedKeys.Key]?) { trustedKeys.withLock { $0 = keys } }

  func take(
    as identity: ProcessIdentity, priority: ProcessPriority = ProcessPriority()
  ) throws(InstarError) -> KeeperSession {
    let keys = trustedKeys.withLock { $0 }
    while let session = takeIdle(identity, priority, keys) {
      if !session.hasEnded { return session }
    }
    return try KeeperSession.start(
      installation, as: identity, priority: priority, opensOwnStoresOnly: opensOwnStoresOnly,
      trustedKeys: keys,
      onKill: { [weak self] in _ = self?.killed.add(1, ordering: .relaxed) })
  }

  private func takeIdle(
    _ identity: ProcessIdentity, _ priority: ProcessPriority, _ keys: [TrustedKeys.Key]?
  ) -> KeeperSession? {
    idle.withLock { idle in
      idle.lastIndex {
        $0.session.identity == identity && $0.session.priority == priority
          && $0.session.trustedKeys == keys
      }.map { idle.remove(at: $0).session }
    }
  }

  func giveBack(_ session: KeeperSession) {
    // Over the limit: end the keeper that has been idle longest, whatever its user.
    let surplus = idle.withLock { idle in
      idle.append(Idle(session: session, since: .now))
      return idle.count > Self.idleLimit ? idle.removeFirst().session : nil
    }
    // The caller has a run to report: it does not wait until an idle keeper has ended.
    if let surplus { DispatchQueue.global().async { surplus.end() } }
    let wait = Self.idleTime.inSeconds + 0.1
    DispatchQueue.global().asyncAfter(deadline: .now() + wait) { [weak self] in
      self?.endIdle(for: Self.idleTime)
    }
  }

  /// Ends the keepers that have been idle for that time.
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
