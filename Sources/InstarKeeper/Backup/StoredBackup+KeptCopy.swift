internal import CInstar
internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The copy of a backup that is kept in another folder for as long as the backup, compressed if its name says so.
///
/// It gets its name after it was read back. So a process that is killed leaves no copy that differs from the backup,
/// only a file that ends in `.part`, which the next attempt removes. Who makes or removes a copy locks the backup: the
/// unfinished files of large values have the same names in each attempt, so two at once would remove each other's.
extension StoredBackup {
  /// Makes the copy and reads it back. Where it is there already, reads that. Waits some seconds while another process
  /// makes it.
  ///
  /// - Throws: What `verify` throws; `outputFailed`, `noSpace`. A copy that was there is left as it is.
  func keepCopy(at target: String) throws(InstarError) -> BackupCopy {
    let what = "cannot copy the backup of run \(reference.run) to '\(target)'"
    let copy = stored(at: target)
    var isThere = false
    do {
      let manifest = try requireManifest()
      try requireOtherFolder(than: target, what)
      let lock = try lockWaiting(what)
      defer { lock?.release() }
      var status = stat()
      isThere = lstat(target, &status) == 0
      if isThere {
        try copy.check()
      } else {
        try make(copy, what)
      }
      // After a crash the copy may have its name, and not its manifest.
      manifest.write(besideBackup: target)
      try DurableFile.synchronizeFolder(target.parentFolder)
      return BackupCopy(
        path: target, bytes: try FileCopy.size(of: target), contentHash: manifest.contentHash)
    } catch {
      var known = InstarError(error, what: what)
      known.what = what
      if known.code == .unreadableStore { known.code = .outputFailed }
      if known.code == .noSpace { known.next = Self.adviceOnSpace(for: target) }
      let command = "instarctl backups copy \(CommandText.quoted(reference.store))"
      if isThere, known.code == .damagedBackup {
        known.next = "run: rm \(CommandText.quoted(target)), then run: \(command)"
      }
      known.next =
        known.next
        ?? "let the store's owner write in the folder, with enough space, then run: \(command)"
      throw known
    }
  }

  private func make(_ copy: StoredBackup, _ what: String) throws {
    let folder = copy.path.parentFolder
    try Self.requireFolder(folder, what)
    Self.removePartialFiles(of: copy.path)
    let contents = try verify(path)
    let partial = "\(copy.path).\(UInt32.random(in: .min ... .max)).part"
    try RunFiles.makeFile(partial)
    defer { unlink(partial) }
    if copy.isCompressed {
      try PackedFile.pack(path, to: partial)
    } else {
      try FileCopy.copy(path, to: partial)
    }
    // Those of an attempt that was cut off may be incomplete.
    ExternalFiles.removeBackup(besideFile: copy.path)
    try external.copy(contents.externalFiles, besideFile: copy.path, ofRun: reference.run)
    do {
      try DurableFile.synchronizeFile(partial)
      FileCopy.dropCache(of: partial)
      try copy.check(partial)
      guard instar_rename_no_replace(AT_FDCWD, partial, AT_FDCWD, copy.path) == 0 else {
        throw RunFiles.failure(what, errno)
      }
    } catch {
      ExternalFiles.removeBackup(besideFile: copy.path)
      throw error
    }
  }

  /// A backup that copies itself would be its own copy, and be counted and removed as such.
  private func requireOtherFolder(than target: String, _ what: String) throws(InstarError) {
    let folder = target.parentFolder
    var (own, other) = (stat(), stat())
    guard stat(folder, &other) == 0 else { return }  // `make` says so
    let isOwn =
      stat(path.parentFolder, &own) == 0
      && FileIdentity(own) == FileIdentity(other)
    let name = (URL(filePath: folder).resolvingSymlinksInPath().path as NSString).lastPathComponent
    guard isOwn || name == InstarFolder.name else { return }
    throw InstarError(
      .outputFailed, what,
      cause: isOwn
        ? "the backup itself is in the folder '\(folder)'"
        : "'\(folder)' is a folder in which Instar keeps the backups of stores",
      next: "choose another folder, best on another disk: instarctl backups copy --backup-folder "
        + "/mnt/backups \(CommandText.quoted(reference.store))")
  }

  /// Locks the backup against others who make or remove its copy; `nil` where the backup is gone.
  ///
  /// - Throws: Who has it locked. The copy of a large backup takes long, and this keeper has other work.
  func lockWaiting(_ what: String) throws(InstarError) -> FolderLock? {
    let deadline = ContinuousClock.now + Self.lockPatience
    while access(path, F_OK) == 0 {
      if let lock = try FolderLock.tryLock(path) { return lock }
      guard ContinuousClock.now < deadline else { throw inUse(.outputFailed, what) }
      usleep(Self.lockPauseMicroseconds)
    }
    return nil
  }

  private static let lockPatience = Duration.seconds(5)
  private static let lockPauseMicroseconds: useconds_t = 20_000

  /// Removes what attempts left that were cut off: nobody else makes a copy of the backup now.
  private static func removePartialFiles(of target: String) {
    let folder = target.parentFolder
    // What stays is removed by the next attempt.
    let names = try? FolderNames.all(
      in: folder, prefix: target.lastName + ".", suffix: ".part")
    for name in names ?? [] { unlink("\(folder)/\(name)") }
  }
}
