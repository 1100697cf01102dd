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

      The ledger records the runs of instard and of 'instarctl migrate' with the same state folder.
      """)

  @Argument(
    help: "List only the runs of this store.", completion: .file(), transform: FilePath.typed)
  var store: String?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let (reports, unreadableLines) = try StateFolder(reading: state.path)
      .history(store: store.map(FilePath.ofStore))
    if unreadableLines > 0 {
      Console.note("skipped \(unreadableLines) unreadable lines of the ledger in '\(state.path)'")
    }
    if output.json {
      reports.forEach { Console.write(json: $0) }
    } else if reports.isEmpty {
      Console.note("no runs in '\(state.path)'")
    } else {
      Console.write(RunReport.table(of: reports))
    }
    return .done
  }
}
