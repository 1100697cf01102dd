internal import Foundation
internal import InstarSchema
internal import InstarWire

// The steps that a migration and a restore report in the same way.

extension RunReport {
  /// The report of a run that begins now: refused, until the run does more than to inspect the store.
  init(ofNewRun run: String, store: String) {
    self.init(
      run: run, store: store, result: .refused, startedAt: Date().timeIntervalSince1970)
  }

  /// Returns the record of a phase that the run is to enter.
  func record(_ phase: Phase) -> PhaseRecord {
    var record = PhaseRecord(run: run, store: store, phase: phase, startedAt: startedAt)
    record.plugin = plugin
    record.plan = plan
    record.from = from
    record.to = to
    record.restoredRun = restoredRun
    return record
  }

  /// Returns an event of the run.
  func event(_ step: RunEvent.Step) -> RunEvent {
    var event = RunEvent(run: run, store: store, step: step)
    event.plan = plan
    event.plugin = plugin
    event.from = from
    event.to = to
    return event
  }

  /// Notes the error that ended the run, and the processes that have a busy store open.
  ///
  /// - Parameter mayHaveBackup: Whether the run reached its cutover, before which an error leaves no backup.
  mutating func fail(with error: InstarError, mayHaveBackup: Bool) {
    var known = error
    if known.code == .busyStore { holders = known.nameHolders(of: store) }
    self.error = known
    if mayHaveBackup { return }
    backup = nil
    manifest = nil
  }

  /// Notes the end of the run.
  ///
  /// - Parameters:
  ///   - start: When the run began.
  ///   - paths: Where the run made its files; `nil` where it made none.
  ///   - backupFolder: The folder of its backup, where that is not `.instar/`.
  mutating func end(
    since start: ContinuousClock.Instant, in paths: StorePaths?, backupFolder: String? = nil
  ) {
    leftovers = paths.flatMap { leftovers(in: $0, backupFolder) }
    durationMicroseconds = start.duration(to: .now).inMicroseconds
  }

  /// The files that the run should have removed. `nil` for a run in doubt, which keeps the files for its recovery.
  private func leftovers(in paths: StorePaths, _ backupFolder: String?) -> [String]? {
    if error?.isInDoubt == true { return nil }
    let removed = backup == nil ? paths.backup(run, in: backupFolder ?? paths.instarFolder) : nil
    let found = paths.leftovers(ofRun: run, removedBackup: removed)
    return found.isEmpty ? nil : found
  }
}

extension InstarError {
  /// Adds the state of the store after a run that failed: unchanged, unless the error knows better.
  ///
  /// - Parameter backup: The backup that the run keeps; `nil` without one.
  mutating func nameState(keeping backup: String?) {
    if code != .missingStore { state = state ?? "unchanged" }
    if let backup { state = (state ?? "") + "; backup kept at \(backup)" }
  }
}
