import Foundation
import InstarLinux
import InstarSchema
import InstarWire
public import Logging

/// Sends events through a logger: the fields are its metadata.
///
/// May be used from any thread.
public struct EventLog: Sendable {
  private let logger: Logger
  /// Debug SQL, under its own `SYSLOG_IDENTIFIER`.
  private let sqlLogger: Logger
  private let limit = LineLimit()
  private let entryLimit = EntryLimit()
  private let now: @Sendable () -> ContinuousClock.Instant
  /// Passes events on to clients: all that the journal gets except details, and each of the events that the journal
  /// gets as one entry.
  let feed = EventFeed()
  private var onError: @Sendable (EventKind) -> Void = { _ in }
  /// Has hooks run on the events; `nil` for none.
  var hooks: HookQueue?
  /// What a command needs to reach this instard, such as " --socket 'PATH'"; empty for the default.
  private var option = ""

  /// - Parameters:
  ///   - now: The clock of the limit of lines.
  ///   - handler: Called once for each identifier.
  public init(
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    handler: (_ identifier: String) -> any LogHandler
  ) {
    self.now = now
    logger = Logger(label: "instard", factory: handler)
    var sqlLogger = Logger(label: "instar-sql", factory: handler)
    // Statements are switched on for each watch, whatever the level of the rest.
    sqlLogger.logLevel = .debug
    self.sqlLogger = sqlLogger
  }

  /// Returns a log that also calls `onError` with each event at the level `error` or above.
  func reportingErrors(to onError: @escaping @Sendable (EventKind) -> Void) -> EventLog {
    var log = self
    log.onError = onError
    return log
  }

  /// Returns a log in whose entries commands reach the instard that listens on a socket.
  func reaching(_ socket: String) -> EventLog {
    var log = self
    let isDefault = socket == Installation.socket(ofStateFolder: Installation.serviceStateFolder)
    log.option = isDefault ? "" : " --socket \(CommandText.quoted(socket))"
    return log
  }

  private func entry(of event: DaemonEvent) -> EventEntry {
    var entry = event.entry
    guard !option.isEmpty else { return entry }
    entry.message = CommandText.completing(entry.message, .instard(option: option))
    if let error = entry.fields["INSTAR_ERROR"] {
      entry.fields["INSTAR_ERROR"] = CommandText.completing(error, .instard(option: option))
    }
    return entry
  }

  /// Logs the event, and has its hooks run. Shortens lines of SQL and of programs, and leaves them out where they are
  /// too many; how many is logged before the end of the run. Leaves out steps of runs, verdicts on stores, and problems
  /// of folders and probes where they are too many.
  func post(_ event: DaemonEvent) {
    postLeftOut(isLast: event.isLast)
    switch event {
    case .run(var run) where run.step == .sql || run.step == .output:
      let text = run.text ?? ""
      let lines = run.step == .sql ? [text[...]] : text.split(whereSeparator: \.isNewline)
      for line in lines where limit.countLine(at: now()) {
        run.text = Self.shortened(line)
        post(DaemonEvent.run(run).entry)
      }
    case .hookRan(let report) where !report.output.isEmpty:
      if limit.countLine(at: now()) { post(entry(of: event)) }
    case .run(let run) where run.step != .progress:
      if entryLimit.countStep(ofRun: run.run, at: now()) { post(entry(of: event)) }
    case .storeProbed(let report, _) where report.state != .current:
      if entryLimit.count(report, at: now()) { postWithHooks(event) }
    case .watchFailed:
      if entryLimit.count(problem: .watchFailed, at: now()) { postWithHooks(event) }
    case .probeFailed:
      if entryLimit.count(problem: .probeFailed, at: now()) { postWithHooks(event) }
    case .runEnded(let report, _):
      entryLimit.end(run: report.run)
      let leftOut = limit.resetLeftOut()
      if leftOut > 0 { post(DaemonEvent.linesLeftOut(leftOut).entry) }
      postWithHooks(event)
    default:
      postWithHooks(event)
    }
  }

  /// Forgets a run that ended without an entry of its own.
  func forget(run: String) { entryLimit.end(run: run) }

  /// When `postLeftOut` has something to report.
  var nextDeadline: ContinuousClock.Instant? { entryLimit.nextDeadline }

  /// Reports what was left out, once its time is over.
  func postLeftOut(isLast: Bool = false) {
    if let leftOut = entryLimit.takeLeftOut(at: now(), isLast: isLast) {
      post(entry(of: .entriesLeftOut(leftOut)))
    }
  }

  private func postWithHooks(_ event: DaemonEvent) {
    let entry = entry(of: event)
    post(entry)
    runHooks(on: event, entry)
  }

  /// Passes an event on to clients and hooks that the journal gets only in one entry with others like it. A client may
  /// see only its own stores, and hooks run for each event.
  func postJoined(_ event: DaemonEvent) {
    let entry = entry(of: event)
    publish(entry)
    runHooks(on: event, entry)
  }

  private func runHooks(on event: DaemonEvent, _ entry: EventEntry) {
    guard let hooks, event.runsHooks(on: entry.kind) else { return }
    hooks.add(entry)
  }

  private static func shortened(_ line: Substring) -> String {
    let limit = 16_384
    guard line.utf8.count > limit else { return String(line) }
    return String(decoding: line.utf8.prefix(limit), as: UTF8.self) + "… (\(line.utf8.count) bytes)"
  }

  private func post(_ entry: EventEntry) {
    if entry.level >= .error { onError(entry.kind) }
    publish(entry)
    let metadata = entry.namedFields.mapValues { Logger.MetadataValue.string($0) }
    (entry.kind == .runSQL ? sqlLogger : logger)
      .log(level: entry.level, "\(entry.message)", metadata: metadata)
  }

  private func publish(_ entry: EventEntry) {
    guard entry.level >= .info else { return }
    feed.publish(
      Manager.Event(
        event: entry.kind.rawValue, at: Date().timeIntervalSince1970,
        priority: entry.level.priority, message: entry.message, fields: entry.fields))
  }
}

extension DaemonEvent {
  /// Runs that go on may log a few steps after it.
  fileprivate var isLast: Bool {
    if case .daemonStopping = self { true } else { false }
  }
}

extension Logger.Level {
  /// As syslog(3) counts.
  var priority: Int {
    switch self {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }

  /// As journalctl(1) names it.
  var priorityName: String {
    switch self {
    case .trace, .debug: "debug"
    case .info: "info"
    case .notice: "notice"
    case .warning: "warning"
    case .error: "err"
    case .critical: "crit"
    }
  }
}
