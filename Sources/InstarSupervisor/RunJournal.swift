import Foundation
import InstarLinux
package import InstarSchema
package import InstarWire
import Synchronization

/// One run in the state folder, from its lock to its line in the ledger: the only writer of both.
///
/// ```text
/// locked ──enter──▶ open: a phase is on disk ──finish──▶ closed
///    └───────────────────finish────────────────────────────▲
/// ```
///
/// Invariants, in the order in which they make every crash recoverable:
/// 1. The lock is held from before the first phase until after the end: nobody recovers a run whose supervisor lives.
/// 2. A phase is on disk when `enter` returns. Only then may the keeper take the step that the phase announces.
/// 3. The report is on disk in the ledger before the phase record is removed. A crash between the two, or a loss of
///    power, leaves the record of a run that has ended. A migration is not recovered then: others may have changed the
///    store since. Only its files are removed, which a loss of power may have brought back. A restore is recovered once
///    more, which finds nothing to do. Its line in the ledger stays the only one.
/// 4. A report that cannot be written leaves the phase record in place: the next recovery writes the report.
package final class RunJournal {
  private let folder: StateFolder
  private let run: String
  private let lock: FolderLock
  /// Whether an earlier supervisor began the run, which may have written the report.
  private let isRecovery: Bool
  /// The phase on disk; `nil` before the first `enter` and after `finish`.
  package private(set) var phase: PhaseRecord?

  private init(_ folder: StateFolder, run: String, lock: FolderLock, isRecovery: Bool) {
    self.folder = folder
    self.run = run
    self.lock = lock
    self.isRecovery = isRecovery
  }

  /// Locks a new run.
  ///
  /// - Throws: `stateFolderFailed` if a run with this identifier is in progress.
  package static func start(
    run: String, store: String, in folder: StateFolder
  ) throws(InstarError) -> RunJournal {
    guard let lock = try lockNew(run: run, in: folder) else {
      throw InstarError(
        .stateFolderFailed, "cannot start run \(run)", store: store,
        cause: "another run with this identifier is in progress", state: "unchanged",
        next: CommandText.repetition)
    }
    return RunJournal(folder, run: run, lock: lock, isRecovery: false)
  }

  /// - Returns: `nil` if another run has the identifier.
  private static func lockNew(
    run: String, in folder: StateFolder
  ) throws(InstarError) -> FolderLock? {
    // Before the run has a file, so that this process does not take that for a leftover.
    guard folder.ownRuns.withLock({ $0.insert(run).inserted }) else { return nil }
    var lock: FolderLock?
    defer { if lock == nil { folder.removeOwnRun(run) } }
    // Another process may do so, and then has the lock for a moment.
    let end = ContinuousClock.now + momentOfRemoval
    lock = try folder.takeUnusedFile(for: run)
    if lock == nil { lock = try folder.tryLock(run: run) }
    while lock == nil, ContinuousClock.now < end {
      usleep(5000)
      lock = try folder.tryLock(run: run)
    }
    return lock
  }

  private static let momentOfRemoval = Duration.milliseconds(500)

  /// Recovers a run whose supervisor has ended, and writes its report.
  ///
  /// - Parameters:
  ///   - path: The path of the store in the ledger.
  ///   - recover: Finishes the run or discards it; of a run that is in the ledger, removes its files.
  /// - Returns: `nil` if the run's supervisor lives, or the run has ended. Of a run in the ledger, a report only where
  ///   files could not be removed.
  package static func recover(
    _ record: PhaseRecord, in folder: StateFolder, recordedAs path: StorePath,
    by recover: (PhaseRecord) throws(InstarError) -> RecoveryReport
  ) throws(InstarError) -> RecoveryReport? {
    guard let lock = try folder.tryLock(run: record.run) else { return nil }
    let journal = RunJournal(folder, run: record.run, lock: lock, isRecovery: true)
    defer { journal.unlock() }
    // Read again under the lock: the run may have ended in the meantime.
    guard var phase = try folder.phase(of: record.run) else { return nil }
    phase.isInLedger = nil
    phase.hasNoBackup = nil
    if phase.restoredRun == nil, try folder.hasRun(phase.run) {
      phase.isInLedger = true
      if phase.phase == .cloning, try folder.provesNoBackup(ofRun: phase.run) {
        phase.hasNoBackup = true
      }
      var removal: RecoveryReport?
      do throws(InstarError) {
        removal = try recover(phase)
      } catch  where error.code == .missingStore {
        // The files went with the folder. If its file system is only not mounted, the store's next run removes them.
      }
      // Files that stay must not keep the store from its next run.
      try journal.close(phase)
      return removal?.leftovers == nil ? nil : removal
    }
    journal.phase = phase
    var recovered = try recover(phase)
    recovered.restoredRun = phase.restoredRun
    var report = RunReport(of: recovered, phase: phase)
    report.error = report.error.map { folder.completing($0) }
    try journal.finish(report, recordedAs: path)
    return recovered
  }

  /// Writes a phase to disk.
  package func enter(_ phase: PhaseRecord) throws(InstarError) {
    try folder.record(phase)
    self.phase = phase
  }

  /// Appends the report to the ledger, then removes the phase record. Removes the hold of a restore that left the store
  /// as it was. Where the backup is kept, another process changed the store since, and nobody knows whether it was
  /// restored: the hold stays, else instard might migrate a restored store again.
  ///
  /// A store that was current is left out of the ledger: a daemon probes it often, and nothing was done. So are a
  /// rehearsal, and a run on a path without a file, which a person mistyped.
  ///
  /// - Parameter path: The path of the store in the ledger.
  package func finish(_ report: RunReport, recordedAs path: StorePath) throws(InstarError) {
    if report.result != .current, report.rehearsal == nil, phase != nil || !report.isAboutNoStore {
      try folder.append(report, recordedAs: path, mayBeThere: isRecovery)
    }
    guard let phase else { return }
    if phase.restoredRun != nil, report.result != .restored, report.backup == nil {
      try folder.releaseHold(ofRun: run)
    }
    try close(phase)
    folder.runsLeftOpen.withLock { $0[run] = nil }
    self.phase = nil
  }

  /// Removes the phase record, once the removals of the run's files are on disk.
  private func close(_ phase: PhaseRecord) throws(InstarError) {
    let besideStore = InstarFolder.path(besideStore: phase.store)
    let backups = phase.backup?.parentFolder
    for place in Set([besideStore, backups ?? besideStore]) {
      folder.synchronizeRemovals(in: place)
    }
    // A loss of power may bring the record back. Then the ledger tells that the run has ended. A restore is recovered
    // once more, and recognized by its rows, which an app may change: so its removal is on disk first.
    try folder.close(run: run, isDurable: phase.restoredRun != nil)
  }

  /// Releases the lock; the last call on a journal.
  package func unlock() {
    if let phase { folder.runsLeftOpen.withLock { $0[run] = phase.store } }
    folder.unlock(run: run, lock)
  }

  deinit { folder.removeOwnRun(run) }
}

extension RunReport {
  /// Whether the run, which was to migrate a store, found no file at its path.
  fileprivate var isAboutNoStore: Bool {
    result == .refused && restoredRun == nil && error?.code == .missingStore
  }
}
