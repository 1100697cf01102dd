import InstarConfiguration
import InstarSchema
import InstarWire

/// What operators see of the stores.
extension StoreQueue {
  /// What is known about a store; `nil` where the queue does not know it.
  ///
  /// - Parameter isAdmin: Whether the reader may do more than the store's owner.
  func status(
    of store: String, at now: Instant, isAdmin: Bool = true
  ) -> Manager.Store? {
    guard let entry = entries[store] else { return nil }
    var status = Manager.Store(store: store, activity: entry.activity)
    let announced = entry.announced?.value
    status.state = announced?.state
    status.version = announced?.version
    // The probe of a busy store finds no plan.
    status.plan = announced?.plan ?? entry.rollout?.plan
    status.planVersion = announced?.planVersion ?? entry.rollout?.version
    status.reason = [announced?.reason, announced?.holders].compactMap(\.self)
      .joined(separator: "; ")
    if status.reason?.isEmpty == true { status.reason = nil }
    status.error = entry.error ?? announced?.error?.about(store: store)
    if entry.activity == .held { status.reason = announced?.hold?.sentence ?? Self.unknownHold }
    switch entry.obstacle {
    case .fullWatch(let path):
      status.reason = "waits until fewer runs of '\(path)' are in progress"
    case .closedWindow(let path): status.reason = "waits until the window of '\(path)' opens"
    case .noPermission(let key): status.reason = Self.waitsForHost(key)
    case .pause, nil: break
    }
    if case .readingVersion = entry.state { status.reason = Self.noAnswer }
    if entry.state == .pending {
      status.reason = entry.rollout.flatMap { rollouts[$0]?.reasonToWait(store, isAdmin: isAdmin) }
    }
    status.wave = entry.rollout.flatMap { rollouts[$0]?.wave(of: store) }
    status.turn = entry.rollout.flatMap { rollouts[$0]?.turn(of: store) }
    if case .resting(.backingOff(let until)) = entry.state {
      status.secondsToRetry = max(0, (until - now).inSeconds)
    }
    return status
  }

  private static let unknownHold = "held; to see by whom, run: instarctl hold"

  /// Of a store whose run the fleet has not permitted.
  private static func waitsForHost(_ key: Rollout.Key) -> String {
    "waits for the turn of this host in the rollout of \(key.plan); to see it, run: instarctl rollout show"
  }

  /// The reason for a store whose version is being read for long: its file system does not answer, else reading takes
  /// no time.
  private static let noAnswer = "its file system does not answer; instard continues when it does"

  /// The stores of an owner, or of all for `nil`, in no order. The sequence stops at the last store of the owner,
  /// because the queue may have 100,000 others.
  private func entries(of owner: UInt32?) -> some Sequence<(key: String, value: Entry)> {
    entries.lazy.filter { owner == nil || $0.value.owner == owner }
      .prefix(owner.map(storeCount(ofOwner:)) ?? storeCount)
  }

  /// The paths of the stores of an owner, or of all for `nil`, in no order.
  func stores(of owner: UInt32?) -> [String] { entries(of: owner).map(\.key) }

  /// Counts the stores of an owner, or of all for `nil`. Makes no value for each store, because there may be 100,000.
  ///
  /// - Parameter limit: The most failures.
  /// - Returns: The numbers of stores by state and activity, the stores that are running, and the first failures, both
  ///   by path. Unusable stores, and those for which no plan can be chosen, are the last failures: files that only look
  ///   like stores must not hide the others.
  func overview(
    of owner: UInt32?, failures limit: Int, at now: Instant
  ) -> (
    stores: Int, states: [String: Int], activities: [String: Int], running: [String],
    failures: [Manager.Store]
  ) {
    var stores = 0
    var states: [StoreState: Int] = [:]
    var activities: [Manager.Activity: Int] = [:]
    var running: [String] = []
    var failed: [String] = []
    var unusable: [String] = []
    for (store, entry) in entries(of: owner) {
      stores += 1
      if let state = entry.announced?.value.state { states[state, default: 0] += 1 }
      let activity = entry.activity
      activities[activity, default: 0] += 1
      if activity == .running { running.append(store) }
      if entry.error != nil {
        failed.append(store)
      } else if let announced = entry.announced?.value,
        announced.state.isUnusable || announced.error != nil
      {
        unusable.append(store)
      }
    }
    return (
      stores, Dictionary(uniqueKeysWithValues: states.map { ($0.rawValue, $1) }),
      Dictionary(uniqueKeysWithValues: activities.map { ($0.rawValue, $1) }), running.sorted(),
      (failed.sorted() + unusable.sorted()).prefix(limit).compactMap {
        status(of: $0, at: now, isAdmin: owner == nil)
      }
    )
  }

  /// How long it takes to migrate all stores that are behind, at the rate of the last runs. `nil` where that is not
  /// known: no store is behind or not all are probed, no run has ended yet, or runs wait for an operator, a window or
  /// another host.
  func timeLeft(at now: Instant) -> Duration? {
    let count = [Manager.Activity.pending, .queued, .running].reduce(0) {
      $0 + (activityCounts[$1] ?? 0)
    }
    guard count > 0, areAllProbed, !isPaused, !isStopping, !hasObstacles,
      let runs = runRate.time(for: count)
    else { return nil }
    var soak = Duration.zero
    for rollout in rollouts.values {
      guard let own = rollout.soakLeft(at: now), rollout.closedWatch(hasClosedWindow) == nil else {
        return nil
      }
      // Rollouts of several plans soak at the same time.
      soak = max(soak, own)
    }
    return runs + soak
  }

  /// Whether a retry has an effect: not on a store that is about to be probed or migrated. Neither on a damaged one
  /// that has no run now: its probe does not find the damage, and the next status would not show it.
  /// `reasonNotToRetry` has a reason for each store that cannot be retried.
  func canRetry(_ store: String, at now: Instant) -> Bool {
    guard let entry = entries[store] else { return false }
    switch entry.state {
    case .resting, .waiting:
      return !entry.isDamaged
        || reasonForNoRun(store, entry, isAdmin: true, now, release: \.releaseCommand) == nil
    case .readingVersion, .probeQueued, .probing, .pending, .runQueued, .running, .recoveryQueued,
      .recovering:
      return false
    }
  }

  /// Whether the store waits for a later retry, or for a change.
  func waitsForRetry(_ store: String) -> Bool {
    guard let entry = entries[store] else { return false }
    switch entry.state {
    case .resting(let reason), .waiting(_, _, let reason), .readingVersion(let reason):
      return reason != .idle || entry.activity == .quarantined
    case .probeQueued, .probing, .pending, .runQueued, .running, .recoveryQueued, .recovering:
      return false
    }
  }

  /// Why a store gets no attempt now although somebody wants a retry, and what to run; `nil` where it gets one.
  ///
  /// - Parameters:
  ///   - isAdmin: Whether the reader may do more than the store's owner.
  ///   - release: The command that ends a hold.
  func reasonNotToRetry(
    _ store: String, isAdmin: Bool, at now: Instant, release: (Hold) -> String
  ) -> String? {
    guard let entry = entries[store] else { return nil }
    let announced = entry.announced?.value
    let reasonForNoRun = reasonForNoRun(store, entry, isAdmin: isAdmin, now, release: release)
    switch entry.state {
    case .probeQueued, .probing, .waiting(_, _, .idle):
      let probes = "instard is about to probe the store"
      // Whether a store is still held, only the probe will tell.
      guard entry.error != nil, announced?.state == .behind, !entry.isHeld else { return probes }
      // Somebody has ordered a retry, or the store has changed.
      return reasonForNoRun ?? "\(probes), and retries it afterwards"
    case .readingVersion: return Self.noAnswer
    case .running: return "its run is in progress"
    case .recoveryQueued, .recovering: return "instard recovers an interrupted run of the store"
    case .pending:
      return reasonForNoRun
        ?? entry.rollout.flatMap { rollouts[$0]?.reasonToWait(store, isAdmin: isAdmin) }
        ?? "the store waits for its turn"
    case .runQueued: return reasonForNoRun ?? "its run is queued"
    case .resting(.idle) where announced?.state == .current && !entry.isHeld:
      return "current\(announced?.version.map { " at \($0)" } ?? "")"
    case .resting, .waiting:
      let isBehind = announced?.state == .behind || entry.isDamaged
      // Only runs wait for anything, not probes.
      guard isBehind || entry.isHeld else { return nil }
      return reasonForNoRun ?? (isAdmin ? nil : reasonOfBackOff(entry, now))
    }
  }

  /// Why the retry of an owner has no run yet: it keeps the delay after the last run.
  private func reasonOfBackOff(_ entry: Entry, _ now: Instant) -> String? {
    guard let notBefore = entry.notBefore, notBefore > now else { return nil }
    let seconds = Int64((notBefore - now).inSeconds.rounded(.up))
    return
      "instard starts its next run in \(Quantity.duration(microseconds: seconds * 1_000_000)); an "
      + "administrator can start it at once"
  }

  /// What keeps a store that is behind from its run until an operator, the fleet or the clock ends it.
  private func reasonForNoRun(
    _ store: String, _ entry: Entry, isAdmin: Bool, _ now: Instant, release: (Hold) -> String
  ) -> String? {
    if entry.isHeld {
      guard let hold = entry.announced?.value.hold else { return Self.unknownHold }
      return "\(hold.sentence); run: \(release(hold))"
    }
    if let key = entry.rolloutKey, let reason = rollouts[key]?.reasonOfHalt(isAdmin: isAdmin) {
      return reason
    }
    if isPaused {
      return "instard is paused; "
        + CommandText.ofAdministrator("instarctl resume", isAdmin: isAdmin)
    }
    if let watch = settings.configuration.watch(ofStore: store), hasClosedWindow(watch.path) {
      return "the window of '\(watch.path)' is closed"
    }
    if let key = entry.rolloutKey, !isPermitted(key, now) { return Self.waitsForHost(key) }
    return nil
  }

  /// The user who owns a store, as its file was last seen; `nil` where that is not known.
  func owner(of store: String) -> UInt32? {
    entries[store].flatMap { $0.owner == Entry.unknownOwner ? nil : $0.owner }
  }
}
