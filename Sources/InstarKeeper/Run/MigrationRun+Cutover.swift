internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  // MARK: The backup

  func backupPath(_ paths: StorePaths) -> String {
    request.backupFolder.map { paths.backup(request.run, in: $0) } ?? paths.backup(request.run)
  }

  /// Gives the backup its final name, durably, with the files of its large values, before the store is written.
  mutating func keepBackup(_ attempt: CutoverAttempt, _ before: StoreBaseline) throws {
    let backup = backupPath(attempt.paths)
    try rename(attempt.folder.backup, toBackup: backup)
    do {
      try DurableFile.synchronizeFolder(request.backupFolder ?? attempt.paths.instarFolder)
      try attempt.paths.synchronizeFolder()
      try attempt.external.backUp(before.externalFiles, besideFile: backup)
      report.backup = backup
    } catch {
      unlink(backup)
      ExternalFiles.removeBackup(besideFile: backup)
      throw error
    }
  }

  private func rename(_ file: String, toBackup backup: String) throws {
    func failure(_ code: Int32) -> InstarError {
      InstarError(.backupFailed, "cannot keep the backup", cause: String(cString: strerror(code)))
    }
    if Foundation.rename(file, backup) == 0 { return }
    guard errno == EXDEV else { throw failure(errno) }
    // Another file system: its name comes last, so that it never names part of a backup.
    let partial = StorePaths.partial(backup)
    unlink(partial)
    do {
      try RunFolder.makeFile(partial)
      try FileCopy.copy(file, to: partial)
      try DurableFile.synchronizeFile(partial)
      guard Foundation.rename(partial, backup) == 0 else { throw failure(errno) }
    } catch {
      unlink(partial)
      throw error
    }
  }

  /// Removes what was made for a cutover that did not take place.
  private mutating func removeBackup(_ attempt: CutoverAttempt, _ changes: ExternalFiles.Changes) {
    let backup = backupPath(attempt.paths)
    unlink(backup)
    ExternalFiles.removeBackup(besideFile: backup)
    attempt.external.disown(changes, listedIn: attempt.paths.fileList(request.run))
    report.backup = nil
  }

  // MARK: The cutover

  /// Replaces the store's content by the clone's.
  ///
  /// - Returns: `false` when another process wrote to the store in the meantime: it was not changed.
  mutating func cutOver(
    _ attempt: CutoverAttempt, _ before: StoreBaseline, _ result: CloneVerification.Result
  ) throws -> Bool {
    let backup = backupPath(attempt.paths)
    let list = attempt.paths.fileList(request.run)
    var changes = ExternalFiles.Changes()
    let isCutOver: Bool
    var record = record(.cutover, attempt.inspection)
    do {
      record.backup = backup
      if !attempt.layouts.after.format.hasMetadata {
        record.fingerprint = result.structure.fingerprint
      }
      let earlier = try attempt.lock.read { try CutoverOutcome.Declaration($0, record) }
      record.declaredVersion = earlier.version
      record.earlierFingerprint = earlier.fingerprint
      try conversation.enter(record)
      state = .cutover
      changes = try attempt.external.adopt(
        result.externalFiles, ofClone: attempt.folder.clone, before: before.externalFiles,
        like: attempt.paths.store, listedIn: list)
      isCutOver = try writeBack(attempt, result)
    } catch {
      throw afterFailure(error, attempt, record, changes)
    }
    guard isCutOver else {
      removeBackup(attempt, changes)
      return false
    }
    attempt.external.removeOrphans(changes, besideFile: backup, listedIn: list)
    emit(.writtenBack) { $0.backup = backup }
    report.result = .migrated
    return true
  }

  /// Reads what a cutover that failed has left, and removes the backup only where nothing was written or the store is
  /// proven to be as before: without this a store that stays busy would collect a backup with each attempt.
  ///
  /// - Returns: The error with the state that the store is in.
  private mutating func afterFailure(
    _ error: any Error, _ attempt: CutoverAttempt, _ record: PhaseRecord,
    _ changes: ExternalFiles.Changes
  ) -> InstarError {
    var known = InstarError(error, what: Self.cutoverWhat, store: request.store)
    guard attempt.lock.mayHaveWritten else {
      removeBackup(attempt, changes)
      return known
    }
    let hasPath = attempt.lock.hasPath
    if !hasPath { attempt.lock.emptyLog() }
    attempt.lock.release()
    guard hasPath else {
      // The file of this name was never written.
      attempt.external.disown(changes, listedIn: attempt.paths.fileList(request.run))
      known.state = known.state ?? "replaced by another process during the cutover"
      return known
    }
    // If the store cannot be read now, nothing is proven: it is in doubt, and the backup stays.
    if let found = try? CutoverOutcome(of: record, in: attempt.paths, openPolicy),
      found.content == .old
    {
      removeBackup(attempt, changes)
      known.state = "unchanged; SQLite rolled the transaction back"
    } else {
      // Recovery decides: the phase record and the list of files stay.
      known.state = InstarError.inDoubt
      known.next = "run: \(report.command), which recovers the run first"
    }
    return known
  }

  private static let cutoverWhat = "cannot replace the store's content with the migrated clone"

  private func writeBack(
    _ attempt: CutoverAttempt, _ result: CloneVerification.Result
  ) throws -> Bool {
    let what = Self.cutoverWhat
    let path = attempt.path
    do {
      guard try attempt.lock.replaceContents(withClone: attempt.folder.clone) else { return false }
    } catch let error as DatabaseError {
      let known = InstarError(error, what: what)
      throw InstarError(
        known.code == .busyStore || known.code == .noSpace ? known.code : .writeBackFailed, what,
        cause: known.cause, next: known.next)
    }
    try attempt.lock.requirePath(what, since: "during the cutover")
    let isWritten = try attempt.lock.read { db in
      let structure = try StoreStructure.read(db, format: path.last.format)
      guard structure == result.structure else { return false }
      return try path.last.format.declaration(db, at: path.versionSource, in: structure).version
        == path.to
    }
    guard isWritten else {
      throw InstarError(
        .writeBackFailed, what, cause: "the store does not read back as version \(path.to)")
    }
    return true
  }
}
