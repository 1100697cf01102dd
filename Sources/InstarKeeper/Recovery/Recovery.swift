internal import Foundation
internal import GRDB
internal import InstarLinux
package import InstarSchema
internal import InstarStore
package import InstarWire

/// Finishes a run whose keeper died, or removes its files, from the record in the phase journal. Of a run that is in
/// the ledger it only removes files: others may have changed the store since, or restored it from the backup.
///
/// A recovery can be repeated: after a crash, or a second time, it has the same result.
package struct Recovery {
  private let record: PhaseRecord
  private let openPolicy: OpenPolicy

  package init(record: PhaseRecord, openPolicy: OpenPolicy) {
    self.record = record
    self.openPolicy = openPolicy
  }

  package func perform() throws(InstarError) -> RecoveryReport {
    let what = "cannot recover run \(record.run) of '\(record.store)'"
    do {
      try RunIdentifier.require(record.run)
      return try recover(what)
    } catch {
      throw InstarError(error, what: what, store: record.store).about(what, store: record.store)
    }
  }

  private func recover(_ what: String) throws -> RecoveryReport {
    let paths = Self.paths(of: record.store)
    try requireFolders(paths, what)
    guard let paths else {
      var report = RecoveryReport(run: record.run, store: record.store, outcome: .storeMissing)
      report.backup = record.backup.flatMap(record.existingBackup(at:))
      return report
    }
    // Without a store nothing can be written; the run's files are checked by their lock.
    if access(paths.store, F_OK) == 0 { _ = try openPolicy.confirm(record.store) }
    let backup = record.backup ?? paths.backup(record.run)
    let copy = paths.copy(record.run)
    let lock = try lock(paths.runFolder(record.run), what)
    defer {
      lock?.release()
      rmdir(paths.instarFolder)
    }
    let isInLedger = record.isInLedger == true
    // A run in a transaction has no folder: its keeper has locked the copy, also under the name of the backup. Once the
    // run has ended, whoever copies the backup has locked it.
    if lock == nil, isLocked(copy) || !isInLedger && isLocked(backup) { throw stillRunning(what) }
    // Before the store gets its log back, and while the files have names.
    let stale =
      isInLedger ? [] : try lockStaleFiles([backup, paths.clone(record.run)], paths, what)
    if lock != nil {
      FolderRemoval.remove(paths.runFolder(record.run))
    } else if !isInLedger, record.phase == .cloning,
      access(copy, F_OK) == 0 || access(backup, F_OK) == 0
    {
      // Before the files are removed: they show that the run was in a transaction.
      CutoverOutcome.removeUncommittedJournal(paths)
    }
    unlink(copy)
    for list in paths.unfinishedFileLists(record.run) { unlink(list) }
    if isInLedger {
      removeWaitingClone(named: backup)
      unlink(paths.fileList(record.run))
      unlink(StorePaths.partial(backup))
      let isRemoved = isUseless(backup, of: paths)
      if isRemoved { BackupFiles.remove(backup) }
      var report = RecoveryReport(run: record.run, store: record.store, outcome: .discarded)
      let left = leftovers(paths, backup: isRemoved ? backup : nil)
      if !left.isEmpty { report.leftovers = left }
      return report
    }
    var (report, isBackupRemoved) = try finishOrDiscard(paths, backup: backup, what)
    try requireRemoved(paths, backup: isBackupRemoved ? backup : nil, what)
    if !stale.isEmpty { report.notes = (report.notes ?? []) + stale.map(\.note) }
    return report
  }

  /// Locks the files of an exchange that are not the store, and that apps have open: an app may have waited in open(2)
  /// when the keeper was killed.
  ///
  /// - Throws: `busyStore` where an app keeps a file from being locked: it would damage the store, once the store has
  ///   its log back.
  private func lockStaleFiles(
    _ files: [String], _ paths: StorePaths, _ what: String
  ) throws(InstarError) -> [StaleFile] {
    guard record.phase == .cutover, record.cutover == .exchange else { return [] }
    let stale = files.filter { file in
      let inode = PhaseRecord.inode(of: file)
      return inode != nil && inode != PhaseRecord.inode(of: paths.store)
        && (inode == record.storeInode || inode == record.cloneInode)
    }.compactMap { StaleFile.lock(leftAt: $0) }
    if let unlocked = stale.first(where: { !$0.isLocked }) {
      throw InstarError(
        .busyStore, what, store: record.store, cause: unlocked.note,
        next: "when the app is stopped, start instard or \(CommandText.repetition)")
    }
    return stale
  }

  /// A run in its cutover may have written the store, and left a backup whose manifest only the record has. So if the
  /// store is gone with its folder or with `.instar/`, the record stays: the file system may not be mounted, or the
  /// folder was renamed.
  private func requireFolders(_ paths: StorePaths?, _ what: String) throws(InstarError) {
    guard record.phase == .cutover, record.isInLedger != true else { return }
    let besideStore = InstarFolder.path(besideStore: record.store)
    if let paths, access(paths.store, F_OK) == 0 { return }
    let folders = [paths?.instarFolder ?? besideStore, record.backup?.parentFolder]
    guard let missing = folders.compactMap(\.self).first(where: { access($0, F_OK) != 0 })
    else { return }
    throw InstarError(
      .missingStore, what, store: record.store,
      cause: "the store and the folder '\(missing)' of the run do not exist",
      next: "mount their file system, or move their folder back, then start instard or "
        + "\(CommandText.repetition); if they were deleted on purpose, first run: mkdir -p "
        + CommandText.quoted(missing))
  }

  /// Finishes the run, or discards it and removes what it made outside of its folder.
  ///
  /// - Returns: The report, and whether the backup was removed.
  private func finishOrDiscard(
    _ paths: StorePaths, backup: String, _ what: String
  ) throws -> (report: RecoveryReport, isBackupRemoved: Bool) {
    guard access(paths.store, F_OK) == 0 else {
      return (discardWithoutStore(paths, backup: backup), false)
    }
    switch record.phase {
    case .cloning: return (discardBeforeCutover(paths, backup: backup), true)
    case .cutover: return try finishOrDiscardCutover(paths, backup: backup, what)
    }
  }

  private func discardWithoutStore(_ paths: StorePaths, backup: String) -> RecoveryReport {
    unlink(paths.fileList(record.run))
    removeWaitingClone(named: backup)
    var report = RecoveryReport(run: record.run, store: record.store, outcome: .storeMissing)
    report.backup = record.existingBackup(at: backup)
    if report.backup != nil { record.manifest?.write(besideBackup: backup) }
    return report
  }

  private func discardBeforeCutover(_ paths: StorePaths, backup: String) -> RecoveryReport {
    // The store was not written, so a backup under its final name is of no use.
    BackupFiles.remove(backup)
    var report = RecoveryReport(run: record.run, store: record.store, outcome: .discarded)
    // Only for the report. An error is ignored, because the store may be busy.
    let source = record.versionSource
    let identity = try? openPolicy.probe(
      paths.store, versionSources: source.map { [$0] } ?? [], busyTimeout: 0
    ).identity
    report.version = source.flatMap { identity?.declaredVersions[$0] } ?? identity?.version
    return report
  }

  /// Finishes a run whose cutover had begun, or discards it: the content of the store decides.
  private func finishOrDiscardCutover(
    _ paths: StorePaths, backup: String, _ what: String
  ) throws -> (report: RecoveryReport, isBackupRemoved: Bool) {
    let found = try outcome(paths, backup: backup, what)
    // A clone that still waits has not become the store: then another process gave it this version.
    let content = found.content == .new && record.isClone(backup) ? .other : found.content
    // Not before the store was read: until then the clone may be the only whole file.
    removeWaitingClone(named: backup)
    let list = paths.fileList(record.run)
    let changes = try ExternalFiles.Changes(listedIn: list)
    var report = RecoveryReport(
      run: record.run, store: record.store, outcome: content == .new ? .finished : .discarded)
    report.version = found.version
    report.backup = record.existingBackup(at: backup)
    noteUse(ofBackup: backup, in: &report)
    if report.backup != nil, content != .old {
      (report.manifest ?? record.manifest)?.write(besideBackup: backup)
    }
    let external = ExternalFiles(of: paths)
    switch content {
    case .new:
      report.cutover = cutover(of: paths)
      let left = external.removeOrphans(changes, besideFile: backup, listedIn: list)
      if let left { report.notes = (report.notes ?? []) + [left] }
    case .old:
      external.disown(changes, listedIn: list)
      if isStoreItself(backup) { break }
      BackupFiles.remove(backup)
      report.backup = nil
    case .other:
      // Another process changed the store since: its rows may reference any of the files.
      unlink(list)
    }
    if changes.isEmpty { unlink(list) }
    return (report, content == .old && report.backup == nil)
  }

  /// Notes what an app has done since to a backup that was the store's own file.
  private func noteUse(ofBackup backup: String, in report: inout RecoveryReport) {
    do {
      if let file = try formerFile(at: backup) {
        report.manifest = file.manifest
        report.notes = file.notes
      }
    } catch {
      // The store itself is whole: a backup that cannot be read must not keep it from being used.
      let cause = InstarError(error, what: "cannot read the backup").cause
      report.notes = [
        "the backup '\(backup)' cannot be read, so it is not known whether an app wrote to it: \(cause)"
      ]
    }
  }

  /// How the store got its new content; `nil` where the record does not say what was begun.
  private func cutover(of paths: StorePaths) -> CutoverKind? {
    guard record.cutover == .exchange else { return record.cutover }
    return record.isClone(paths.store) ? .exchange : .writeBack
  }

  /// Whether a backup is the store's own file. Where somebody put another file of the earlier version in its place
  /// since, the backup has rows that nobody else has.
  private func isStoreItself(_ backup: String) -> Bool {
    PhaseRecord.inode(of: backup).map { $0 == record.storeInode } ?? false
  }

  /// The backup, where it was the store's own file and an app has used it since; else `nil`.
  private func formerFile(at backup: String) throws -> FormerFile? {
    guard isStoreItself(backup), let manifest = record.manifest else { return nil }
    let file = try FormerFile(at: backup, earlier: manifest)
    return file.notes.isEmpty ? nil : file
  }

  /// Whether the backup of a run in the ledger is one that the run had removed, and that a loss of power brought back.
  ///
  /// The run ended before its cutover, so the store has all that the backup has, and a backup without a manifest is not
  /// listed: nobody has restored it. Who copies one has it locked.
  private func isUseless(_ backup: String, of paths: StorePaths) -> Bool {
    guard record.hasNoBackup == true, record.phase == .cloning, access(paths.store, F_OK) == 0
    else { return false }
    var status = stat()
    let isListed = lstat(BackupManifest.path(ofBackup: backup), &status) == 0 || errno != ENOENT
    return !isListed && !isLocked(backup)
  }

  /// Before an exchange the clone waits under the name of the backup, which the store's own file becomes. A clone that
  /// is still there, or is there again, must not pass for a backup.
  private func removeWaitingClone(named backup: String) {
    if record.isClone(backup) { unlink(backup) }
  }

  /// Finds out whether the store is at the old version or at the new one.
  ///
  /// - Throws: `corruptStore` or `notAStore` where the store is damaged. After any other error nothing was decided. The
  ///   backup is kept in both cases.
  private func outcome(
    _ paths: StorePaths, backup: String, _ what: String
  ) throws -> CutoverOutcome {
    do {
      return try CutoverOutcome(of: record, in: paths, openPolicy)
    } catch {
      var known = InstarError(error, what: what, store: record.store)
      if known.code == .corruptStore || known.code == .notAStore {
        known.state = "damaged"
        known.next = known.next ?? CommandText.restoring(record.store)
        if let backup = record.existingBackup(at: backup) {
          known.state = "damaged; backup kept at \(backup)"
          known.next = Self.restoring(record.store, from: backup)
        }
      }
      throw known
    }
  }

  /// The record stays until everything is removed: nobody else would know of the rest.
  private func requireRemoved(
    _ paths: StorePaths, backup: String?, _ what: String
  ) throws(InstarError) {
    guard let left = leftovers(paths, backup: backup).first else { return }
    throw InstarError(
      .unreadableStore, what, store: record.store, cause: "the recovery could not remove '\(left)'",
      next:
        "run: rm -r \(CommandText.quoted(left)), then start instard or \(CommandText.repetition)")
  }

  /// - Parameter backup: The run's backup; `nil` where it is kept.
  private func leftovers(_ paths: StorePaths, backup: String?) -> [String] {
    paths.leftovers(ofRun: record.run, removedBackup: backup)
      + paths.unfinishedFileLists(record.run)
  }

  /// Takes the lock of the run's folder.
  ///
  /// - Returns: `nil` where there is none of this path.
  private func lock(_ path: String, _ what: String) throws -> FolderLock? {
    guard access(path, F_OK) == 0 else { return nil }
    guard let lock = try FolderLock.tryLock(path) else { throw stillRunning(what) }
    return lock
  }

  /// Whether another process has locked a file. The lock is released at once: to a lease, a backup that is open here
  /// would look like one that an app has open.
  private func isLocked(_ path: String) -> Bool {
    do {
      guard let lock = try FolderLock.tryLock(path) else { return true }
      lock.release()
      return false
    } catch {
      // It is gone, or somebody put something else in its place: a keeper has its own file locked, wherever that is.
      return false
    }
  }

  private func stillRunning(_ what: String) -> InstarError {
    InstarError(
      .busyStore, what, store: record.store, cause: "the keeper of the run is still running",
      next: "wait until the run has ended, then \(CommandText.repetition)")
  }

  /// How to put a backup in the place of a store that cannot be used.
  static func restoring(_ store: String, from backup: String) -> String {
    let sideFiles = SideFile.paths(of: store).map(CommandText.quoted).joined(separator: " ")
    return "stop the app, then run: rm -f \(sideFiles) && "
      + "cat \(CommandText.quoted(backup)) > \(CommandText.quoted(store))"
  }

  /// The store's paths, also where the store is gone; `nil` where its folder is.
  private static func paths(of store: String) -> StorePaths? {
    guard !store.utf8.contains(0), let folder = RealPath.of(store.parentFolder) else { return nil }
    return StorePaths(resolvedStore: (folder == "/" ? "" : folder) + "/" + store.lastName)
  }
}
