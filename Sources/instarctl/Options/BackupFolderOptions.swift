import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// Where copies of backups go.
struct BackupFolderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The existing folder for a copy of each backup. The copy is read back and verified.",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var backupFolder: String?

  @Option(
    help: ArgumentHelp(
      "How the copies in --backup-folder are packed: none or zstd. Files of large values are not packed. "
        + "(default: none)",
      valueName: "compression"),
    completion: .names(of: BackupCompression.self), transform: { try BackupCompression(named: $0) })
  var backupCompression = BackupCompression.none

  func validate() throws {
    guard backupFolder != nil || backupCompression == .none else {
      throw ValidationError("--backup-compression needs --backup-folder")
    }
  }

  /// `nil` where no copies are wanted.
  var folder: BackupFolder? {
    backupFolder.map {
      BackupFolder(path: FilePath.absolute($0), compression: backupCompression)
    }
  }
}
