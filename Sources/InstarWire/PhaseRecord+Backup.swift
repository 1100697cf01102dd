internal import Foundation
internal import InstarSchema

extension PhaseRecord {
  /// Returns the path of the backup where its file is there; else `nil`.
  ///
  /// Before an exchange the clone waits under the name of the backup. That file is not the backup.
  package func existingBackup(at path: String) -> String? {
    Self.inode(of: path) != nil && !isClone(path) ? path : nil
  }

  /// Whether a path names the clone of the run.
  package func isClone(_ path: String) -> Bool {
    Self.inode(of: path).map { $0 == cloneInode } ?? false
  }

  /// Returns the inode that a path names, without following a symbolic link; `nil` where there is none.
  package static func inode(of path: String) -> UInt64? {
    stat(of: path).map { UInt64($0.st_ino) }
  }
}
