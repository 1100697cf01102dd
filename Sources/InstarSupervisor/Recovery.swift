import InstarLinux
import InstarSchema
import InstarWire

/// Finishes or clears away runs that were cut off: a keeper looks at the store and does it; what it
/// found is noted in the ledger.
struct Recovery: Sendable {
  let stateFolder: StateFolder
  let keepers: KeeperPool
  let access: KeeperAccess

  func recoverAll(
    onReport: (RecoveryReport) -> Void, onError: (InstarError) -> Void
  ) throws(InstarError) {
    let (records, unreadable) = try stateFolder.openPhases()
    for error in unreadable { onError(error) }
    for record in records {
      do throws(InstarError) {
        // Its supervisor lives: it looks after its run itself.
        guard let lock = try stateFolder.tryLock(run: record.run) else { continue }
        defer { stateFolder.unlock(run: record.run, lock) }
        // It may have ended in the meantime.
        guard let phase = try stateFolder.phase(of: record.run) else { continue }
        let recovered = try recover(phase)
        try stateFolder.append(
          Self.report(of: recovered, phase: phase, cause: Self.cutOff(phase)))
        try stateFolder.close(run: phase.run)
        onReport(recovered)
      } catch {
        onError(error.about(store: record.store))
      }
    }
  }

  /// Has a keeper recover one run, whose lock the caller holds.
  func recover(_ phase: PhaseRecord) throws(InstarError) -> RecoveryReport {
    let session = try keepers.take(as: access.identity(forRecoveryOf: phase.store))
    let answer: Result<RecoveryReport, InstarError>
    do throws(InstarError) {
      try session.send(.recover(phase))
      answer = try Self.answer(session, about: phase)
    } catch {
      session.kill()
      throw error
    }
    keepers.giveBack(session)
    return try answer.get()
  }

  private static func answer(
    _ session: KeeperSession, about phase: PhaseRecord
  ) throws(InstarError) -> Result<RecoveryReport, InstarError> {
    while true {
      switch try Supervisor.nextEvent(session) {
      case .recovered(let report) where report.run == phase.run && report.store == phase.store:
        return .success(report)
      case .failed(let error): return .failure(error)
      case .run: continue
      case .described, .probed, .schema, .planned, .ask, .finished, .recovered, .done:
        throw unexpected()
      }
    }
  }

  /// A recovered run, as the ledger has it.
  ///
  /// - Parameter cause: Why it had to be recovered.
  static func report(
    of recovered: RecoveryReport, phase: PhaseRecord, cause: InstarError
  ) -> RunReport {
    var report = RunReport(
      run: phase.run, store: phase.store, result: .failed, startedAt: phase.startedAt)
    report.plan = phase.plan
    report.plugin = phase.plugin
    report.from = phase.from
    report.to = phase.to
    switch recovered.outcome {
    case .finished:
      report.result = .migrated
      report.backup = recovered.backup ?? phase.backup
      report.notes = [
        "finished by a recovery: the run was cut off while it wrote the store back (\(cause.cause))"
      ]
    case .clearedAway:
      var error = cause.about(store: phase.store)
      error.state = "unchanged"
      report.error = error
      report.backup = recovered.backup
    case .storeMissing:
      report.error = InstarError(
        .missingStore, "cannot recover '\(phase.store)'", store: phase.store,
        cause: "there is no such file any more; \(cause.cause)", state: "missing",
        next: phase.backup.map { "its backup was '\($0)'" })
      report.backup = phase.backup
    }
    return report
  }

  private static func cutOff(_ phase: PhaseRecord) -> InstarError {
    InstarError(
      .interrupted, "the run \(phase.run) was cut off", store: phase.store,
      cause: "the process that supervised it has ended", next: "start it again")
  }
}
