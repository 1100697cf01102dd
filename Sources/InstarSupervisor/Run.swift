import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// One run of one store: the supervisor's side of it.
///
///   1. the lock of the run: from here on nobody else recovers it
///   2. the request; events are passed on
///   3. each question of the keeper: the phase to disk, then "proceed"
///   4. the end: the report into the ledger, then the phase record away, then the lock
///
/// Where the keeper dies or is given up, another one finishes or clears away what it has begun,
/// before 4.
struct Run: Sendable {
  let request: MigrationRequest
  let stateFolder: StateFolder
  let keepers: KeeperPool
  let access: KeeperAccess
  let conversation: Conversation
  let onEvent: @Sendable (RunEvent) -> Void
  private let startedAt = Date().timeIntervalSince1970
  private let started = ContinuousClock.now

  init(
    request: MigrationRequest, stateFolder: StateFolder, keepers: KeeperPool,
    access: KeeperAccess, conversation: Conversation,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) {
    self.request = request
    self.stateFolder = stateFolder
    self.keepers = keepers
    self.access = access
    self.conversation = conversation
    self.onEvent = onEvent
  }

  func migrate() throws(InstarError) -> RunReport {
    guard let lock = try stateFolder.tryLock(run: request.run) else {
      throw InstarError(
        .stateFolderFailed, "cannot begin run \(request.run)", store: request.store,
        cause: "there is a run of that name", state: "unchanged")
    }
    defer { stateFolder.unlock(run: request.run, lock) }

    let identity: ProcessIdentity
    do throws(InstarError) {
      try access.requireTrusted(plugins: request.plugins)
      identity = try access.identity(forStore: request.store)
    } catch {
      return noted(
        report(
          .refused,
          error.about("cannot migrate '\(request.store)'", store: request.store, state: "unchanged")
        ), nil)
    }
    if conversation.isCanceled {
      return noted(report(.failed, interrupted().about(store: request.store)), nil)
    }
    let session = try keepers.take(as: identity)
    var phase: PhaseRecord?
    do throws(InstarError) {
      let report = try converse(session, &phase)
      keepers.giveBack(session)
      return noted(report, phase)
    } catch {
      var cause = error
      if conversation.isCanceled {
        // It clears away by itself; killing it would leave that to the recovery.
        session.end()
        cause = interrupted()
      } else {
        session.kill()
      }
      guard let phase else {
        return noted(report(.failed, cause.about(store: request.store, state: "unchanged")), nil)
      }
      return recovered(phase, cause)
    }
  }

  /// Asks for the run and answers the keeper's questions, until its report.
  ///
  /// - Parameter phase: What is on disk of the run.
  private func converse(
    _ session: KeeperSession, _ phase: inout PhaseRecord?
  ) throws(InstarError) -> RunReport {
    try conversation.begin(session)
    try session.send(.migrate(request))
    var refusal: InstarError?
    while true {
      switch try Supervisor.nextEvent(session) {
      // A keeper that a store's owner has taken over speaks of this run only.
      case .run(let event) where event.run == request.run && event.store == request.store:
        onEvent(event)
      case .ask(let asked):
        do throws(InstarError) {
          try enter(asked)
          phase = asked
        } catch {
          refusal = error
        }
        try session.send(refusal == nil ? .proceed : .refrain)
      case .finished(var report)
      where report.run == request.run && report.store == request.store:
        // The keeper only knows that it was told not to go on.
        if let refusal { report.error = refusal.about(store: request.store, state: "unchanged") }
        return report
      case .failed(let error):
        return report(.failed, error.about(store: request.store))
      case .described, .probed, .schema, .planned, .run, .finished, .recovered, .done:
        throw unexpected()
      }
    }
  }

  private func enter(_ phase: PhaseRecord) throws(InstarError) {
    guard phase.run == request.run, phase.store == request.store else { throw unexpected() }
    let mayEnter =
      switch phase.phase {
      case .cloning: conversation.beginCloning()
      case .writingBack: conversation.beginWritingBack()
      }
    guard mayEnter else { throw interrupted() }
    try stateFolder.record(phase)
  }

  /// Has another keeper finish or clear away what the one that is no more had begun.
  private func recovered(_ phase: PhaseRecord, _ cause: InstarError) -> RunReport {
    do throws(InstarError) {
      let recovered = try Recovery(stateFolder: stateFolder, keepers: keepers, access: access)
        .recover(phase)
      var report = RunReport(of: recovered, phase: phase, cause: cause)
      report.durationMicroseconds = elapsedMicroseconds
      return noted(report, phase)
    } catch {
      // Neither noted nor closed: the phase record stays, and the next recovery does both.
      var report = report(
        .failed,
        InstarError(
          error.code, error.what, store: request.store,
          cause: "\(error.cause); before: \(cause.cause)",
          state: error.state ?? Self.stateUnrecovered(phase.phase),
          next: error.next
            ?? "the run is recovered at the next start of instard or 'instarctl migrate'"))
      report.from = phase.from
      report.to = phase.to
      report.plan = phase.plan
      report.plugin = phase.plugin
      report.backup = phase.backup
      return report
    }
  }

  private static func stateUnrecovered(_ phase: Phase) -> String {
    switch phase {
    case .cloning: "unchanged; '.instar' beside it still holds the clone"
    case .writingBack: "at the old version or the new one, whole; the backup is kept"
    }
  }

  /// The last steps of a run: its report into the ledger, then its phase record away.
  ///
  /// A current store is no news: nothing was done, and a daemon looks at it often.
  private func noted(_ report: RunReport, _ phase: PhaseRecord?) -> RunReport {
    var report = report
    do throws(InstarError) {
      if report.result != .current { try stateFolder.append(report) }
      if phase != nil { try stateFolder.close(run: request.run) }
    } catch {
      // The store's state is what it is; that it is not noted is told beside it. The phase record
      // stays, and the next recovery notes the run.
      report.notes.append("\(error.what): \(error.cause)")
    }
    return report
  }

  private func report(_ result: RunReport.Result, _ error: InstarError) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: result, startedAt: startedAt)
    report.durationMicroseconds = elapsedMicroseconds
    report.error = error
    return report
  }

  private var elapsedMicroseconds: Int64 {
    (ContinuousClock.now - started).inMicroseconds
  }
}
