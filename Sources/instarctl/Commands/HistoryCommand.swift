import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl history`
struct HistoryCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "List the runs in the ledger, oldest first.",
    discussion: """
        instarctl history a.store
        instarctl history --result failed --limit 10

      The ledger records the runs of instard and of 'instarctl migrate' with the same state folder.
      """)

  @Argument(
    help: "List only the runs of this store.", completion: .stores, transform: FilePath.typed)
  var store: String?

  @Option(
    help: ArgumentHelp(
      "List only runs with this result: "
        + "\(RunReport.Result.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "result"),
    completion: .names(of: RunReport.Result.self), transform: { try RunReport.Result(named: $0) })
  var result: RunReport.Result?

  @Option(
    help: ArgumentHelp("List only runs of this plan.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @Option(help: ArgumentHelp("List only the newest COUNT runs.", valueName: "count"))
  var limit: Int?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let limit, limit < 1 { throw ValidationError("--limit must be at least 1") }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    try state.requireNamed("cannot list runs")
    let (reports, unreadableLines) = try state.forReading
      .history(store: store.map(FilePath.ofStore), limit: limit ?? .max) {
        (result == nil || $0.result == result) && (plan == nil || $0.plan == plan)
      }
    if unreadableLines > 0 {
      Console.note("skipped \(unreadableLines) unreadable lines of the ledger in '\(state.path)'")
    }
    if output.json {
      reports.forEach { Console.write(json: $0) }
    } else if reports.isEmpty {
      let isChosen = store != nil || result != nil || plan != nil
      Console.note("no \(isChosen ? "such runs" : "runs") in '\(state.path)'")
    } else {
      Console.write(RunReport.table(of: reports))
    }
    return .done
  }
}
