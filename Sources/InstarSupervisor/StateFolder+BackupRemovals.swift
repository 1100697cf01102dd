import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// The backups that were removed on purpose: `ledger/removed.jsonl`.
extension StateFolder {
  private struct Removal: Codable {
    var run: String
    var store: String
    var backup: String
    var removedAt: Double
    var why: String
    /// Set if the copy was not found at the removal: its disk may not have been mounted.
    var leavesCopy: Bool?

    var identity: BackupReference.Identity { .init(run: run, store: store) }
  }

  /// What was removed of a backup.
  enum RemovedPart {
    case all
    /// The copy was not found, and may exist.
    case allButCopy
  }

  private var removalsFile: String { ledger + "/removed.jsonl" }

  /// Records that a backup was removed on purpose.
  ///
  /// - Parameter part: `allButCopy` if there was to be a copy, and it was not found.
  func noteRemoval(
    of backup: BackupReference, why: String, part: RemovedPart = .all
  ) throws(InstarError) {
    let removal = Removal(
      run: backup.run, store: backup.store, backup: backup.path,
      removedAt: Date().timeIntervalSince1970, why: why,
      leavesCopy: part == .allButCopy ? true : nil)
    let line = try WireCoder.line(removal)
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    try DurableFile.append(line: line, to: removalsFile, mode: 0o600, owner: owner)
  }

  func removedBackups() throws(InstarError) -> Set<BackupReference.Identity> {
    Set(try backupRemovals().keys)
  }

  /// Returns what was removed of each backup that was removed on purpose.
  func backupRemovals() throws(InstarError) -> [BackupReference.Identity: RemovedPart] {
    guard access(removalsFile, F_OK) == 0 else { return [:] }
    // A line that a crash cut off names a backup that is gone all the same; it is then listed as missing.
    let removals = try read(removalsFile).split(separator: 0x0A).compactMap {
      try? WireCoder.message(Removal.self, from: Data($0))
    }
    // If the disk of a copy was mounted again, a later line says that the copy was removed too.
    return Dictionary(
      removals.map { ($0.identity, $0.leavesCopy == true ? .allButCopy : .all) },
      uniquingKeysWith: { $1 })
  }

  /// Brings the removal of a run's files to disk before the state folder forgets them: after a loss of power nobody
  /// would remove them again. Does nothing on the state folder's own file system, which keeps the order.
  ///
  /// If the file system does not answer in time, the files are gone all the same, unless the power fails too.
  ///
  /// - Parameter folder: `.instar/` beside the store, or another folder of backups.
  func synchronizeRemovals(in folder: String) {
    _ = reader.answers(about: [folder]) { [path] in Self.synchronizeRemovals(in: $0, of: path) }
  }

  private static func synchronizeRemovals(in folder: String, of path: String) {
    // The last removal also removes the folder.
    let folder =
      access(folder, F_OK) == 0 ? folder : folder.parentFolder
    var (own, other) = (stat(), stat())
    guard stat(path, &own) == 0, lstat(folder, &other) == 0, own.st_dev != other.st_dev else {
      return
    }
    // If this fails, the files are gone all the same, unless the power fails too.
    try? DurableFile.synchronizeFolder(folder)
  }

  /// Shortens `removed.jsonl` and `copies.jsonl` after runs were removed from the ledger.
  ///
  /// A removal until then concerns a run that has left the ledger, or one of `keptRuns`: a run's line comes before the
  /// removal of its backup. After a change of the clock a line may go too early; the backup is then listed as missing.
  /// Lines that cannot be decoded stay.
  ///
  /// - Parameters:
  ///   - removedRuns: Those that have left the ledger.
  ///   - keptRuns: Those that stay for their copies, although their backups were removed.
  ///   - end: When the newest run was added that may have been removed, in seconds since 1970.
  func forgetBackups(
    of removedRuns: Set<BackupReference.Identity>, except keptRuns: Set<BackupReference.Identity>,
    recordedUntil end: Double
  ) throws(InstarError) {
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    var forgotten = removedRuns
    try shorten(removalsFile, Removal.self) {
      guard $0.removedAt <= end, !keptRuns.contains($0.identity) else { return false }
      // The ledger never had the runs of a tree that was copied, but there may be copies of their backups.
      forgotten.insert($0.identity)
      return true
    }
    // A copy that is missing may be on a file system that is unmounted now: only run and removal decide.
    try shorten(copiesFile, CopyRecord.self) { forgotten.contains($0.identity) }
  }

  private func shorten<Record: Decodable>(
    _ file: String, _ record: Record.Type, where isOld: (Record) -> Bool
  ) throws(InstarError) {
    guard access(file, F_OK) == 0 else { return }
    let lines = try read(file).split(separator: 0x0A)
    let kept = lines.filter { line in
      (try? WireCoder.message(record, from: Data(line))).map { !isOld($0) } ?? true
    }
    guard kept.count < lines.count else { return }
    let content = Data(kept.flatMap { $0 + [0x0A] })
    try DurableFile.write(content, to: file, mode: 0o600, owner: owner)
  }
}
