import InstarLinux
package import InstarSchema
package import InstarWire

/// Has keepers recover runs that were cut off. A keeper probes the store, and finishes the run or discards it.
struct SupervisedRecovery: Sendable {
  let keepers: KeeperPool
  let access: KeeperAccess
  /// The time limit for a store; more for a large one.
  let limit: Duration
  /// Asks about stores before anything else does: a file system may not answer, which may be why the run was cut off.
  let reader: FileReader
  let conversation: Conversation

  /// How long a recovery may go on after its call was canceled.
  private static let canceledLimit: Duration = .seconds(3)

  /// Recovers the runs of one store, oldest first.
  ///
  /// - Parameter path: Its path in the ledger.
  /// - Throws: The first error, or `interrupted`; the runs that are left stay open.
  func recover(
    store: String, recordedAs path: StorePath, in stateFolder: StateFolder,
    onReport: (RecoveryReport) -> Void
  ) throws(InstarError) {
    var runs = OpenRuns(access: access, reader: reader)
    for record in try stateFolder.openPhasesOfOthers() {
      guard record.store == store || runs.mayBeOf(path, record) else { continue }
      do throws(InstarError) {
        // Before anything is asked: each record may be of another file system that does not answer.
        if conversation.isCanceled { throw Self.interrupted(record) }
        guard record.store == store || runs.isOf(path, record) else { continue }
        guard let ledgerPath = runs.ledgerPath(of: record) else {
          throw Supervisor.unanswered(record.store, within: reader.patience)
            .unrecovered(record.phase)
        }
        let recovered = try RunJournal.recover(
          record, in: stateFolder, recordedAs: ledgerPath, by: recover)
        if let recovered { onReport(recovered) }
      } catch {
        throw error.about("cannot recover run \(record.run) of '\(store)'", store: store)
      }
    }
  }

  private static func interrupted(_ record: PhaseRecord) -> InstarError {
    InstarError(
      .interrupted, "cannot finish the request", cause: "interrupted before the recovery",
      next: CommandText.repetition
    ).unrecovered(record.phase)
  }

  /// Has a keeper recover one run; the caller holds the run's lock.
  ///
  /// - Throws: An error with the state that the interrupted run may have left the store in. The run stays open.
  func recover(_ phase: PhaseRecord) throws(InstarError) -> RecoveryReport {
    do throws(InstarError) {
      // After its call was canceled it ends within seconds.
      let patience = conversation.isCancelWanted ? Self.canceledLimit : reader.patience
      let answers = reader.answers(about: [phase.store], patience: patience) { [access] store in
        (
          identity: Result { () throws(InstarError) in try access.identity(forRecoveryOf: store) },
          time: Supervisor.timeToReadAll(of: store)
        )
      }
      guard let (identity, time) = answers.first else {
        throw Supervisor.unanswered(phase.store, within: patience)
      }
      return try letKeeperRecover(phase, as: try identity.get(), within: limit + time)
    } catch {
      // The store of a run that is in the ledger is not in doubt.
      throw error.unrecovered(phase.isInLedger == true ? .cloning : phase.phase)
    }
  }

  private func letKeeperRecover(
    _ phase: PhaseRecord, as identity: ProcessIdentity, within limit: Duration
  ) throws(InstarError) -> RecoveryReport {
    let session = try keepers.take(as: identity)
    let answer: Result<RecoveryReport, InstarError>
    do throws(InstarError) {
      try session.send(.recover(phase))
      answer = try self.answer(session, about: phase, within: limit)
    } catch {
      session.kill()
      throw error
    }
    keepers.giveBack(session)
    return try answer.get()
  }

  private func answer(
    _ session: KeeperSession, about phase: PhaseRecord, within wholeLimit: Duration
  ) throws(InstarError) -> Result<RecoveryReport, InstarError> {
    let start = ContinuousClock.now
    while true {
      let limit = conversation.isCancelWanted ? Self.canceledLimit : wholeLimit
      guard ContinuousClock.now < start + limit else { throw Supervisor.overdue(limit) }
      switch try session.next(deadline: min(start + limit, .now + .milliseconds(500))) {
      case nil: continue
      case .recovered(let report) where report.run == phase.run && report.store == phase.store:
        return .success(report)
      case .failed(let error): return .failure(error)
      case .run: continue
      case .described, .probed, .schema, .planned, .verified, .ask, .finished, .recovered, .copied,
        .done:
        throw unexpectedEvent()
      }
    }
  }
}

extension InstarError {
  /// The error of a recovery that did not take place, with the state of the store.
  ///
  /// Whoever threw it has not changed the store, and may say so. But after the phase `cutover` was entered, only a
  /// keeper that has read the store knows its content.
  fileprivate func unrecovered(_ phase: Phase) -> InstarError {
    switch phase {
    case .cloning:
      return about(state: "unchanged; the folder '.instar' beside it still holds files of the run")
    case .cutover:
      if [.corruptStore, .notAStore].contains(code), state != nil { return self }
      var error = self
      error.state = "\(Self.inDoubt); the backup is kept"
      return error
    }
  }
}

extension PhaseRecord {
  /// The command that makes the run again; its record does not have the options.
  fileprivate var command: String {
    if let restoredRun { return CommandText.restore(store, run: restoredRun) }
    var command = MigrationCommand(store: store, plugins: [plugin].compactMap(\.self))
    if rehearses == true { command.name = .rehearse }
    return command.text
  }
}

extension RunReport {
  /// The report of a recovered run, for the ledger.
  ///
  /// - Parameter cause: Why the run was cut off; by default because its supervisor ended.
  package init(of recovered: RecoveryReport, phase: PhaseRecord, cause: InstarError? = nil) {
    self.init(run: phase.run, store: phase.store, result: .failed, startedAt: phase.startedAt)
    plan = phase.plan
    plugin = phase.plugin
    from = phase.from
    to = phase.to
    restoredRun = phase.restoredRun
    if phase.rehearses == true { rehearsal = Rehearsal() }
    let cause =
      cause
      ?? InstarError(
        .interrupted, "cannot finish run \(phase.run)", store: phase.store,
        cause: "the process that supervised the run ended before the run did",
        next: "run: \(phase.command)")
    switch recovered.outcome {
    case .finished:
      result = phase.restoredRun == nil ? .migrated : .restored
      backup = recovered.backup
      cutover = recovered.cutover
      manifest = backup == nil ? nil : recovered.manifest ?? phase.manifest
      copyTo = backup == nil ? nil : phase.copyTo
      notes = [
        "a recovery finished this run, which was interrupted during the cutover (\(cause.cause))"
      ]
    case .discarded:
      error = cause.about(store: phase.store)
      backup = recovered.backup
      manifest = backup == nil ? nil : recovered.manifest ?? phase.manifest
      error?.state = "unchanged"
      let hasOtherVersion = phase.phase == .cutover && recovered.version != phase.declaredVersion
      if backup != nil || hasOtherVersion {
        let version = recovered.version.map { "at version \($0)" } ?? "without a version"
        let kept = backup.map { "; backup kept at \($0)" } ?? ""
        error?.state = "\(version), changed by another process since the run\(kept)"
      }
      if phase.restoredRun != nil, backup != nil {
        notes = [Self.keptHold("before it was changed", phase)]
      }
    case .storeMissing:
      error = InstarError(
        .missingStore, "cannot recover '\(phase.store)'", store: phase.store,
        cause: "the file no longer exists; \(cause.cause)", state: "missing",
        next: recovered.backup.map { _ in
          "if the store was not moved on purpose, run: "
            + CommandText.restore(phase.store, run: phase.run)
            + " --to \(CommandText.quoted(phase.store))"
        })
      backup = recovered.backup
      manifest = backup == nil ? nil : phase.manifest
      if phase.restoredRun != nil, backup != nil {
        notes = [Self.keptHold("before it was gone", phase)]
      }
    }
    notes += recovered.notes ?? []
  }

  private static func keptHold(_ time: String, _ phase: PhaseRecord) -> String {
    "the store may have been restored \(time), so the hold of this restore stays; "
      + "to let instard migrate the store, run: \(CommandText.release(phase.store))"
  }
}
