import ArgumentParser
import InstarLinux

/// The folder that records runs and their phases.
struct StateOptions: ParsableArguments {
  @Option(
    name: .customLong("state-dir"),
    help: ArgumentHelp(
      "The state folder: the ledger, and the records from which a later start recovers a run that a "
        + "crash cut off. (default: /var/lib/instar for root, else ~/.local/state/instar)",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  var path: String { FilePath.absolute(folder ?? Installation.defaultStateFolder) }
}
