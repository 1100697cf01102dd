import ArgumentParser
import InstarSchema
import InstarSupervisor

/// The backups that a command is about.
struct BackupOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A store; without one, all stores.", valueName: "store"),
    completion: .file(), transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var state: StateOptions

  /// Oldest first; in the order of the stores, where some were named.
  func backups() throws(InstarError) -> [ListedBackup] {
    let folder = StateFolder(reading: state.path)
    guard !stores.isEmpty else { return try folder.backups() }
    var backups: [ListedBackup] = []
    for store in stores { backups += try folder.backups(of: FilePath.ofStore(store)) }
    return backups
  }
}
