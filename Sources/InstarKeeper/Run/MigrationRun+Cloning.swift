internal import GRDB
internal import InstarChange
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  /// Throws if the store's version changed after the inspection, which read the store without the lock.
  func requireUnchanged(_ lock: StoreLock, _ inspection: StoreInspection) throws {
    if try lock.hasContent(of: inspection.probe.file) { return }
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
        next: CommandText.repetition)
    }
  }

  /// Refuses a run that would fill the disk, as a plan does, before anything is made: on a full disk SQLite cannot even
  /// remove the empty log that it makes when it opens a store.
  mutating func requireSpaceForRun(_ inspection: StoreInspection) throws {
    let bytes = inspection.neededBytes
    report.rehearsal?.neededBytes = bytes
    try FileCopy.requireSpace(bytes, in: inspection.paths.folder)
  }

  /// Refuses a cutover that would fill the disk: stages may have made the store larger.
  ///
  /// - Parameter copiesPages: Whether a write-back copies all pages of the clone.
  mutating func requireSpaceForCutover(_ attempt: CutoverAttempt, copiesPages: Bool) throws {
    let isDeparting = attempt.departing != nil
    let old = try FileCopy.size(of: isDeparting ? attempt.paths.store : attempt.files.backup)
    let new = try attempt.files.clone.size()
    let growth = max(new - old, 0)
    // Where the exchange is not possible in the end, the store is copied after all.
    let copy = isDeparting ? old : 0
    let journal = copiesPages ? (attempt.lock.usesLog ? new : old) : 0
    let bytes = journal + growth + copy + FileCopy.smallFiles
    if let needed = report.rehearsal?.neededBytes {
      // The clone and the backup exist already.
      report.rehearsal?.neededBytes = max(needed, old + new + bytes)
    }
    try FileCopy.requireSpace(bytes, in: attempt.paths.instarFolder)
  }

  /// Counts the space of a compaction: for a moment two copies of the clone exist beside the backup.
  ///
  /// - Parameter grown: The size of the clone before it was compacted.
  mutating func noteSpace(ofCompaction grown: Int64, _ attempt: CutoverAttempt) throws {
    let compacted = try attempt.files.clone.size()
    guard compacted < grown, let needed = report.rehearsal?.neededBytes else { return }
    let backup = try FileCopy.size(of: attempt.files.backup)
    report.rehearsal?.neededBytes = max(needed, backup + grown + compacted + FileCopy.smallFiles)
  }

  /// The content of the locked store, where its own file can become the backup: the store is to be exchanged for its
  /// clone, and nothing is known that prevents that.
  func departingContent(
    _ lock: StoreLock, _ files: RunFiles
  ) throws -> StoreLock.LockedContent? {
    guard request.backupFolder == nil, mayBeExchanged(lock, files, bytes: report.bytes ?? 0) else {
      return nil
    }
    return try lock.lockedContent()
  }

  /// Whether nothing is known that keeps the store from being exchanged for a clone of so many bytes.
  func mayBeExchanged(_ lock: StoreLock, _ files: RunFiles, bytes: Int64) -> Bool {
    var holders = StoreHolders()
    return mayExchange && !request.rehearses
      && Exchange.isWanted(request.cutover, bytes: bytes, openPolicy)
      && Exchange.obstacle(lock, files) == nil && holders.ofFile(lock.path).isEmpty
  }

  /// Makes clone and backup, both with the bytes of the store. A run in a transaction has no clone, and a store that
  /// becomes the backup itself has no copy.
  ///
  /// - Returns: The pages of the store, and what it was.
  func makeCopies(
    _ attempt: CutoverAttempt
  ) throws -> (pageCount: Int64, before: SchemaBaseline) {
    let (lock, files) = (attempt.lock, attempt.files)
    let (pageCount, before) = try lock.inSnapshot {
      try requireUnchanged(lock, attempt.inspection)
      let format = attempt.layouts.before.format
      let pageCount = try copy(lock, files)
      return try lock.read { db in
        var before = try SchemaBaseline(db, format: format)
        if request.verification == .standard, files.clone.transaction == nil,
          pageCount >= PageComparison.smallestPageCount
        {
          // Where the stages do not fit the schema, the verification says so.
          let rows = try? attempt.path.expectedSchema(
            after: before.schema, rows: before.bookkeeping
          ).rows
          before.pages = try PageBaseline(
            db, format: format, includesHistory: rows == .updatesHistory)
        }
        return (pageCount, before)
      }
    }
    if attempt.departing != nil { return (pageCount, before) }
    if case .file(let clone) = files.clone {
      try RunFiles.makeFile(files.backup)
      try FileCopy.copy(clone, to: files.backup)
    }
    let bytes = try FileCopy.size(of: files.backup)
    emit(.backedUp) { $0.bytes = bytes }
    return (pageCount, before)
  }

  /// Copies the store to the clone, or to the backup where there is no clone.
  ///
  /// - Returns: The pages of the store.
  private func copy(_ lock: StoreLock, _ files: RunFiles) throws -> Int64 {
    switch files.clone {
    case .file(let clone): try lock.copy(to: clone)
    case .transaction: try lock.copy(to: files.backup)
    }
  }

  /// The transaction of a locked store in which its run can make all changes; `nil` where the run needs a clone.
  ///
  /// It can if the store stays small, no value is in a file, and known statements make the stages without writing a
  /// value of the app.
  func transaction(
    _ inspection: StoreInspection, _ layouts: Layouts, _ lock: StoreLock
  ) throws -> StoreTransaction? {
    let path = inspection.path
    guard isShort, request.cutover != .exchange, request.sqlDebugLevel == 0,
      !path.hasExternalValues, inspection.fit.missingIndexes.isEmpty
    else { return nil }
    return try lock.read { db in
      // The store may have grown since it was inspected.
      let pages = try db.integer("PRAGMA page_count") ?? 0
      let schema = try SchemaText(db)
      guard try pages * (db.integer("PRAGMA page_size") ?? 0) <= Self.shortRunBytes,
        !host.loadsPlugin(for: path.schemaStages, on: schema)
      else { return nil }
      let bookkeeping = try layouts.before.format.bookkeepingStatements(db)
      // Where the stages do not fit the schema, another process may have migrated the store meanwhile: `makeCopies`
      // finds that, and the verification asks again.
      guard let expected = try? path.expectedSchema(after: schema, rows: bookkeeping),
        let statements = expected.statements, expected.rows <= .updatesBooks
      else { return nil }
      // With a full auto-vacuum the commit moves verified pages.
      let fullAutoVacuum = 1
      if try db.integer("PRAGMA auto_vacuum") == fullAutoVacuum { return nil }
      // SQLite compacts no store in a transaction.
      if expected.rows == .updatesBooks,
        Compaction.isWorthwhile((all: pages, free: try db.integer("PRAGMA freelist_count") ?? 0))
      {
        return nil
      }
      return lock.transaction(making: statements)
    }
  }
}
