import Foundation
import InstarSchema
import InstarWire

/// What becomes of each store: it comes, it has its run, it leaves.
extension Rollout {
  /// Adds a store that is behind.
  ///
  /// - Returns: Whether the store may run now, because it has had its turn. Otherwise it waits for `admitNext`.
  mutating func add(_ store: String, wave: Int, needsApproval: Bool) -> Bool {
    let isUnapproved = needsApproval && !isApproved && !approvedStores.contains(store)
    switch stores[store]?.turn {
    case .waiting?, .deferred?, nil: break
    // The policy is new, and nobody has approved another run.
    case _ where isUnapproved: break
    // A halt came before its first run: its turn comes again, first of all.
    case .admitted? where halt != nil: break
    case .admitted?, .migrated?, .failed?:
      if halt != nil { waitingForHaltToEnd.insert(store) }
      return halt == nil
    }
    let place = RolloutTable.Place(store, wave: wave, needsApproval: isUnapproved)
    guard stores[store]?.place != place else { return false }
    set(store, .waiting)
    stores.enqueue(place)
    return false
  }

  /// Records how a run ended.
  ///
  /// - Parameter isQuarantined: Nothing is tried again before a change.
  /// - Returns: Whether this result halts the rollout.
  mutating func note(_ report: RunReport, isQuarantined: Bool) -> Bool {
    guard has(report.store) else { return false }
    let turn = Self.turn(
      after: report.result, report.error?.code, isQuarantined: isQuarantined)
    switch turn {
    case .migrated?: stores.setAwaitsProof(true, of: report.store)
    case .failed?:
      set(report.store, .failed)
      return haltIfOverBudget(at: report.startedAt + Double(report.durationMicroseconds) / 1e6)
    case let turn?: set(report.store, turn)
    case nil: leave(report.store)
    }
    return false
  }

  /// The turn of a store after its run; `nil` for a hold, which removes the store from the rollout.
  static func turn(
    after result: RunReport.Result, _ code: InstarError.Code?, isQuarantined: Bool
  ) -> Manager.Turn? {
    switch result {
    case .migrated: return .migrated
    case .restored: return nil
    case .busy: return isQuarantined ? .failed : .deferred
    case .current, .rehearsed: return .admitted
    case .failed, .refused:
      if code == .heldStore { return nil }
      let isHopeless = RetryPolicy(for: code) == .never
      return (isQuarantined || isHopeless) && !isAboutPlugin(code) ? .failed : .deferred
    }
  }

  /// Whether an error is not about the store: its plugin is being replaced, or is no longer trusted.
  private static func isAboutPlugin(_ code: InstarError.Code?) -> Bool {
    [.notAPlugin, .wrongABI, .untrustedPlugin, .unsignedPlugin, .missingPlugin].contains(code)
  }

  /// Records that a store cannot be probed, so that no wave waits for it.
  ///
  /// A quarantined store that has had no turn leaves the rollout: its owner must not halt the rollout, nor take the
  /// place of the canary.
  ///
  /// - Parameter code: Why the store cannot be probed.
  /// - Returns: Whether that halted the rollout.
  mutating func putOff(_ store: String, isQuarantined: Bool, by code: InstarError.Code?) -> Bool {
    guard let entry = stores[store] else { return false }
    switch entry.turn {
    // An earlier daemon migrated the store. The ledger has the run, but not what the probe after it found.
    case .migrated where entry.awaitsProof && code == .keeperDied: break
    case .migrated, .failed: return false
    case .deferred where !isQuarantined: return false
    case .waiting, .admitted, .deferred: break
    }
    let hadTurn = entry.wave > 0
    guard isQuarantined else {
      set(store, .deferred)
      stores.setAwaitsProof(entry.awaitsProof, of: store)
      if !hadTurn { stores.setWave(0, of: store) }
      return false
    }
    if entry.awaitsProof, code != .keeperDied {
      // The ledger says that its run succeeded. The plan did not fail because the file is locked now or has other
      // rights. But it failed if the store ends its keeper.
      set(store, .migrated)
      return false
    }
    guard hadTurn else {
      leave(store)
      return false
    }
    set(store, .failed)
    return haltIfOverBudget(at: Date().timeIntervalSince1970)
  }

  /// Records that a store was found current.
  mutating func foundCurrent(_ store: String) {
    guard let entry = stores[store] else { return }
    if entry.awaitsProof {
      set(store, .migrated)
    } else if entry.turn != .migrated {
      leave(store)
    }
  }

  /// Records that a run of an earlier daemon migrated a store.
  mutating func recovered(_ store: String) { set(store, .migrated) }

  /// Removes a store that is gone, or that is no longer behind although it had no run.
  mutating func leave(_ store: String) { stores.remove(store) }

  /// Records the path of the watch that a store belongs to.
  mutating func noteWatch(_ path: String?, of store: String) {
    stores.setWatch(path, of: store)
  }

  /// What the rollout knows of a store that was migrated or failed. A store that leaves can come back with it.
  struct EndedTurn: Sendable {
    fileprivate var entry: RolloutTable.Entry
    fileprivate var isForgiven: Bool
  }

  /// The result of a store that was migrated or failed; `nil` for others.
  func ended(_ store: String) -> EndedTurn? {
    guard let entry = stores[store], [.migrated, .failed].contains(entry.turn) else {
      return nil
    }
    return EndedTurn(entry: entry, isForgiven: forgiven.contains(store))
  }

  /// Adds a store again that left the rollout after its turn.
  mutating func bringBack(_ store: String, _ ended: EndedTurn) {
    stores.bringBack(store, ended.entry)
    if ended.isForgiven { forgiven.insert(store) }
  }

  /// Forgets what operators and owners ordered for a store that is gone: its owner may make and approve others without
  /// end.
  mutating func forgetOrders(for store: String) {
    guard !has(store) else { return }
    approvedStores.remove(store)
    forgiven.remove(store)
  }

  /// Gives a store a turn. A store that waits again continues a rollout that was finished before its last wave.
  mutating func set(_ store: String, _ turn: Manager.Turn) {
    stores.set(store, turn, in: wave)
    if turn == .waiting, wave < steps.count { isFinished = false }
  }
}
