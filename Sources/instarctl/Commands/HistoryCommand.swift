import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl history`
struct HistoryCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Lists the runs in the ledger, oldest first.")

  @Argument(
    help: "Only the runs of this store.", completion: .file(), transform: FilePath.typed)
  var store: String?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    var reports: [RunReport] = []
    // Nothing was ever run where there is no state folder, and reading must not make one.
    if FilePath.exists(state.path) {
      let history = try StateFolder(path: state.path).history(store: store.map(FilePath.absolute))
      reports = history.reports
      if history.unreadableLines > 0 {
        Console.note(
          "\(history.unreadableLines) lines of the ledger in '\(state.path)' cannot be read, "
            + "skipping them")
      }
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
