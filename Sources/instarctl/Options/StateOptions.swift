import ArgumentParser
import InstarLinux

/// The folder that records runs and their phases.
struct StateOptions: ParsableArguments {
  @Option(
    name: .customLong("state-dir"),
    help: ArgumentHelp(
      "The state folder. It holds the ledger of runs, and what Instar needs to recover runs after a "
        + "crash. (default: /var/lib/instar for root, else ~/.local/state/instar)",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  var path: String { FilePath.absolute(folder ?? Installation.defaultStateFolder) }
}
