public import InstarConfiguration
import InstarHooks
public import InstarSchema
public import InstarSupervisor
public import InstarWire
import Logging

/// Everything that the daemon logs.
public enum DaemonEvent: Sendable {
  case daemonStarted(version: String, Configuration)
  case daemonStopping(running: Int)
  case configurationLoaded(Configuration)
  /// The previous configuration stays in force.
  case configurationRefused(InstarError)
  case watchStarted(folder: String, stores: Int)
  case windowChanged(watch: String, TimeWindow.State)
  case watchFailed(InstarError)
  /// The kernel dropped file events; every folder is rescanned.
  case changesLost
  /// `rival`: another usable plugin with the same plan.
  case pluginAccepted(plugin: String, PluginManifest, rival: String?)
  case pluginRefused(plugin: String, InstarError)
  case pluginRemoved(plugin: String)
  /// The state folder is for the command to run next.
  case storeProbed(ProbeReport, StateFolder? = nil)
  /// Without a store: no store can be probed.
  case probeFailed(store: String?, InstarError, StoreQueue.FollowUp)
  case run(RunEvent)
  /// Lines of SQL or of plugins that were too many for the journal.
  case linesLeftOut(Int)
  /// Steps of runs and verdicts on stores that were too many for the journal.
  case entriesLeftOut(LeftOutEntries)
  case runEnded(RunReport, StoreQueue.FollowUp)
  case runsFailed(RepeatedFailure)
  case runRecovered(RecoveryReport)
  case recoveryFailed(InstarError, StoreQueue.FollowUp)
  /// A backup was copied or removed, or cannot be used.
  case backupHandled(BackupResult)
  /// The regular check of a sample of all backups ended.
  case backupsVerified(sound: Int, sample: Int, all: Int)
  /// A wave of a rollout opened or ended, or the rollout was halted or resumed.
  case rolloutChanged(Manager.Rollout, Rollout.Change)
  /// An operator stopped the start of runs, or resumed it (`nil`).
  case pauseChanged(Manager.Pause?)
  /// A hook succeeded.
  case hookRan(HookReport)
  case hookFailed(HookFailure)
  /// Too many events of a kind wait for hooks. With a count: so many had no place, and now none waits.
  case hookEventsDropped(EventKind, count: Int?)
  /// Any other error; the daemon continues.
  case problem(InstarError)
  /// A reload took over all settings but one.
  case settingIgnored(InstarError)
}

extension DaemonEvent {
  /// The event as an entry of the journal.
  public var entry: EventEntry {
    switch self {
    case .daemonStarted(let version, let configuration):
      return .make(
        .daemonStarted, .notice,
        "instard \(version) started: \(Self.extent(of: configuration)), state in "
          + "'\(configuration.stateFolder)'")
    case .daemonStopping(let running):
      let rest =
        running == 0 ? "" : ", waiting for \(Self.count(running, "run")) to finish or roll back"
      return .make(.daemonStopping, .notice, "instard is stopping\(rest)")
    case .configurationLoaded(let configuration):
      return .make(
        .configurationLoaded, .notice,
        "loaded the configuration again: \(Self.extent(of: configuration))")
    case .configurationRefused(let error):
      return .make(
        .configurationRefused, .error,
        "\(error.what): \(error.cause); the previous configuration stays in force",
        error: error)
    case .watchStarted(let folder, let stores):
      return .make(
        .watchStarted, .info, "watching '\(folder)': \(Self.count(stores, "store"))")
    case .windowChanged(let watch, let state):
      let time = state.changesAt.map { Quantity.time(secondsSince1970: $0) }
      return state.isOpen
        ? .make(
          .windowOpened, .notice,
          "the window of '\(watch)' is open\(time.map { " until \($0)" } ?? "")")
        : .make(
          .windowClosed, .notice,
          "the window of '\(watch)' is closed"
            + (time.map { " until \($0): no run of its stores starts" }
              ?? ", and does not open again: no run of its stores starts"))
    case .watchFailed(let error):
      return .make(
        .watchFailed, .warning,
        Self.line(error) + (error.next == nil ? "; instard retries at each rescan" : ""),
        error: error)
    case .changesLost:
      return .make(
        .changesLost, .warning,
        "the kernel dropped file events; instard rescans every folder")
    case .pluginAccepted(let plugin, let manifest, let rival):
      return Self.accepted(plugin, manifest, rival)
    case .pluginRefused(let plugin, let error):
      return .make(
        .pluginRefused, .error, "\(Self.line(error)); instard does not use the plugin",
        error: error,
        [("INSTAR_PLUGIN", plugin)])
    case .pluginRemoved(let plugin):
      return .make(
        .pluginRemoved, .notice, "plugin '\(plugin)' was removed", [("INSTAR_PLUGIN", plugin)])
    case .storeProbed(let report, let stateFolder):
      return Self.probed(report, stateFolder)
    case .probeFailed(let store, let error, let followUp):
      return .make(
        .probeFailed, .warning, Self.line(error) + Self.clause(followUp), error: error,
        isRetried: followUp.isRetry, [("INSTAR_STORE", store)])
    case .run(let event):
      return Self.step(event)
    case .linesLeftOut(let count):
      return .make(
        .runOutput, .notice,
        "left out \(Self.count(count, "line")) of SQL and plugin output: the journal gets at most "
          + "\(LineLimit.lines) in \(DurationText.format(LineLimit.window))")
    case .entriesLeftOut(let leftOut):
      return Self.leftOut(leftOut)
    case .runEnded(let report, let followUp):
      return Self.ended(report, followUp)
    case .runsFailed(let failures):
      return Self.failed(failures)
    case .runRecovered(let report):
      return Self.recovered(report)
    case .recoveryFailed(let error, let followUp):
      return .make(
        .recoveryFailed, .error, Self.line(error) + Self.clause(followUp), error: error,
        isRetried: followUp.isRetry)
    case .backupHandled(let result):
      return Self.handled(result)
    case .backupsVerified(let sound, let sample, let all):
      return .make(
        .backupsVerified, .info,
        "verified \(sample) of \(Self.count(all, "backup")): \(sound) sound")
    case .rolloutChanged(let rollout, let change):
      return Self.changed(rollout, change)
    case .pauseChanged(let pause?):
      return .make(
        .paused, .notice,
        "paused by \(pause.by)\(pause.why.map { ": \($0)" } ?? ""); to let instard start runs again: instarctl resume"
      )
    case .pauseChanged(nil):
      return .make(.resumed, .notice, "resumed: instard starts runs again")
    case .hookRan(let report):
      return Self.ran(report)
    case .hookFailed(let failure):
      return Self.failed(failure)
    case .hookEventsDropped(let kind, let count):
      return Self.dropped(kind, count)
    case .problem(let error):
      return .make(.problem, .error, Self.line(error), error: error)
    case .settingIgnored(let error):
      return .make(.problem, .warning, Self.line(error), error: error)
    }
  }

  // MARK: Words

  private static func accepted(
    _ plugin: String, _ manifest: PluginManifest, _ rival: String?
  ) -> EventEntry {
    let plans = manifest.plans.map { plan in
      let versions = plan.versions.map { "\($0.schema.version)" }
      return "\(plan.name) (\(versions.joined(separator: ", ")))"
    }
    let notes = manifest.plans.flatMap(\.notes).map { "; note: \($0)" }.joined()
    let message = "plugin '\(plugin)' provides \(plans.joined(separator: " and "))\(notes)"
    let error = rival.map {
      InstarError(
        .ambiguousPlan, "cannot choose between plugins '\(plugin)' and '\($0)'",
        cause: "both provide the same plan", state: "stores of this plan are not migrated",
        next: "remove one of the two plugins")
    }
    return .make(
      .pluginAccepted, error == nil ? .notice : .warning,
      message + (error.map { "; \(line($0))" } ?? ""), error: error,
      [
        ("INSTAR_PLUGIN", plugin),
        ("INSTAR_PLAN", manifest.plans.map(\.name).joined(separator: ",")),
      ])
  }

  private static func probed(_ report: ProbeReport, _ stateFolder: StateFolder?) -> EventEntry {
    let store = "'\(report.store)'"
    let version = report.version.map { "\($0)" } ?? "an unknown version"
    let reason = report.reason.map { ": \($0)" } ?? ""
    let kind: EventKind
    var level = Logger.Level.warning
    var message: String
    switch report.state {
    case .current:
      (kind, level) = (.storeCurrent, .debug)
      message = "\(store) is current at \(version)"
    case .behind:
      let end = report.planVersion.map { "\($0)" } ?? "the plan's last version"
      message = "\(store) is at \(version), behind \(end)"
      if let hold = report.hold {
        (kind, level) = (.storeHeld, .notice)
        message +=
          ", and \(hold.sentence); to let instard migrate the store, run: "
          + (stateFolder?.releaseCommand(of: hold) ?? hold.releaseCommand)
      } else {
        (kind, level) = (.storeBehind, .info)
      }
    case .ahead:
      kind = .storeAhead
      message = "\(store) is newer than the plan\(reason); \(untouched)"
    case .unversioned:
      kind = .storeUnversioned
      message = unversioned(report)
      message = stateFolder?.completing(message, store: report.store) ?? message
    case .unknown:
      kind = .storeUnknown
      (level, message) = unknown(report)
    case .notAStore:
      kind = .storeNotAStore
      message = "\(store) is not a store\(reason)"
    case .corrupt:
      (kind, level) = (.storeCorrupt, .error)
      message = "\(store) is damaged\(reason); \(untouched)"
    case .encrypted:
      kind = .storeEncrypted
      message = "\(store) is encrypted\(reason); \(untouched)"
    case .unreadable:
      kind = .probeFailed
      message = "\(store) cannot be read\(reason); instard retries when the store changes"
    case .busy:
      (kind, level) = (.storeBusy, .info)
      message = "\(store) is in use\(reason); instard retries later"
    }
    return .make(
      kind, level, message, error: report.error, isRetried: report.state == .busy,
      [
        ("INSTAR_STORE", report.store), ("INSTAR_PLAN", report.plan),
        ("INSTAR_PLUGIN", report.plugin), ("INSTAR_FROM", report.version?.description),
        ("INSTAR_TO", report.planVersion?.description), ("INSTAR_STATE", report.state.rawValue),
        ("INSTAR_BYTES", report.sizeBytes.map(String.init)),
      ])
  }

  private static let untouched = "instard does not change it"

  private static func unversioned(_ report: ProbeReport) -> String {
    let fitting = report.fittingVersions ?? report.version.map { [$0] } ?? []
    let adopted = fitting.count == 1 ? "\(fitting[0])" : "VERSION"
    return "'\(report.store)' declares no version that the plan knows, but its structure matches "
      + fitting.map { "\($0)" }.joined(separator: ", ") + "; to adopt it: "
      + CommandText.migrate(
        report.store, plugins: [report.plugin].compactMap(\.self), adopting: adopted)
  }

  private static func unknown(_ report: ProbeReport) -> (level: Logger.Level, message: String) {
    let reason = report.reason.map { ": \($0)" } ?? ""
    if let error = report.error { return (.warning, line(error)) }
    guard let nearest = report.nearestVersion, nearest == report.version || report.plan != nil
    else {
      // Not a problem: the plugin may be installed tomorrow.
      return (.info, "no plugin knows '\(report.store)'\(reason)")
    }
    let plan = report.plan.map { " to plan '\($0)'" } ?? ""
    let differences = report.differences.prefix(5).joined(separator: "; ")
    return (
      .warning,
      "'\(report.store)' is unknown\(plan)\(reason)"
        + (differences.isEmpty ? "" : "; the nearest version is \(nearest): \(differences)")
        + "; \(untouched)"
    )
  }

  private static func step(_ event: RunEvent) -> EventEntry {
    let store = "'\(event.store)'"
    let versions = versions(event.from, event.to)
    let took = event.durationMicroseconds.map { " in \(Quantity.duration(microseconds: $0))" } ?? ""
    let kind: EventKind
    var level = Logger.Level.info
    let message: String
    switch event.step {
    case .started:
      (kind, level) = (.runStarted, .notice)
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
      kind = .runWrittenBack
      message =
        event.cutover == .exchange
        ? "exchanged \(store) for its clone\(took)"
        : "replaced the content of \(store) with its clone\(took)"
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

  private static func leftOut(_ leftOut: LeftOutEntries) -> EventEntry {
    var parts: [String] = []
    if leftOut.steps > 0 {
      parts.append("\(count(leftOut.steps, "step")) of \(count(leftOut.runs, "run"))")
    }
    for (state, stores) in leftOut.stores.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      let others = stores.count - stores.named.count
      parts.append(
        "\(count(stores.count, "store")) with the state '\(state.rawValue)' ("
          + stores.named.map { "'\($0)'" }.joined(separator: ", ")
          + (others > 0 ? " and \(count(others, "other"))" : "") + ")")
    }
    for (kind, number) in leftOut.problems.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      parts.append("\(count(number, "problem")) of the kind '\(kind.rawValue)'")
    }
    let isProblem = !leftOut.problems.isEmpty || leftOut.stores.keys.contains { $0 != .behind }
    return .make(
      .entriesLeftOut, isProblem ? .warning : .notice,
      "left out \(parts.joined(separator: "; ")): the journal gets at most \(EntryLimit.entries) "
        + "such entries in \(DurationText.format(EntryLimit.window)), and the summary of each run; "
        + "to list the stores, run: instarctl stores",
      [("INSTAR_COUNT", String(leftOut.count))])
  }

  private static func failed(_ failures: RepeatedFailure) -> EventEntry {
    let first = failures.first
    let others = failures.count - failures.stores.count
    let names =
      failures.stores.map { "'\($0)'" }.joined(separator: ", ")
      + (others > 0 ? " and \(count(others, "other"))" : "")
    // Its advice is about one store only.
    var error = first.error
    error?.next =
      "to list them with their errors, run: instarctl stores --activity quarantined, and: "
      + "instarctl stores --activity retrying"
    error?.store = nil
    return .make(
      .runsFailed, .error,
      "\(count(failures.count, "more store")) failed like '\(first.store)': "
        + "\(first.error?.cause ?? "no cause was given") (\(names))",
      error: error,
      [
        ("INSTAR_PLAN", first.plan), ("INSTAR_PLUGIN", first.plugin),
        ("INSTAR_FROM", first.from?.description), ("INSTAR_TO", first.to?.description),
        ("INSTAR_COUNT", String(failures.count)),
      ])
  }

  private static func ended(_ report: RunReport, _ followUp: StoreQueue.FollowUp) -> EventEntry {
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
      if !report.entities.isEmpty { message += ", \(count(rows, "row"))" }
      if let backup = report.backup { message += "; backup: '\(backup)'" }
      if !report.notes.isEmpty { message += " (\(report.notes.joined(separator: "; ")))" }
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
      message =
        report.error.map(line)
        ?? "cannot migrate \(store)\(versions): another process uses the store"
    }
    message += (report.leftovers ?? []).map { "; could not remove '\($0)'" }.joined()
    if followUp == .afterRestart { level = .notice }
    let rows = report.entities.compactMap(\.rowsAfter)
    return .make(
      kind, level, message + clause(followUp), error: report.error, isRetried: followUp.isRetry,
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

  private static func changed(_ rollout: Manager.Rollout, _ change: Rollout.Change) -> EventEntry {
    let name = "the rollout of \(rollout.plan) to \(rollout.version)"
    let wave = "wave \(rollout.wave) of \(rollout.waves)"
    let done =
      "\(rollout.migrated) of \(count(rollout.stores, "store")) migrated, \(rollout.failed) failed"
      + (rollout.deferred > 0 ? ", \(rollout.deferred) retried later" : "")
    let kind: EventKind
    var level = Logger.Level.notice
    let message: String
    switch change {
    case .waveOpened:
      (kind, message) = (.waveOpened, "opened \(wave) of \(name): \(done)")
    case .waveDone:
      let next = rollout.secondsToNextWave.flatMap {
        $0 > 0
          ? "; the next wave opens in \(Quantity.duration(microseconds: Int64($0 * 1_000_000)))"
          : nil
      }
      (kind, message) = (.waveDone, "finished \(wave) of \(name): \(done)\(next ?? "")")
    case .finished:
      (kind, message) = (.rolloutFinished, "finished \(name): \(done)")
    case .halted:
      // Failures beyond the budget need a person at once; an operator's order does not.
      level = rollout.isHaltedByFailures ? .error : .notice
      kind = .rolloutHalted
      message =
        halted(rollout, name, wave) + "; \(done)" + names(of: rollout)
        + "; to go on, run: instarctl resume --plan \(rollout.plan)"
    case .resumed:
      (kind, message) = (.rolloutResumed, "resumed \(name): \(done)")
    case .approved:
      let left =
        "\(count(rollout.unapproved, "store")) still \(rollout.unapproved == 1 ? "waits" : "wait")"
      (kind, message) = (.rolloutApproved, "approved \(name): \(left) for an approval")
    }
    return .make(
      kind, level, message,
      [
        ("INSTAR_PLAN", rollout.plan), ("INSTAR_TO", rollout.version.description),
        ("INSTAR_COUNT", String(rollout.stores)), ("INSTAR_WAVE", String(rollout.wave)),
      ])
  }

  private static func halted(_ rollout: Manager.Rollout, _ name: String, _ wave: String) -> String {
    let why = rollout.halt?.why.map { ": \($0)" } ?? ""
    let place = rollout.wave > 0 ? " in \(wave)" : ""
    return "\(rollout.halt?.by ?? "an operator") halted \(name)\(place)\(why)"
  }

  private static func names(of rollout: Manager.Rollout) -> String {
    guard !rollout.failures.isEmpty else { return "" }
    let others = rollout.failed - rollout.failures.count
    return " (" + rollout.failures.map { "'\($0)'" }.joined(separator: ", ")
      + (others > 0 ? " and \(count(others, "other"))" : "") + ")"
  }

  private static func handled(_ result: BackupResult) -> EventEntry {
    let backup = result.backup
    let fields: [(name: String, value: String?)] = [
      ("INSTAR_STORE", backup.store), ("INSTAR_RUN", backup.run), ("INSTAR_BACKUP", backup.path),
    ]
    switch result.outcome {
    case .sound:
      return .make(.backupsVerified, .debug, "verified the backup '\(backup.path)'", fields)
    case .removed(let reason):
      return .make(
        .backupRemoved, .info, "removed the backup '\(backup.path)': \(reason)", fields)
    case .surplus(let reason):
      return .make(
        .backupRemoved, .debug, "would remove the backup '\(backup.path)': \(reason)", fields)
    case .kept(let error):
      return .make(.problem, .error, line(error), error: error, fields)
    case .failed(let error):
      return .make(.backupDamaged, .error, line(error), error: error, fields)
    case .copied(let copy):
      return .make(
        .backupCopied, .info,
        "copied the backup '\(backup.path)' to '\(copy.path)' (\(Quantity.bytes(copy.bytes))) and read it back: "
          + "its hash is that of the manifest, \(copy.contentHash)",
        fields + [("INSTAR_BYTES", String(copy.bytes))])
    case .notCopied(let error):
      return .make(.backupNotCopied, .error, line(error), error: error, fields)
    }
  }

  private static func ran(_ report: HookReport) -> EventEntry {
    let took = Quantity.duration(microseconds: report.durationMicroseconds)
    let lines = report.output.split(whereSeparator: \.isNewline).joined(separator: "; ")
    return .make(
      .hookRan, lines.isEmpty ? .debug : .info,
      "hook '\(report.hook)' ran on \(report.event) in \(took)"
        + (lines.isEmpty ? "" : " and printed: \(lines)"),
      [
        ("INSTAR_HOOK", report.hook),
        ("INSTAR_DURATION_USEC", String(report.durationMicroseconds)),
      ])
  }

  private static func failed(_ failure: HookFailure) -> EventEntry {
    let times = failure.count > 1 ? "; it failed \(failure.count) times since the last report" : ""
    return .make(
      .hookFailed, .warning, line(failure.error) + times, error: failure.error,
      [
        ("INSTAR_HOOK", failure.report?.hook), ("INSTAR_COUNT", String(failure.count)),
        ("INSTAR_DURATION_USEC", failure.report.map { String($0.durationMicroseconds) }),
      ])
  }

  private static func dropped(_ kind: EventKind, _ count: Int?) -> EventEntry {
    let message =
      count.map {
        "no hook ran on \(self.count($0, "event")) '\(kind.rawValue)': hooks were too slow"
      }
      ?? "\(HookQueue.limit) events '\(kind.rawValue)' wait for their hooks; instard runs none on further ones"
      + " until fewer wait; make the hooks faster, or use an event that happens less often"
    return .make(
      .hookEventsDropped, .warning, message, [("INSTAR_COUNT", count.map(String.init))])
  }

  private static func recovered(_ report: RecoveryReport) -> EventEntry {
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

  private static func extent(of configuration: Configuration) -> String {
    configuration.watches.isEmpty
      ? "no folder is watched" : count(configuration.watches.count, "watch", "watches")
  }

  private static func clause(_ followUp: StoreQueue.FollowUp) -> String {
    switch followUp {
    case .none: ""
    case .retry(let delay): "; instard retries in \(DurationText.format(delay))"
    case .waitsForChange(failures: 1):
      "; instard retries when the store or a plugin changes"
    case .waitsForChange(let failures):
      "; failed \(failures) times with the same error; instard waits until the store or a plugin changes"
    case .atOnce: "; instard retries now, because the store or a plugin changed"
    case .afterRestart: "; instard retries after its next start"
    }
  }

  /// What and cause, on one line; `make` adds what to do next. The whole text is in `INSTAR_ERROR`.
  private static func line(_ error: InstarError) -> String { "\(error.what): \(error.cause)" }

  private static func versions(_ from: Schema.Version?, _ to: Schema.Version?) -> String {
    (from.map { " from \($0)" } ?? "") + (to.map { " to \($0)" } ?? "")
  }

  private static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    "\(number) \(number == 1 ? one : many ?? one + "s")"
  }
}

extension DaemonEvent {
  /// Whether hooks run on the event. They run on a failure only if instard stops retrying the store.
  func runsHooks(on kind: EventKind) -> Bool {
    switch self {
    case .runEnded(let report, let followUp) where report.result != .migrated:
      if followUp.isRetry { return false }
    case .recoveryFailed(_, let followUp):
      if followUp.isRetry { return false }
    case .hookRan, .hookFailed, .hookEventsDropped, .run:
      return false
    default: break
    }
    return HookFolder.events.contains(kind.rawValue)
  }
}

extension StoreQueue.FollowUp {
  /// Whether instard retries even if neither the store nor a plugin changes from now on.
  fileprivate var isRetry: Bool {
    switch self {
    case .retry, .atOnce, .afterRestart: true
    case .none, .waitsForChange: false
    }
  }
}

extension EventEntry {
  /// An entry with the fields that have a value. Fields of the error do not replace others.
  ///
  /// - Parameter isRetried: Whether instard itself retries: a person acts only if that fails too.
  fileprivate static func make(
    _ kind: EventKind, _ level: Logger.Level, _ message: String, error: InstarError? = nil,
    isRetried: Bool = false, _ values: [(name: String, value: String?)] = []
  ) -> EventEntry {
    var message = message
    var all = values
    if let error {
      if let next = error.next, !message.contains(next) {
        message += isRetried ? "; if that fails too, \(next)" : "; \(next)"
      }
      all += [
        ("INSTAR_STORE", error.store), ("INSTAR_STAGE", error.stage),
        ("INSTAR_STATE", error.state), ("INSTAR_CODE", error.code.rawValue),
        ("INSTAR_ERROR", error.description),
      ]
    }
    let fields = all.compactMap { name, value in value.map { (name, $0) } }
    // Names and causes may come from files and plugins.
    let line = message.split(whereSeparator: \.isNewline).joined(separator: " ")
    return EventEntry(
      kind: kind, level: level, message: line,
      fields: Dictionary(firstOf: fields.filter { !$0.1.isEmpty }))
  }
}
