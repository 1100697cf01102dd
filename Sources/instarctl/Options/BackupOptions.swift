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

  /// Oldest first.
  func backups() throws(InstarError) -> [ListedBackup] {
    let folder = state.forReading
    return stores.isEmpty
      ? try folder.backups() : try folder.backups(ofAll: stores.map(FilePath.ofStore))
  }
}
