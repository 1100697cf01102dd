import InstarSchema
import InstarSupervisor
import InstarWire

/// Probes: which stores are probed together, and what follows from each verdict.
extension StoreQueue {
  /// Starts the next batch of probes, unless one is in progress.
  mutating func beginProbes(_ now: Instant, _ actions: inout [Action]) {
    guard probesOut == nil, !probeRest.isForAll(at: now) else { return }
    let batch = nextBatch(now)
    guard !batch.isEmpty else { return }
    probesOut = batch
    batchWasAnswered = false
    actions.append(.probe(batch))
  }

  /// Takes stores of the owner who has waited longest from `probeQueue`; none where no store waits.
  private mutating func nextBatch(_ now: Instant) -> [String] {
    let rest = probeRest
    while let owner = probeQueue.nextOwner([:], where: { !rest.isFor($0, at: now) }) {
      var batch: [String] = []
      var plans: [String]?
      while batch.count < settings.probeBatch, let next = probeQueue.first(of: owner) {
        // One request has one selection of plans.
        let wanted = settings.plans(ofStore: next)
        guard plans == nil || plans == wanted else { break }
        guard let store = probeQueue.popFirst(of: owner),
          case .probeQueued? = entries[store]?.state
        else { continue }
        plans = wanted
        enter(.probing(touched: false), store)
        batch.append(store)
      }
      if !batch.isEmpty {
        ownerOfProbes = owner
        return batch
      }
    }
    return []
  }

  /// Removes a store from the batch of probes in progress. `false` if the batch does not contain it.
  mutating func answer(_ store: String) -> Bool {
    // Answers come in the order of the batch, so the store is at its beginning.
    guard let place = probesOut?.firstIndex(of: store) else { return false }
    probesOut?.remove(at: place)
    batchWasAnswered = true
    return true
  }

  mutating func probed(
    _ report: ProbeReport, _ before: WatchedVersion?, _ after: WatchedVersion?, _ now: Instant,
    _ actions: inout [Action]
  ) {
    let store = report.store
    guard answer(store), var entry = entries[store], case .probing(let touched) = entry.state
    else { return }
    guard let after else {
      remove(store)
      return
    }
    let hasChanged = before != after
    if Self.mayBeOutdated(report, touched: touched, hasChanged: hasChanged) {
      entry.version = nil
      entry.state = wait(now, before: .idle)
      put(entry, store)
      return
    }
    entry.wasProbed = true
    let known = (hasChanged ? before : after)?.digest
    if entry.version != known {
      if Self.isUntried(report, file: known, entry) {
        entry.restartFailureCount()
      } else {
        entry.forgetFailures()
      }
    }
    entry.version = known
    entry.weight = RunWeight(storeBytes: report.sizeBytes)
    if [.unknown, .unreadable].contains(report.state), report.format == nil {
      // The keeper died, or could not read the store. That may pass.
      reportProbeFailure(report, &entry, now, &actions)
      noteProbeFailure(store, &entry, now, &actions)
    } else {
      // A probe that succeeds ends what earlier ones failed for, and not damage that only a run finds.
      let isRead = report.state != .busy && entry.reported?.state != .corrupt
      if entry.reported != nil, isRead || report.state == .current { entry.reported = nil }
      announce(report, file: known, &entry, &actions)
      entry.isHeld = report.hold != nil
      follow(report, &entry, now, &actions)
    }
    put(entry, store)
  }

  /// Whether a verdict may concern an earlier content of the file.
  private static func mayBeOutdated(
    _ report: ProbeReport, touched: Bool, hasChanged: Bool
  ) -> Bool {
    switch report.state {
    case .behind: touched && report.hold != nil
    case .busy: false
    case .current: touched
    default: touched || hasChanged
    }
  }

  /// Whether a store that is still behind was not tried again since its last failure. Damage must be that of this file.
  private static func isUntried(_ report: ProbeReport, file known: Int?, _ entry: Entry) -> Bool {
    guard report.state == .behind, report.hold == nil else { return false }
    switch entry.announced?.value.state {
    case .behind: return true
    case .corrupt: return entry.announcedFile == UInt32(truncatingIfNeeded: known ?? 0)
    default: return false
    }
  }

  /// Decides what a probed store does next.
  private mutating func follow(
    _ report: ProbeReport, _ entry: inout Entry, _ now: Instant, _ actions: inout [Action]
  ) {
    let store = report.store
    switch report.state {
    case .behind where entry.isHeld:
      entry.migrations = 0
      leaveRollout(store, &entry)
      entry.state = .resting(.idle)
    case .behind:
      if entry.migrations > 0 {
        // Migrated a moment ago and behind again: somebody restores an old file each time, or the
        // plugin does not do what it declares. Each run leaves a backup, so this must not spin.
        entry.notBefore = max(entry.notBefore ?? now, now + backOff(failures: entry.migrations))
      }
      if let notBefore = entry.notBefore, notBefore > now {
        entry.state = .resting(.backingOff(until: notBefore))
      } else if place(report, &entry) {
        entry.state = .runQueued
        runQueue.append(store, to: entry.owner)
      } else {
        entry.state = .pending
      }
    case .busy:
      entry.failures += 1
      entry.state = restAfterBusy(entry, now)
      if entry.state == .resting(.quarantined) { reportQuarantine(report, &entry, &actions) }
      noteProbeFailure(store, &entry, now, &actions)
    case .current:
      endTurn(report, &entry)
      entry.forgetFailures()
      entry.migrations = 0
      entry.state = .resting(.idle)
    case .ahead, .unversioned, .unknown, .notAStore, .corrupt, .encrypted, .unreadable:
      leaveRollout(store, &entry)
      entry.migrations = 0
      entry.state = .resting(.idle)
    }
  }

  mutating func probesEnded(
    _ error: InstarError?, _ now: Instant, _ actions: inout [Action]
  ) {
    guard let left = probesOut else { return }
    probesOut = nil
    for store in left {
      if case .probing? = entries[store]?.state { queueProbe(store) }
    }
    let error =
      error
      ?? (batchWasAnswered ? nil : left.first).map {
        InstarError(
          .protocolViolation, "cannot probe '\($0)'", store: $0,
          cause: "the keeper stopped answering before this store", state: "unchanged",
          next: InstarError.adviceOnOtherVersion)
      }
    guard let error else { return probeRest.end(of: ownerOfProbes) }
    // A store that kills its keeper has an answer that says so. So this error concerns all stores of the owner, or of
    // everybody: no keeper can be started, or a plugin cannot be used after all.
    let delay = probeRest.begin(
      error, of: ownerOfProbes, wasAnswered: batchWasAnswered, at: now, retry: settings.retry)
    noteDeadline(now + delay)
    if !isStopping { actions.append(.reportProbesFailure(error, .retry(after: delay))) }
  }

  private static let announcementLimit = 1000

  /// Keeps a verdict, and reports it unless it is the last one on this file.
  mutating func announce(
    _ report: ProbeReport, file known: Int?, _ entry: inout Entry, _ actions: inout [Action]
  ) {
    let announcement = Announcement(report)
    let isAnyFile = report.state == .current || report.hold != nil
    let file = isAnyFile ? 0 : UInt32(truncatingIfNeeded: known ?? 0)
    var last = entry.announced?.value
    last?.plugin = report.plugin
    last?.holders = announcement.holders
    if entry.announced?.value != announcement { entry.announced = shared(announcement) }
    guard last != announcement || entry.announcedFile != file else { return }
    entry.announcedFile = file
    actions.append(.reportProbe(report))
  }

  private mutating func shared(_ announcement: Announcement) -> SharedValue<Announcement> {
    if let known = announcements[announcement] { return known }
    // Reasons may name the store. Then no two announcements are equal, so their number is limited.
    if announcements.count >= Self.announcementLimit { announcements = [:] }
    let new = SharedValue(announcement)
    announcements[announcement] = new
    return new
  }
}
