internal import Foundation
internal import InstarWire

/// The files that make up a backup: the copy of the store's file, its unfinished copy on another file system, its
/// manifest, and the files of its external values.
enum BackupFiles {
  /// Removes all of them, at whatever step of a run its making ended. Which are there depends on that step: a finished
  /// backup has no unfinished copy, and one whose run has not written the store has no manifest.
  static func remove(_ backup: String) {
    unlink(backup)
    removeFiles(beside: backup)
  }

  /// Removes all but the copy of the store's file.
  static func removeFiles(beside backup: String) {
    unlink(StorePaths.partial(backup))
    unlink(BackupManifest.path(ofBackup: backup))
    ExternalFiles.removeBackup(besideFile: backup)
  }
}
