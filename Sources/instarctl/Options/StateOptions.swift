import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor

/// The folder that records runs and their phases.
struct StateOptions: ParsableArguments {
  @Option(
    name: .customLong("state-dir"),
    help: ArgumentHelp(
      "The state folder. It holds the ledger of runs, and what Instar needs to recover runs after a "
        + "crash. For an instard that was started with --config, pass the 'state' of that configuration. "
        + "(default: 'state' of /etc/instar/instard.yml for root, else ~/.local/state/instar)",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  /// Says so where the state folder is not the one of the service, which then does not read the holds in it.
  func noteOtherDaemon() {
    let service = ServiceConfiguration.stateFolder
    guard folder == nil, path != service, access(service, F_OK) == 0 else { return }
    // With the variable, `hold` would place it in the same folder again.
    let command =
      (Installation.stateFolderOfEnvironment == nil ? "" : "env -u INSTAR_STATE_DIR ")
      + "instarctl hold --why REASON STORE"
    Console.note(
      "note: instard.service does not see this hold: the hold is in '\(path)', and the service reads '\(service)'; "
        + "to hold the store for instard, run as root, or as the store's owner while instard runs: \(command)"
    )
  }

  /// Whether this user has a state folder of their own, and may not read that of the service.
  var isBesideService: Bool {
    guard folder == nil, Installation.stateFolderOfEnvironment == nil else { return false }
    let service = ServiceConfiguration.stateFolder
    return path != service && access(service, R_OK | X_OK) != 0 && errno == EACCES
  }

  /// Warns where the holds cannot be read: then a report shows none.
  func noteUnreadableHolds() {
    let errors: [InstarError]
    do throws(InstarError) {
      errors = try forReading.holds().unreadable
    } catch {
      errors = [error]
    }
    for error in errors {
      Console.note("warning: a hold would not be shown: \(error.what): \(error.cause)")
    }
  }

  var path: String {
    if let folder { return FilePath.absolute(folder) }
    if ServiceConfiguration.decidesStateFolder { ServiceConfiguration.noteIfUnreadable() }
    return ServiceConfiguration.defaultStateFolder
  }

  /// The folder, which need not exist.
  var forReading: StateFolder {
    StateFolder(reading: path, defaults: ServiceConfiguration.defaultStateFolders)
  }

  /// Refuses a folder that the user named and that does not exist, before a command says that nothing is in it; and
  /// what is not a folder.
  ///
  /// - Parameter what: What cannot be done without it, such as "cannot list runs".
  /// - Throws: `missingFile`, `stateFolderFailed`.
  func requireNamed(_ what: String) throws(InstarError) {
    let isMissing = !FilePath.exists(path)
    let isOther = stat(following: path)?.isFolder == false
    guard folder != nil, isMissing || isOther else { return }
    throw InstarError(
      isMissing ? .missingFile : .stateFolderFailed, what,
      cause: isMissing
        ? "the state folder '\(path)' does not exist" : "'\(path)' is not a folder",
      next: "pass the state folder of instard to --state-dir, or leave the option out to use "
        + "'\(ServiceConfiguration.defaultStateFolder)'")
  }

  /// Opens the folder, and creates it if it is missing. Of a folder that the user named, the folder above must exist: a
  /// mistyped path would make a tree of folders.
  ///
  /// - Throws: `missingFile`, `stateFolderFailed`.
  func open() throws(InstarError) -> StateFolder {
    let above = path.parentFolder
    guard folder == nil || FilePath.exists(above) else {
      throw InstarError(
        .missingFile, "cannot create the state folder '\(path)'",
        cause: "the folder '\(above)' does not exist",
        next: "check the path, or run: mkdir -p \(CommandText.quoted(above))")
    }
    return try StateFolder(path: path, defaults: ServiceConfiguration.defaultStateFolders)
  }
}
