import InstarConfiguration
import InstarHooks
import InstarSchema
import InstarSupervisor
import InstarWire
import Logging

/// Everything that the daemon logs.
enum DaemonEvent: Sendable {
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
  case runsFailed(RepeatedFailure<RunReport>)
  /// Nobody can use these stores, for the same reason as an earlier one.
  case storesUnusable(RepeatedFailure<ProbeReport>)
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
  /// A setting of the configuration has no effect.
  case settingIgnored(InstarError)
}

extension DaemonEvent {
  /// The event as an entry of the journal.
  var entry: EventEntry {
    switch self {
    case .daemonStarted(let version, let configuration):
      return .make(
        .daemonStarted, .notice,
        "instard \(version) started: \(Self.extent(of: configuration)), state in "
          + "'\(configuration.stateFolder)'")
    case .daemonStopping(let running):
      let rest =
        running == 0 ? "" : ", waiting for \(running.counted("run")) to finish or roll back"
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
        .watchStarted, .info, "watching '\(folder)': \(stores.counted("store"))")
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
        "left out \(count.counted("line")) of SQL and plugin output: the journal gets at most "
          + "\(LineLimit.lines) in \(DurationText.format(LineLimit.window))")
    case .entriesLeftOut(let leftOut):
      return Self.leftOut(leftOut)
    case .runEnded(let report, let followUp):
      return Self.ended(report, followUp)
    case .runsFailed(let failures):
      return Self.failed(failures)
    case .storesUnusable(let verdicts):
      return Self.unusable(verdicts)
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
        "verified \(sample) of \(all.counted("backup")): \(sound) sound")
    case .rolloutChanged(let rollout, let change):
      return Self.changed(rollout, change)
    case .pauseChanged(let pause?):
      return .make(
        .paused, .notice,
        "paused by \(pause.by)\(pause.why.map { ": \($0)" } ?? ""); to let instard start runs again, run: instarctl resume"
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
          + "its hash matches the manifest: \(copy.contentHash)",
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
        "no hook ran on \($0.counted("event")) '\(kind.rawValue)': hooks were too slow"
      }
      ?? "\(HookQueue.limit) events '\(kind.rawValue)' wait for their hooks; instard runs no hook on further events of this kind"
      + " until fewer wait; make the hooks faster, or use an event that happens less often"
    return .make(
      .hookEventsDropped, .warning, message, [("INSTAR_COUNT", count.map(String.init))])
  }

  private static func extent(of configuration: Configuration) -> String {
    configuration.watches.isEmpty
      ? "no folder is watched" : configuration.watches.count.counted("watch", "watches")
  }

  static func clause(_ followUp: StoreQueue.FollowUp, after error: InstarError? = nil) -> String {
    // No other plugin repairs a file.
    let changed = error?.provesDamage == true ? "the store" : "the store or a plugin"
    return switch followUp {
    case .none: ""
    case .retry(let delay): "; instard retries in \(DurationText.format(delay))"
    case .waitsForChange(failures: 1):
      "; instard retries when \(changed) changes"
    case .waitsForChange(let failures):
      "; failed \(failures) times with the same error; instard waits until \(changed) changes"
    case .atOnce: "; instard retries now, because the store or a plugin changed"
    case .afterRestart: "; instard retries after its next start"
    }
  }

  /// What and cause, on one line; `make` adds what to do next. The whole text is in `INSTAR_ERROR`.
  static func line(_ error: InstarError) -> String { "\(error.what): \(error.cause)" }

  /// The stores of an entry about several: "'a', 'b' and 3 others".
  static func names(_ stores: [String], of count: Int) -> String {
    let others = count - stores.count
    return stores.map { "'\($0)'" }.joined(separator: ", ")
      + (others > 0 ? " and \(others.counted("other"))" : "")
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
  var isRetry: Bool {
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
  static func make(
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
