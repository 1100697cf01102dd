import ArgumentParser
import Foundation
import Glibc
import InstarLinux
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
      "How the copies in --backup-folder are compressed: none or zstd. Files of large values are not "
        + "compressed. (default: none)",
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

  /// Refuses a folder that cannot have copies, before a run whose backup would have none.
  ///
  /// - Throws: `missingFile`, `outputFailed`.
  func requireUsable() throws(InstarError) {
    guard let folder else { return }
    let real = try FilePath.ofFolder(folder.path, to: "copy backups to")
    let what = "cannot copy backups to '\(folder.path)'"
    guard real.lastName != InstarFolder.name else {
      throw InstarError(
        .outputFailed, what, cause: "Instar keeps the backups of stores in this folder",
        next: "choose another folder, best on another disk")
    }
    guard access(real, W_OK | X_OK) == 0 else {
      let reason = errno
      throw .systemFailure(
        what, reason, code: .outputFailed, next: InstarError.adviceOnWriting(in: real, reason))
    }
  }
}
