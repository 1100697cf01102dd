internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  /// The store may have been written to since it was inspected; its version must still be the same.
  func requireUnchanged(_ lock: StoreLock, _ inspection: StoreInspection) throws {
    let identity = inspection.probe.identity
    let isUnchanged = try lock.read { db in
      try StoreProbe.read(
        db, file: inspection.probe.file, versionSources: Set(identity.declaredVersions.keys)
      ).identity == identity
    }
    guard isUnchanged else {
      throw InstarError(
        .storeChanged, "cannot migrate the store",
        cause: "another process changed the store's version after it was inspected",
        next: "run the same command again")
    }
  }

  /// What was read from the backup, which is what the store was.
  struct Backup {
    let store: StoreBaseline
    let removedValues: RemovedValues
    let convertedValues: ConvertedValues
  }

  /// Room for what is small beside a store: headers of journals, lists of files, folders.
  static let smallFiles: Int64 = 1 << 20

  /// Refuses a run that would fill the disk, before anything is made: on a full disk SQLite cannot even remove the
  /// empty log that it makes when it opens a store.
  ///
  /// Backup and clone take the space, and what SQLite needs for the cutover: the rollback journal takes every page of
  /// the old store, the write-ahead log every page of the new one.
  func requireSpaceForRun(_ inspection: StoreInspection) throws {
    let file = inspection.probe.file
    let bytes = file.state.size + (file.log?.size ?? 0)
    try FileCopy.requireSpace(bytes * 3 + Self.smallFiles, in: inspection.paths.folder)
  }

  /// Refuses a cutover that would fill the disk: stages may have made the store larger.
  func requireSpaceForCutover(_ attempt: CutoverAttempt) throws {
    let (old, new) = (
      try FileCopy.size(of: attempt.folder.backup), try FileCopy.size(of: attempt.folder.clone)
    )
    let growth = max(new - old, 0)
    try FileCopy.requireSpace(
      (attempt.lock.usesLog ? new : old) + growth + Self.smallFiles, in: attempt.folder.path)
  }

  /// Makes the backup, checks it, and makes the clone from it.
  func backUpAndClone(_ attempt: CutoverAttempt) throws -> Backup {
    let (lock, folder) = (attempt.lock, attempt.folder)
    try RunFolder.makeFile(folder.backup)
    let (pageCount, pageSize) = try lock.inSnapshot {
      try requireUnchanged(lock, attempt.inspection)
      try lock.copy(to: folder.backup)
      return try lock.read { db in
        (
          try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0,
          try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0
        )
      }
    }
    let bytes = pageCount * pageSize
    try DurableFile.synchronizeFile(folder.backup)
    let backup = try checkBackup(of: attempt, pageCount: pageCount)
    // The clone starts from bytes that are known to be sound.
    try FileCopy.copy(folder.backup, to: folder.clone)
    try FileCopy.useRollbackJournal(folder.clone)
    emit(.backedUp) { $0.bytes = bytes }
    return backup
  }

  /// - Parameter pageCount: The pages of the store, which the backup must have too.
  private func checkBackup(of attempt: CutoverAttempt, pageCount: Int64) throws -> Backup {
    let connection = try GuardedConnection.open(attempt.folder.backup, access: .immutable)
    defer { try? connection.close() }
    return try connection.inDatabase { db in
      guard try Int64.fetchOne(db, sql: "PRAGMA page_count") == pageCount else {
        throw InstarError(
          .backupFailed, "cannot back up the store", cause: "the backup is shorter than the store",
          next: "run the same command again")
      }
      try StoreCheck.requireSound(db, "the store", path: attempt.inspection.paths.store)
      let layout = attempt.layouts.before
      return Backup(
        store: try StoreBaseline(db, layout: layout),
        removedValues: try RemovedValues(db, layout: layout, path: attempt.path),
        convertedValues: try ConvertedValues(db, layout: layout, path: attempt.path))
    }
  }
}
