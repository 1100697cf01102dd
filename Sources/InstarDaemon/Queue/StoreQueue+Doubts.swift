/// Stores that are probed again although their files did not change: because plugins or holds did, or on request.
extension StoreQueue {
  mutating func doubtVerdicts() {
    probeRest.endAll()
    forgetAbsent()
    for store in entries.keys.sorted() {
      guard var entry = entries[store], !awaitsPlugins(store, entry), !entry.isDamaged else {
        continue
      }
      entry.version = nil
      entry.forgetFailures()
      entry.notBefore = nil
      entry.isRehearsed = false
      entry.wasProbed = false
      put(entry, store)
      switch entry.state {
      case .waiting, .readingVersion, .probeQueued, .recoveryQueued, .recovering:
        break
      case .resting, .pending, .runQueued:
        queueProbe(store)
      case .probing:
        enter(.probing(touched: true), store)
      case .running:
        enter(.running(inDoubt: true), store)
      }
    }
  }

  /// Has three kinds of stores probed again: stores that were held, stores that are held now and have no run, and
  /// stores in a probe that may have read their hold before it changed. Without a probe, a store would show its hold
  /// only when its run starts.
  ///
  /// - Parameter changed: Only these; `nil` for all. Any user may change holds all the time, which must not keep the
  ///   stores of others from their verdicts.
  mutating func doubtHolds(of changed: Set<String>?, held: Set<String>) {
    self.held = held
    var affected: [String] = []
    var migrated: [String] = []
    func note(_ store: String, _ entry: Entry) {
      if entry.migrations != 0 { migrated.append(store) }
      let isAffected =
        switch entry.state {
        case .probing: true
        case .pending, .runQueued: held.contains(store)
        default: entry.isHeld || held.contains(store)
        }
      if isAffected { affected.append(store) }
    }
    // The file of a hold on a path without a store may be a store elsewhere by now.
    let isElsewhere = changed?.contains { entries[$0] == nil && !held.contains($0) } ?? false
    if let changed, !isElsewhere {
      for store in changed { if let entry = entries[store] { note(store, entry) } }
    } else {
      for (store, entry) in entries
      where changed?.contains(store) ?? true || entry.isHeld && !held.contains(store) {
        note(store, entry)
      }
    }
    // An operator has restored a store, or released it. If it is behind once more, its plugin is not to blame, even if
    // the hold ended before this daemon saw it.
    for store in migrated { entries[store]?.migrations = 0 }
    for store in affected.sorted() { doubtHold(of: store, isHeld: held.contains(store)) }
  }

  mutating func doubtHold(of store: String, isHeld: Bool) {
    guard var entry = entries[store] else { return }
    if entry.isDamaged {
      // A probe does not find the damage that a run has found.
      entry.isHeld = isHeld
      return put(entry, store)
    }
    switch entry.state {
    case .probing: enter(.probing(touched: true), store)
    case .pending, .runQueued:
      entry.version = nil
      put(entry, store)
      queueProbe(store)
    case .resting, .waiting, .readingVersion:
      entry.version = nil
      if entry.isHeld { entry.forgetFailures() }
      put(entry, store)
      if case .resting = entry.state { queueProbe(store) }
    case .probeQueued, .running, .recoveryQueued, .recovering: break
    }
  }

  mutating func retry(_ stores: [String], byOperator: Bool, _ now: Instant) {
    for store in stores where canRetry(store, at: now) {
      guard var entry = entries[store] else { continue }
      entry.version = nil
      entry.restartFailureCount()
      // Whoever asks for another attempt wants to know how it ends.
      entry.reported = nil
      if byOperator { entry.notBefore = nil }
      switch entry.state {
      case .waiting(let until, let latest, _):
        entry.state = .waiting(until: until, latest: latest, before: .idle)
        put(entry, store)
      case .readingVersion:
        entry.state = .readingVersion(before: .idle)
        put(entry, store)
      default:
        put(entry, store)
        queueProbe(store)
      }
    }
  }
}
