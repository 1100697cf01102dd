import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// A backup that nobody removed on purpose.
public struct ListedBackup: Sendable, Hashable {
  public var reference: BackupReference
  /// When its run started, in seconds since 1970.
  public var madeAt: Double
  /// The size of the file; `nil` where it is missing or unreadable.
  public var bytes: Int64?
  /// The size of its copy in another folder; `nil` where none is found.
  public var copyBytes: Int64?
  /// Where a copy is to be, whether it is there or not.
  public var copyTo: BackupFolder?
  /// Why this user cannot tell whether the file exists.
  public var error: InstarError?

  /// Whether the file is known to be gone, and its copy too.
  public var isMissing: Bool { bytes == nil && error == nil && copyBytes == nil }
  /// Whether somebody deleted the file. If its folder is gone too, a disk may not be mounted. Nor is that known of the
  /// disk of a copy, whose folder may be where it is mounted.
  public var isDeleted: Bool {
    isMissing && reference.copy == nil
      && access(reference.path.parentFolder, F_OK) == 0
  }
  /// The folder of its store.
  public var folder: String { reference.store.parentFolder }
  /// Whether `restore` does not refuse it for what is known without reading it.
  var isRestorable: Bool { !isMissing && reference.damage == nil }
  /// Whether only the copy is left.
  public var isCopyOnly: Bool { bytes == nil && error == nil && copyBytes != nil }
  /// The size of the files of large values beside the backup; zero where its manifest does not know it.
  public var externalBytes: Int64 { reference.manifest?.plausible.externalBytes ?? 0 }
  /// What the backup and its copy take, with their files of large values.
  public var occupiedBytes: Int64 {
    [bytes, copyBytes].compactMap(\.self).flatMap { [$0, externalBytes] }.saturatingSum
  }
  /// Whether the backup can have a copy and has none.
  var isWithoutCopy: Bool {
    bytes != nil && copyBytes == nil && reference.manifest?.isSound == true
  }

  /// The backup of a run; `nil` where the run left none.
  ///
  /// - Parameters:
  ///   - report: As the ledger has it: its store's path is that of a `StorePath`.
  ///   - copy: The copy that was made last, where the run's own report cannot know of it.
  public init?(_ report: RunReport, copy: String? = nil) {
    guard let path = report.backup else { return nil }
    let reference = BackupReference(
      run: report.run, store: report.store, path: path, manifest: report.manifest,
      copy: copy ?? report.backupCopy)
    self.init(
      reference, madeAt: report.manifest?.madeAt ?? report.startedAt, copyTo: report.copyTo)
  }

  init(_ reference: BackupReference, madeAt: Double, copyTo: BackupFolder? = nil) {
    self.reference = reference
    self.madeAt = madeAt
    self.copyTo = copyTo
    var status = stat()
    if let copy = reference.copy, lstat(copy, &status) == 0 {
      copyBytes = Int64(status.st_size)
    }
    guard lstat(reference.path, &status) != 0 else {
      bytes = Int64(status.st_size)
      return
    }
    let code = errno
    guard code != ENOENT, code != ENOTDIR else { return }
    error = .unreadable(
      reference.path, "cannot read the backup of run \(reference.run)", store: reference.store,
      code: code)
  }
}

extension BackupReference {
  /// The damage that the store had when the backup was made; `nil` for a sound one, as far as its manifest knows.
  var damage: String? {
    manifest.flatMap { $0.isSound ? nil : $0.check }
  }
}
