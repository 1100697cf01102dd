internal import CInstar
internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The copy of a backup that is kept in another folder for as long as the backup, compressed if its name says so.
///
/// It gets its name after it was read back. So a process that is killed leaves no copy that differs from the backup,
/// only a file that ends in `.part`, which the next attempt removes.
extension StoredBackup {
  /// Makes the copy and reads it back. Where it is there already, reads that.
  ///
  /// - Throws: What `verify` throws; `outputFailed`, `noSpace`. A copy that was there is left as it is.
  func keepCopy(at target: String) throws(InstarError) -> BackupCopy {
    let what = "cannot copy the backup of run \(reference.run) to '\(target)'"
    let copy = stored(at: target)
    var status = stat()
    let isThere = lstat(target, &status) == 0
    do {
      let manifest = try requireManifest()
      if isThere {
        try copy.check()
      } else {
        try make(copy, what)
      }
      // After a crash the copy may have its name, and not its manifest.
      manifest.write(besideBackup: target)
      try DurableFile.synchronizeFolder((target as NSString).deletingLastPathComponent)
      return BackupCopy(
        path: target, bytes: try FileCopy.size(of: target), contentHash: manifest.contentHash)
    } catch {
      var known = InstarError(error, what: what)
      known.what = what
      if known.code == .unreadableStore { known.code = .outputFailed }
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
    let folder = (copy.path as NSString).deletingLastPathComponent
    try Self.requireFolder(folder, what)
    Self.removePartialFiles(of: copy.path)
    let contents = try verify(path)
    let partial = "\(copy.path).\(UInt32.random(in: .min ... .max)).part"
    try RunFolder.makeFile(partial)
    defer { unlink(partial) }
    // Keeps the file from the next attempt, should this process outlive its supervisor.
    let lock = try FolderLock.tryLock(partial)
    defer { lock?.release() }
    if copy.isCompressed {
      try PackedFile.pack(path, to: partial)
    } else {
      try FileCopy.copy(path, to: partial)
    }
    // Those of an attempt that was cut off may be incomplete.
    ExternalFiles.removeBackup(besideFile: copy.path)
    try external.copy(contents.externalFiles, besideFile: copy.path)
    do {
      try DurableFile.synchronizeFile(partial)
      FileCopy.dropCache(of: partial)
      try copy.check(partial)
      guard instar_rename_no_replace(AT_FDCWD, partial, AT_FDCWD, copy.path) == 0 else {
        throw RunFolder.failure(what, errno)
      }
    } catch {
      ExternalFiles.removeBackup(besideFile: copy.path)
      throw error
    }
  }

  /// Removes what attempts left that were cut off.
  private static func removePartialFiles(of target: String) {
    let path = target as NSString
    let folder = path.deletingLastPathComponent
    // What stays is removed by the next attempt.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    for name in names where name.hasPrefix(path.lastPathComponent + ".") && name.hasSuffix(".part")
    {
      guard let lock = try? FolderLock.tryLock("\(folder)/\(name)") else { continue }
      unlink("\(folder)/\(name)")
      lock.release()
    }
  }
}
