import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// The supervisor's side of one run: sends the request, passes events on, and answers each question of the keeper once
/// the `RunJournal` has the phase on disk.
///
/// If the keeper dies or is killed, another keeper recovers the run before the journal is finished.
struct Run: Sendable {
  let request: RunRequest
  let ledgerPath: StorePath
  let stateFolder: StateFolder
  let keepers: KeeperPool
  let recovery: SupervisedRecovery
  let conversation: Conversation
  /// Where a copy of the backup goes; `nil` for none. It is made when the run has ended.
  let copyTo: BackupFolder?
  let priority: ProcessPriority
  let onEvent: @Sendable (RunEvent) -> Void
  private let startedAt = Date().timeIntervalSince1970
  private let started = ContinuousClock.now

  /// - Parameter onRecovery: Called with each earlier run of the store that was recovered first.
  func perform(onRecovery: (RecoveryReport) -> Void) throws(InstarError) -> RunReport {
    let journal = try RunJournal.start(run: request.run, store: request.store, in: stateFolder)
    defer { journal.unlock() }

    let identity: ProcessIdentity
    do throws(UnstartedRun) {
      try recoverEarlierRuns(onRecovery)
      identity = try requireIdentity()
      if conversation.isCanceled { throw UnstartedRun(report: report(.failed, canceled())) }
    } catch {
      return finish(error.report, journal)
    }
    let session: KeeperSession
    do throws(InstarError) {
      session = try keepers.take(as: identity, priority: priority)
    } catch  where error.code == .limitReached {
      // Runs of other stores may end, and leave what this one needs.
      let known = error.about(request.what, store: request.store, state: "unchanged")
      return finish(report(.failed, known), journal)
    }
    do throws(InstarError) {
      return end(session, with: try converse(session, journal), journal)
    } catch {
      return end(session, after: error, journal)
    }
  }

  /// The end of a run that got no keeper.
  private struct UnstartedRun: Error {
    let report: RunReport
  }

  /// A second run beside an open one would leave a second backup, and a second line in the ledger.
  private func recoverEarlierRuns(
    _ onRecovery: (RecoveryReport) -> Void
  ) throws(UnstartedRun) {
    do throws(InstarError) {
      try recovery.recover(
        store: request.store, recordedAs: ledgerPath, in: stateFolder, onReport: onRecovery)
    } catch {
      if error.code == .interrupted {
        // The earlier run may have changed the store.
        var interruption = canceled()
        interruption.state = "not opened by this run"
        throw UnstartedRun(report: report(.failed, interruption))
      }
      // The keeper of a supervisor that was killed ends its step before it ends: waiting cures that.
      let result: RunReport.Result = error.code == .busyStore ? .busy : .failed
      throw UnstartedRun(
        report: report(
          result, error.about(store: request.store, state: "not opened by this run")))
    }
  }

  /// Returns the user that the keeper runs as, if the run may start.
  private func requireIdentity() throws(UnstartedRun) -> ProcessIdentity {
    do throws(InstarError) {
      try requireNoHold()
      try recovery.access.requireTrusted(plugins: request.plugins)
      return try answer { [access = recovery.access] store in
        Result { () throws(InstarError) in try access.identity(forStore: store) }
      }.get()
    } catch {
      throw UnstartedRun(
        report: report(
          .refused, error.about(request.what, store: request.store, state: "unchanged")))
    }
  }

  /// Ends a run whose keeper has reported.
  private func end(
    _ session: KeeperSession, with report: RunReport, _ journal: RunJournal
  ) -> RunReport {
    if let error = report.error, error.isInDoubt, let phase = journal.phase {
      // A connection that failed may still be open in that keeper.
      session.kill()
      return recover(phase, error, journal)
    }
    var report = report
    if report.leftovers != nil {
      session.kill()
      report = removeLeftovers(report, journal)
    } else {
      keepers.giveBack(session)
    }
    if report.result == .migrated, report.backup != nil { report.copyTo = copyTo }
    return finish(report, journal)
  }

  /// Ends a run whose keeper has not reported: it died, or is made to end.
  private func end(
    _ session: KeeperSession, after error: InstarError, _ journal: RunJournal
  ) -> RunReport {
    var cause = error
    if conversation.isCanceled {
      // The keeper rolls back by itself; a killed one leaves that to the recovery. One that waits for a lock does not
      // notice that it should end.
      session.end(grace: Self.endGrace)
      cause = canceled()
    } else {
      session.kill()
    }
    guard let phase = journal.phase else {
      return finish(
        report(.failed, cause.about(store: request.store, state: "unchanged")), journal)
    }
    return recover(phase, cause, journal)
  }

  /// How long a keeper whose run was canceled may roll back before it is killed.
  private static let endGrace: Duration = .seconds(1)
  /// The time limit of each step of a run, besides those of the request; more for a large store or backup. The
  /// keeper's own limits are shorter: this one is for a keeper that its store, or a disk, keeps from ending.
  static let stepLimit: Duration = .seconds(300)

  /// Asks for the run and answers the keeper's questions, until its report.
  private func converse(
    _ session: KeeperSession, _ journal: RunJournal
  ) throws(InstarError) -> RunReport {
    try conversation.begin(session)
    try session.send(request.message)
    var refusal: InstarError?
    let stepLimit =
      Self.stepLimit + .seconds(request.busyTimeoutSeconds)
      + (try answer(Supervisor.timeToReadAll)
        + Supervisor.timeToRead(request.bytesOfBackup)) * 3
    var limit = stepLimit
    var deadline = ContinuousClock.now + limit
    while true {
      guard let answer = try session.next(deadline: deadline) else {
        throw Supervisor.overdue(limit)
      }
      switch answer {
      // A keeper that a store has taken over can report this run only.
      case .run(let event) where event.run == request.run && event.store == request.store:
        var plausible = event
        plausible.progress = event.progress?.plausible
        onEvent(plausible)
        switch event.step {
        case .started, .locked, .verified, .cutOver: limit = stepLimit
        case .backedUp, .stageStarted, .stageFinished:
          limit = stepLimit + .seconds(request.stageTimeLimitSeconds)
        // What a worker sends without end must not keep its run alive. A deadline that has passed still hands out
        // what has arrived: the machine may have been suspended.
        case .progress, .output, .sql:
          guard ContinuousClock.now < deadline else { throw Supervisor.overdue(limit) }
          continue
        }
        deadline = .now + limit
      case .ask(let asked):
        do throws(InstarError) {
          try enter(asked, journal)
        } catch {
          refusal = error
        }
        try session.send(refusal == nil ? .proceed : .refrain)
      case .finished(var report)
      where report.run == request.run && report.store == request.store:
        report = report.plausible
        // The keeper only knows that the phase was refused.
        if let refusal {
          report.error = refusal.about(store: request.store, state: "unchanged")
          if refusal.code == .heldStore { report.result = .refused }
        }
        return report
      case .failed(let error):
        return report(.failed, error.about(store: request.store))
      case .described, .probed, .schema, .planned, .verified, .run, .finished, .recovered, .copied,
        .done:
        throw unexpectedEvent()
      }
    }
  }

  private func enter(_ phase: PhaseRecord, _ journal: RunJournal) throws(InstarError) {
    guard phase.run == request.run, phase.store == request.store else { throw unexpectedEvent() }
    let mayEnter =
      switch phase.phase {
      case .cloning: conversation.beginCloning()
      case .cutover: conversation.beginCutover()
      }
    guard mayEnter else { throw canceled() }
    // A restore may have placed a hold while the keeper waited for the store's lock: the store would be migrated again
    // at once.
    try requireNoHold()
    var phase = phase
    phase.copyTo = copyTo
    phase.keptStore = ledgerPath.text
    phase.isInLedger = nil
    phase.hasNoBackup = nil
    try journal.enter(phase)
    if case .restore(_, let user) = request, phase.phase == .cloning { try placeHold(by: user) }
  }

  private func requireNoHold() throws(InstarError) {
    // Without holds nothing is asked about the store.
    guard request.respectsHold, stateFolder.hasHolds else { return }
    let answer = try answer { [stateFolder] store in
      Result { () throws(InstarError) in try stateFolder.hold(on: store) }
    }
    guard let hold = try answer.get() else { return }
    var error = hold.refusal(of: request.what, store: request.store)
    error.next = error.next.map { stateFolder.completing($0, store: hold.store) }
    throw error
  }

  /// Asks about the store.
  ///
  /// - Throws: `unreadableStore` where its file system does not answer: a run that waited for ever would keep its slot.
  private func answer<Answer: Sendable>(
    _ look: @escaping @Sendable (String) -> Answer
  ) throws(InstarError) -> Answer {
    let answers = recovery.reader.answers(about: [request.store], look)
    guard let answer = answers.first else {
      throw Supervisor.unanswered(request.store, within: recovery.reader.patience)
    }
    return answer
  }

  /// Keeps the daemon from migrating the store again. After the phase record, so that a recovery removes the hold of a
  /// restore that did not take place; before the store is locked, so that no run comes in between.
  private func placeHold(by user: String) throws(InstarError) {
    guard try stateFolder.hold(on: request.store) == nil else { return }
    try stateFolder.hold(
      request.store, by: user, why: "restored by run \(request.run)", run: request.run)
  }

  /// Has another keeper recover the run.
  private func recover(
    _ phase: PhaseRecord, _ cause: InstarError, _ journal: RunJournal
  ) -> RunReport {
    do throws(InstarError) {
      let recovered = try recovery.recover(phase)
      var report = RunReport(of: recovered, phase: phase, cause: cause)
      report.durationMicroseconds = elapsedMicroseconds
      return finish(report, journal)
    } catch {
      // The journal stays open: the next recovery finishes it.
      let command = "to recover the run, start instard or run: \(request.command)"
      var report = report(
        .failed,
        InstarError(
          error.code, error.what, store: request.store,
          cause: "\(error.cause); the run itself failed: \(cause.cause)",
          state: error.state,
          next: error.code == .unreadableStore
            ? [error.next, command].compactMap(\.self).joined(separator: "; then, ")
            : error.next ?? command))
      report.from = phase.from
      report.to = phase.to
      report.plan = phase.plan
      report.plugin = phase.plugin
      report.backup = phase.backup.flatMap { backup in
        recovery.reader.answers(about: [backup]) { phase.existingBackup(at: $0) }.first ?? nil
      }
      report.manifest = report.backup == nil ? nil : phase.manifest
      report.restoredRun = phase.restoredRun
      report.error = report.error.map(completing)
      return report
    }
  }

  /// Has another keeper remove what the run's own could not remove: the failure may have been that process's.
  private func removeLeftovers(_ report: RunReport, _ journal: RunJournal) -> RunReport {
    guard report.leftovers != nil, let phase = journal.phase, (try? recovery.recover(phase)) != nil
    else { return report }
    var report = report
    report.leftovers = nil
    return report
  }

  private func canceled() -> InstarError {
    var error = interrupted().about(request.what, store: request.store)
    error.next = "run: \(request.command)"
    return error
  }

  /// Names the command of this run in an error whose thrower did not know it, and the state folder.
  private func completing(_ error: InstarError) -> InstarError {
    var error = error
    error.completeNext(.command(request.command))
    return stateFolder.completing(error)
  }

  /// Ends the journal with the report, which gets a note if that fails.
  private func finish(_ report: RunReport, _ journal: RunJournal) -> RunReport {
    var report = report
    report.error = report.error.map(completing)
    do throws(InstarError) {
      try journal.finish(report, recordedAs: ledgerPath)
    } catch {
      // The result stands: the next recovery writes it to the ledger.
      report.notes.append("\(error.what): \(error.cause)")
    }
    return report
  }

  private func report(_ result: RunReport.Result, _ error: InstarError) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: result, startedAt: startedAt)
    report.durationMicroseconds = elapsedMicroseconds
    report.error = error
    if request.rehearses { report.rehearsal = RunReport.Rehearsal() }
    if case .restore(let request, _) = request { report.restoredRun = request.backup.run }
    return report
  }

  private var elapsedMicroseconds: Int64 {
    (ContinuousClock.now - started).inMicroseconds
  }
}
