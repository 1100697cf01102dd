import Foundation
import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// What of a rollout outlives the daemon.
extension Rollout {
  /// Both clocks at one moment.
  struct Moment: Sendable {
    /// Of `StoreQueue`.
    var instant: Instant
    /// In seconds since 1970.
    var seconds: Double

    static var now: Moment {
      Moment(instant: .now, seconds: Date().timeIntervalSince1970)
    }

    func seconds(of other: Instant) -> Double { seconds + (other - instant).inSeconds }
    /// Limits a time that is many years away, as a damaged file may have it, so that the conversion does not overflow.
    func instant(of other: Double) -> Instant {
      instant + .seconds(max(-1e9, min(1e9, other - seconds)))
    }
  }

  /// The record that outlives the daemon.
  mutating func record(at now: Moment) -> RolloutRecord {
    let began = began ?? now.seconds
    self.began = began
    // It is recorded when a wave opens, before the first run of the wave. A wave that is skipped has no run.
    while openings.count < wave { openings.append(now.seconds) }
    return RolloutRecord(
      plan: plan, version: version, plugin: plugin, began: began, wave: wave, openings: openings,
      soakEnds: soakEnds.map(now.seconds), isFinished: isFinished, halt: halt,
      forgiven: forgiven.sorted(), isApproved: isApproved, approvedStores: approvedStores.sorted())
  }

  /// A rollout that an earlier daemon began.
  ///
  /// - Parameters:
  ///   - runs: The results of its runs, from the ledger.
  ///   - isQuarantined: Whether nothing is tried again on a store before a change.
  init(
    _ record: RolloutRecord, settings: RolloutSettings, runs: [RolloutRun], at now: Moment,
    isQuarantined: (String) -> Bool
  ) {
    self.init(
      plan: record.plan, version: record.version, plugin: record.plugin, settings: settings)
    began = record.began
    wave = max(0, min(record.wave, steps.count))
    if wave < steps.count { soakEnds = record.soakEnds.map(now.instant) }
    halt = record.halt
    isFinished = record.isFinished
    forgiven = Set(record.forgiven)
    isApproved = record.isApproved
    approvedStores = Set(record.approvedStores)
    openings = Array(record.openings.prefix(wave))
    for run in runs {
      let isQuarantined = isQuarantined(run.store)
      guard let turn = Self.turn(after: run.result, run.code, isQuarantined: isQuarantined)
      else { continue }
      set(run.store, turn)
      // A rollout finishes only after the first probes of its migrated stores.
      stores.setAwaitsProof(turn == .migrated && !isFinished, of: run.store)
      let past = openings.lastIndex { $0 <= run.firstStartedAt }
      if let past, wave > 0 { stores.setWave(past + 1, of: run.store) }
    }
  }

  /// Records that a store is quarantined, for a failure that the ledger does not have: of a rehearsal, or of a store
  /// that was busy at each attempt.
  mutating func restoreQuarantine(of store: String, _ code: InstarError.Code?) {
    guard let turn = Self.turn(after: .failed, code, isQuarantined: true) else { return }
    set(store, turn)
  }
}
