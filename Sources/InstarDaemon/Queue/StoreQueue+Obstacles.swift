import InstarConfiguration
import InstarSchema
import InstarWire

/// What keeps a store's run from starting although its turn has come: `Obstacle`.
extension StoreQueue {
  struct Permission {
    var until: Instant?
    /// How many stores may have failed.
    var failures: Int?
  }

  /// What keeps the run of a store of a watch from starting now; `nil` if nothing does.
  func obstacle(
    toRunOf entry: Entry, in watch: Configuration.Watch, _ now: Instant
  ) -> Obstacle? {
    if isPaused { return .pause }
    if let key = entry.rolloutKey, !isPermitted(key, now) { return .noPermission(key) }
    if isClosed(watch) { return .closedWindow(watch.path) }
    if freeRuns(of: watch) == 0 { return .fullWatch(watch.path) }
    return nil
  }

  /// Lets a store whose turn has come wait until an obstacle is gone.
  mutating func holdBack(_ store: String, _ entry: Entry, _ obstacle: Obstacle) {
    entries[store]?.obstacle = obstacle
    guard entry.queueHeldBackIn != obstacle else { return }
    entries[store]?.queueHeldBackIn = obstacle
    heldBack[obstacle, default: OwnerQueue()].append(store, to: entry.owner)
  }

  /// Lets stores whose obstacle is gone wait for a slot again.
  mutating func releaseHeldBack(_ now: Instant) {
    for obstacle in heldBack.keys {
      let count =
        switch obstacle {
        case .pause: isPaused ? 0 : Int.max
        case .noPermission(let key): isPermitted(key, now) ? Int.max : 0
        case .closedWindow(let path): hasClosedWindow(path) ? 0 : Int.max
        case .fullWatch(let path): watch(at: path).map(freeRuns) ?? .max
        }
      release(count, obstacle)
    }
  }

  private mutating func release(_ limit: Int, _ obstacle: Obstacle) {
    var count = 0
    while count < limit, let owner = heldBack[obstacle]?.nextOwner([:]),
      let store = heldBack[obstacle]?.popFirst(of: owner)
    {
      if entries[store]?.queueHeldBackIn == obstacle { entries[store]?.queueHeldBackIn = nil }
      guard let entry = entries[store], entry.obstacle == obstacle else { continue }
      entries[store]?.obstacle = nil
      runQueue.append(store, to: entry.owner)
      count += 1
    }
    if heldBack[obstacle]?.count == 0 { heldBack[obstacle] = nil }
  }

  /// Whether a store whose turn has come waits for anything other than the runs of its watch.
  var hasObstacles: Bool {
    heldBack.keys.contains { if case .fullWatch = $0 { false } else { true } }
  }

  /// Replaces all permissions, unless they were decided before the present ones.
  mutating func permit(_ new: Manager.PermitParameters, _ now: Instant) {
    // A late call may arrive after the next one, and would restore permissions that the next one revoked.
    guard new.decidedAt >= permissionsDecidedAt else { return }
    permissionsDecidedAt = min(new.decidedAt, now.secondsSinceBoot)
    permissions = [:]
    for permission in new.permissions {
      let key = Rollout.Key(plan: permission.plan, version: permission.version)
      permissions[key] = Permission(
        until: permission.until.map(Instant.init(secondsSinceBoot:)), failures: permission.failures)
    }
  }

  /// Whether the coordinator permits runs of a rollout, or there is none.
  func isPermitted(_ key: Rollout.Key, _ now: Instant) -> Bool {
    guard settings.configuration.coordinator != nil else { return true }
    guard let permission = permissions[key] else { return false }
    if let until = permission.until, until <= now { return false }
    return (rollouts[key]?.count(.failed) ?? 0) <= permission.failures ?? .max
  }

  private func isClosed(_ watch: Configuration.Watch) -> Bool {
    watch.window != nil && windows[watch.path]?.isOpen != true
  }

  func hasClosedWindow(_ path: String) -> Bool { watch(at: path).map(isClosed) == true }

  /// How many more runs of a watch's stores may start.
  private func freeRuns(of watch: Configuration.Watch) -> Int {
    guard let limit = watch.parallelRuns else { return .max }
    return max(0, limit - slots.values.count { $0.watch == watch.path })
  }

  private func watch(at path: String) -> Configuration.Watch? {
    settings.configuration.watches.first { $0.path == path }
  }
}
