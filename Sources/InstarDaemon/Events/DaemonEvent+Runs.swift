import InstarSchema
import InstarWire
import Logging

/// What the journal says about runs and recoveries.
extension DaemonEvent {
  static func step(_ event: RunEvent) -> EventEntry {
    let store = "'\(event.store)'"
    let versions = versions(event.from, event.to)
    let took = event.durationMicroseconds.map { " in \(Quantity.duration(microseconds: $0))" } ?? ""
    let kind: EventKind
    var level = Logger.Level.info
    let message: String
    switch event.step {
    case .started:
      kind = .runStarted
      message = "migrating \(store)\(versions)"
    case .locked:
      kind = .runLocked
      message = "locked \(store)"
    case .backedUp:
      kind = .runBackedUp
      let size = event.bytes.map { " (\(Quantity.bytes($0)))" } ?? ""
      message = "backed up \(store)\(size)\(took)"
    case .stageStarted:
      kind = .runStageStarted
      message = "\(store): stage \(event.stage ?? "?") started"
    case .stageFinished:
      kind = .runStageFinished
      message = "\(store): stage \(event.stage ?? "?") finished\(took)"
    case .progress:
      kind = .runProgress
      message = "\(store): stage \(event.stage ?? "?"): \(event.progress?.text ?? "in progress")"
    case .verified:
      kind = .runVerified
      message = "verified the migrated clone of \(store)\(took)"
    case .cutOver:
      kind = .runCutOver
      message =
        event.cutover == .exchange
        ? "exchanged \(store) for its clone\(took)"
        : "replaced the content of \(store)\(took)"
    case .output:
      kind = .runOutput
      message = "\(store): the plugin printed: \(event.text ?? "")"
    case .sql:
      (kind, level) = (.runSQL, .debug)
      message = event.text ?? ""
    }
    return .make(
      kind, level, message,
      [
        ("INSTAR_STORE", event.store), ("INSTAR_PLAN", event.plan),
        ("INSTAR_PLUGIN", event.plugin), ("INSTAR_RUN", event.run),
        ("INSTAR_STAGE", event.stage), ("INSTAR_FROM", event.from?.description),
        ("INSTAR_TO", event.to?.description),
        ("INSTAR_ROWS", (event.rows ?? event.progress?.done).map(String.init)),
        ("INSTAR_BYTES", event.bytes.map(String.init)),
        ("INSTAR_DURATION_USEC", event.durationMicroseconds.map(String.init)),
        ("INSTAR_BACKUP", event.backup), ("INSTAR_CUTOVER", event.cutover?.rawValue),
      ])
  }

  static func leftOut(_ leftOut: LeftOutEntries) -> EventEntry {
    var parts: [String] = []
    if leftOut.steps > 0 {
      parts.append("\(leftOut.steps.counted("step")) of \(leftOut.runs.counted("run"))")
    }
    for (state, stores) in leftOut.stores.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      parts.append(
        "\(stores.count.counted("store")) with the state '\(state.rawValue)' ("
          + names(stores.named, of: stores.count) + ")")
    }
    for (kind, number) in leftOut.problems.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      parts.append("\(number.counted("problem")) of the kind '\(kind.rawValue)'")
    }
    let isProblem = !leftOut.problems.isEmpty || leftOut.stores.keys.contains { $0 != .behind }
    return .make(
      .entriesLeftOut, isProblem ? .warning : .notice,
      "left out \(parts.joined(separator: "; ")): the journal gets at most \(EntryLimit.entries) "
        + "such entries in \(DurationText.format(EntryLimit.window)), and the summary of each run; "
        + "to list the stores, run: instarctl stores",
      [("INSTAR_COUNT", String(leftOut.count))])
  }

  static func ended(_ report: RunReport, _ followUp: StoreQueue.FollowUp) -> EventEntry {
    let store = "'\(report.store)'"
    let versions = versions(report.from, report.to)
    let kind: EventKind
    var level: Logger.Level
    var message: String
    switch report.result {
    case .migrated:
      (kind, level) = (.runMigrated, .notice)
      let rows = report.entities.compactMap(\.rowsAfter).saturatingSum
      message =
        "migrated \(store)\(versions) in \(Quantity.duration(microseconds: report.durationMicroseconds))"
      if !report.entities.isEmpty { message += ", \(rows.counted("row"))" }
      if let backup = report.backup { message += "; backup: '\(backup)'" }
    case .rehearsed:
      (kind, level) = (.runRehearsed, .info)
      message =
        "rehearsed the migration of \(store)\(versions) in "
        + "\(Quantity.duration(microseconds: report.durationMicroseconds))"
    // instard restores no store: instarctl reports by itself, and the hold that a restore places is an event.
    case .current, .restored:
      (kind, level) = (.runNotNeeded, .info)
      message = "\(store) is already current"
    case .refused:
      (kind, level) = (.runRefused, .warning)
      message = report.error.map(line) ?? "cannot migrate \(store)\(versions): refused"
    case .failed:
      (kind, level) = (.runFailed, .error)
      message = report.error.map(line) ?? "cannot migrate \(store)\(versions): failed"
    case .busy:
      (kind, level) = (.runBusy, .info)
      // Somebody has to retry the store.
      if case .waitsForChange = followUp { level = .warning }
      message =
        report.error.map(line)
        ?? "cannot migrate \(store)\(versions): another process uses the store"
    }
    if !report.notes.isEmpty {
      message += " (\(report.notes.joined(separator: "; ")))"
    }
    message += (report.leftovers ?? []).map { "; could not remove '\($0)'" }.joined()
    if followUp == .afterRestart { level = .notice }
    let rows = report.entities.compactMap(\.rowsAfter)
    return .make(
      kind, level, message + clause(followUp, after: report.error), error: report.error,
      isRetried: followUp.isRetry,
      [
        ("INSTAR_STORE", report.store), ("INSTAR_PLAN", report.plan),
        ("INSTAR_PLUGIN", report.plugin), ("INSTAR_RUN", report.run),
        ("INSTAR_FROM", report.from?.description), ("INSTAR_TO", report.to?.description),
        ("INSTAR_STATE", report.result == .migrated || report.result == .current ? "current" : nil),
        ("INSTAR_ROWS", rows.isEmpty ? nil : String(rows.saturatingSum)),
        ("INSTAR_BYTES", report.bytes.map(String.init)),
        ("INSTAR_DURATION_USEC", String(report.durationMicroseconds)),
        ("INSTAR_BACKUP", report.backup), ("INSTAR_CUTOVER", report.cutover?.rawValue),
        ("INSTAR_REPORT", report.journalText),
      ])
  }

  static func failed(_ failures: RepeatedFailure<RunReport>) -> EventEntry {
    let first = failures.first
    // Its advice is about one store only.
    var error = first.error
    error?.next = listingFailed
    error?.store = nil
    return .make(
      .runsFailed, .error,
      "\(failures.count.counted("more store")) failed like '\(first.store)': "
        + "\(first.error?.cause ?? "no cause was given") "
        + "(\(names(failures.stores, of: failures.count)))",
      error: error,
      [
        ("INSTAR_PLAN", first.plan), ("INSTAR_PLUGIN", first.plugin),
        ("INSTAR_FROM", first.from?.description), ("INSTAR_TO", first.to?.description),
        ("INSTAR_COUNT", String(failures.count)),
      ])
  }

  static let listingFailed =
    "to list them with their errors, run: instarctl stores --activity quarantined, and: "
    + "instarctl stores --activity retrying"

  static func recovered(_ report: RecoveryReport) -> EventEntry {
    if let text = report.leftoversInWords {
      return .make(
        .runRecovered, .warning, text,
        // Without a state: the ledger has it, and the keeper has not read the store.
        [("INSTAR_STORE", report.store), ("INSTAR_RUN", report.run)])
    }
    let store = "'\(report.store)'"
    let version = report.version.map { " at \($0)" } ?? ""
    let message =
      switch (report.outcome, report.backup) {
      case (.discarded, let backup?):
        "recovered an interrupted run: another process changed \(store) after the crash; the backup"
          + " is kept: '\(backup)'"
      case (.discarded, nil):
        "recovered a run interrupted before its cutover: \(store) is unchanged\(version)"
      case (.finished, _):
        "recovered a run interrupted after its cutover: \(store) has its new content\(version)"
      case (.storeMissing, _):
        "recovered an interrupted run: \(store) no longer exists"
      }
    let notes = report.notes ?? []
    return .make(
      .runRecovered, report.outcome == .storeMissing || !notes.isEmpty ? .warning : .notice,
      ([message] + notes).joined(separator: "; "),
      [
        ("INSTAR_STORE", report.store), ("INSTAR_RUN", report.run),
        ("INSTAR_TO", report.version?.description), ("INSTAR_STATE", report.outcome.rawValue),
        ("INSTAR_BACKUP", report.backup),
      ])
  }

  private static func versions(_ from: Schema.Version?, _ to: Schema.Version?) -> String {
    (from.map { " from \($0)" } ?? "") + (to.map { " to \($0)" } ?? "")
  }
}
