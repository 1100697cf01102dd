import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarWire

/// `instarctl journal`
struct JournalCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "journal",
    abstract: "Show what instard has logged, of all stores or of one.",
    discussion: """
        instarctl journal --since today
        instarctl journal --event run-failed --explain
        instarctl journal --run 20261121T101530Z-3f9c2a --sql a.store

      Runs journalctl(1) with the fields that instard logs. To see the entries of the service, be root or a \
      member of the group systemd-journal.
      """)

  @Argument(
    help: "Show only entries about this store.", completion: .stores, transform: FilePath.typed)
  var store: String?

  @Option(help: ArgumentHelp("Show only entries of this run.", valueName: "run"))
  var run: String?

  @Option(
    help: ArgumentHelp("Show only entries about this plan.", valueName: "name"), completion: .plans)
  var plan: String?

  @Option(
    help: ArgumentHelp(
      "Show only entries of this event, such as run-failed. instard(8) lists the events.",
      valueName: "event"))
  var event: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Show only entries since then: a time, 'today' or '-1h', as for journalctl.",
      valueName: "time"
    ))
  var since: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Show only the newest COUNT entries.", valueName: "count"))
  var limit: Int?

  @Flag(help: "Also show new entries, until Ctrl-C.")
  var follow = false

  @Flag(help: "Explain each entry: what happened, the state of the store, and what to do.")
  var explain = false

  @Flag(help: "Also show the SQL of migrations, where a watch logs it.")
  var sql = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let limit, limit < 1 { throw ValidationError("--limit must be at least 1") }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    try requireEvent()
    try requireTime()
    // In place of this process, so that the pager and Ctrl-C work as with journalctl itself.
    var words = (["journalctl"] + arguments).map { strdup($0) }
    words.append(nil)
    execvp("journalctl", words)
    throw .systemFailure(
      "cannot run journalctl", errno, code: .incompleteInstallation, next: "install systemd")
  }

  /// journalctl finds nothing for an event that does not exist, which looks as if it had not happened.
  private func requireEvent() throws(InstarError) {
    guard let event, EventKind(rawValue: event) == nil else { return }
    let names = EventKind.allCases.map(\.rawValue)
    let hint = Suggestion.nearest(to: event, among: names).map { "; did you mean '\($0)'?" }
    throw InstarError(
      .wrongUsage, "cannot show the journal",
      cause: "instard has no event '\(event)'\(hint ?? "")",
      next: "to see the events, run: man instard")
  }

  /// journalctl refuses a time that it cannot parse, but with a message of its own. Without systemd-analyze, that is
  /// what the user gets.
  private func requireTime() throws(InstarError) {
    let program = "/usr/bin/systemd-analyze"
    guard let since, access(program, X_OK) == 0 else { return }
    let process = try ChildProcess.start(
      executable: program, arguments: ["timestamp", "--", since],
      environment: ProcessInfo.processInfo.environment.merging(["LC_ALL": "C"]) { $1 },
      output: .captured(limitBytes: 16 << 10))
    guard try process.wait() != .exited(0) else { return }
    throw InstarError(
      .wrongUsage, "cannot show the journal", cause: "'\(since)' is not a time",
      next: "pass a time such as 'today', '-1h' or '2026-11-21 10:15'; see systemd.time(7)")
  }

  private var arguments: [String] {
    var arguments = ["-t", "instard"]
    if sql { arguments += ["-t", "instar-sql"] }
    if let since { arguments.append("--since=\(since)") }
    if let limit { arguments.append("--lines=\(limit)") }
    if follow { arguments.append("--follow") }
    if explain { arguments.append("--catalog") }
    if output.json { arguments += ["--output=json", "--all"] }
    let fields = [
      ("STORE", store.map(FilePath.absolute)), ("RUN", run), ("PLAN", plan), ("EVENT", event),
    ]
    return arguments + fields.compactMap { name, value in value.map { "INSTAR_\(name)=\($0)" } }
  }
}
