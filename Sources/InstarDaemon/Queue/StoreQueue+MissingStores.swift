import InstarConfiguration

/// Stores that go missing, come back, or get new paths because a folder was moved.
extension StoreQueue {
  struct AbsentStore {
    var entry: Entry
    var endedTurn: Rollout.EndedTurn?
  }

  private static let absentLimit = 100_000

  /// Removes a missing store from the queue. Its file system may only be unmounted, so facts that a probe cannot find
  /// again are kept: whether it is quarantined, and its result in its rollout.
  mutating func setAside(_ store: String) {
    guard let entry = entries[store] else { return }
    let endedTurn = entry.rollout.flatMap { rollouts[$0]?.ended(store) }
    remove(store)
    guard entries[store] == nil, entry.version != nil, entry.failures > 0 || endedTurn != nil else {
      return
    }
    // Damaged stores are forgotten too, because an owner may create them without end.
    if absent.count >= Self.absentLimit { forgetAbsent(keepingDamaged: false) }
    absent[store] = AbsentStore(entry: entry, endedTurn: endedTurn)
  }

  /// Restores a store that was missing, if its file has not changed.
  mutating func bringBack(_ store: String, _ version: WatchedVersion) -> Bool {
    guard let known = absent.removeValue(forKey: store) else { return false }
    guard known.entry.version == version.digest else {
      if known.entry.isQuarantined { changedQuarantines.insert(store) }
      return false
    }
    var entry = known.entry
    entry.owner = version.owner
    if let key = entry.rollout, let endedTurn = known.endedTurn {
      rollouts[key]?.bringBack(store, endedTurn)
    } else {
      rejoinRollout(store, &entry)
    }
    switch entry.state {
    // The quarantine or wait of the store continues. A step that was in progress when the store went missing begins
    // again below.
    case .waiting(_, _, let reason), .readingVersion(let reason), .resting(let reason):
      entry.state = .resting(reason)
      put(entry, store)
      // Its record is on disk.
      changedQuarantines.remove(store)
      // The hold may have come or gone meanwhile, and the record of a damaged store does not say whether it is held.
      let isHeld = held.contains(store)
      if isHeld || entry.isHeld { doubtHold(of: store, isHeld: isHeld) }
    default:
      put(entry, store)
      queueProbe(store)
    }
    return true
  }

  /// Gives the stores in a folder their new paths, or forgets those that no watch has there. A run goes on under the
  /// old path, and a store that is probed is probed again.
  mutating func move(from old: String, to new: String, _ now: Instant) {
    let prefix = old + "/"
    for (store, var entry) in entries where store.hasPrefix(prefix) {
      let path = new + "/" + store.dropFirst(prefix.count)
      switch entry.state {
      case .running, .recoveryQueued, .recovering: continue
      default: break
      }
      guard entries[path] == nil, !entry.isInterrupted else { continue }
      let endedTurn = entry.rollout.flatMap { rollouts[$0]?.ended(store) }
      remove(store)
      guard let watch = settings.configuration.watch(ofStore: path) else { continue }
      if let key = entry.rollout, let endedTurn {
        rollouts[key]?.bringBack(path, endedTurn)
        rollouts[key]?.noteWatch(watch.path, of: path)
      }
      switch entry.state {
      case .resting: put(entry, path)
      default:
        entry.version = nil
        entry.state = wait(now, before: .idle)
        put(entry, path)
      }
    }
  }
}
