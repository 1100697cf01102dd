internal import GRDB
internal import InstarChange
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  /// Compares the clone with the store, after stages that wrote no row of the app.
  ///
  /// - Parameter work: How the stages ended; `nil` where they have not run.
  /// - Returns: Whether the clone has the rows of the store; `nil` where that is not asked.
  func compare(
    _ attempt: CutoverAttempt, _ before: SchemaBaseline, after work: Result<Void, any Error>?
  ) -> BackgroundWork<Bool>? {
    guard case .success = work, let own = before.pages,
      case .file(let clone) = attempt.files.clone
    else { return nil }
    let comparison = PageComparison(
      clone: clone, source: attempt.backupSource, own: own,
      format: attempt.layouts.before.format)
    return BackgroundWork { try comparison.perform() }
  }

  /// Verifies the clone, stamps it, and fills the report.
  ///
  /// - Returns: What the verified clone is. Its structure is that of the stamped clone: a plan may keep the version in
  ///   a table.
  mutating func verifyAndStamp(
    _ attempt: CutoverAttempt, _ before: SchemaBaseline, _ verification: CloneVerification,
    _ comparison: BackgroundWork<Bool>?, _ checking: BackgroundWork<BackupCheck.Result>
  ) throws -> CloneVerification.Result {
    let verified = try verify(attempt, before, verification, comparison, checking)
    let lost = attempt.path.losses(lostValues)
    let backup = try checking.wait()
    var result = verified
    try attempt.external.requireFiles(
      result.externalFiles.subtracting(backup.externalFiles), ofClone: attempt.files.cloneFile)
    try attempt.path.requireAcceptance(
      of: lost, isAccepted: request.acceptsLoss, command: command)
    emit(.verified) { $0.rows = result.census.rows.values.reduce(0, +) }
    let removed = try sentences(backup.removedValues, attempt)
    let stamp = try StoreStamp(
      earlier: before.metadata, uuid: attempt.inspection.probe.uuid, path: attempt.path,
      layout: attempt.layouts.after, fingerprint: result.structure.fingerprint,
      reference: attempt.inspection.reference)
    result.structure = try attempt.files.clone.stamp { db in
      try stamp.apply(db)
      return try StoreStructure.read(db, format: attempt.layouts.after.format)
    }
    // Missing indexes were made in the clone only.
    if result.keepsRowsOfStore, attempt.inspection.fit.missingIndexes.isEmpty,
      let statements = verification.expected.statements,
      let pages = before.pages
    {
      result.change = StoreChange(
        statements: Array(statements.joined()), stamp: stamp, tables: pages.booksOfFormat)
    }
    report.notes =
      [attempt.inspection.adoptionNote].compactMap(\.self)
      + attempt.path.schemaStages.compactMap(\.fusionNote)
      + removed + lost.map(\.sentence) + stampNotes(stamp, attempt.path)
      + result.notes
      + metadataNotes(attempt.inspection, before)
      + [attempt.inspection.probe.replicator?.note].compactMap(\.self)
    report.count(before: backup.census, after: result.census, path: attempt.path)
    let invariants = attempt.path.invariants.map(\.name)
    if !invariants.isEmpty { report.invariants = invariants }
    return result
  }

  /// Returns what became of the values of attributes that the plan removes.
  private func sentences(_ removed: RemovedValues, _ attempt: CutoverAttempt) throws -> [String] {
    if removed.values.isEmpty { return [] }
    return try attempt.files.clone.read { db in
      try ReplacedValues(
        path: attempt.path, clone: db, layout: attempt.layouts.after,
        store: attempt.earlierStore
      ).sentences(removed)
    }
  }

  private mutating func verify(
    _ attempt: CutoverAttempt, _ before: SchemaBaseline, _ verification: CloneVerification,
    _ comparison: BackgroundWork<Bool>?, _ checking: BackgroundWork<BackupCheck.Result>
  ) throws -> CloneVerification.Result {
    let (files, layout) = (attempt.files, attempt.layouts.after)
    // Where the whole folder was moved, the clone went with the store.
    try attempt.lock.requirePath("cannot migrate the store", since: "after it was copied")
    let compacted = try compactClone(attempt, verification)
    let writing = try startWritingIfExchanged(attempt)
    // The exchange leases the clone, which nobody may have open then.
    defer { _ = writing?.failure() }
    let hasSameRows = try comparison?.wait() ?? false
    do {
      return try files.clone.read { db in
        let externalFiles = try ExternalFiles.references(db, layout)
        var result = try verification.verify(
          db, before: { try checking.wait().census }, of: attempt.earlierStore,
          read: { db, reading in
            if hasSameRows { return try readSharedPages(reading, db, attempt, before) }
            if try transactionKeepsRows(attempt, before, verification, db) {
              return try readTransaction(reading, db)
            }
            return before.pages == nil
              ? try reading.perform(db) : try perform(reading, db, files.clone)
          })
        result.externalFiles = externalFiles
        result.keepsRowsOfStore =
          hasSameRows || verification.onlyUpdatesBooks && compacted == nil
        result.notes += [compacted].compactMap(\.self)
        return result
      }
    } catch let damaged as DamagedStore {
      throw damaged.error
    } catch let error as DatabaseError
      // A disk that failed, perhaps for a moment only, says nothing about the clone.
      where ![.SQLITE_IOERR, .SQLITE_NOMEM].contains(error.resultCode)
    {
      throw InstarError(
        .verificationFailed, "cannot verify the migrated clone",
        cause: error.message ?? "SQLite reports \(error.extendedResultCode)",
        next: InstarError.adviceOnDisk)
    } catch let error as InstarError where error.code == .corruptStore {
      var error = error
      error.code = .verificationFailed
      throw error
    }
  }

  /// Removes the free pages of a clone that is a file, if it has many.
  ///
  /// - Returns: A sentence for the report; `nil` where the clone stays as it is.
  private mutating func compactClone(
    _ attempt: CutoverAttempt, _ verification: CloneVerification
  ) throws -> String? {
    let files = attempt.files
    guard case .file(let clone) = files.clone else { return nil }
    try CloneVerification.requirePlainFile(files.paths.name, in: files.cloneFolder)
    // A clone that is compared with the store keeps its pages where they are.
    guard !verification.leavesRows,
      let compaction = try Compaction(clone, attempt.layouts.after)
    else { return nil }
    let grown = try files.clone.size()
    let compacted = try compaction.perform(requireSchema: verification.requireSchema)
    try noteSpace(ofCompaction: grown, attempt)
    return compacted
  }

  /// Brings the clone to disk while it is verified, if it is to become the store by an exchange.
  private func startWritingIfExchanged(_ attempt: CutoverAttempt) throws -> BackgroundWork<Void>? {
    let files = attempt.files
    guard files.clone.transaction == nil,
      try attempt.departing != nil
        || mayBeExchanged(attempt.lock, files, bytes: files.clone.size())
    else { return nil }
    return BackgroundWork { [clone = files.cloneFile] in FileCopy.startWriting(clone) }
  }

  /// Reads a clone that has the rows of the store on the same pages.
  private func readSharedPages(
    _ reading: CloneVerification.Reading, _ db: Database, _ attempt: CutoverAttempt,
    _ before: SchemaBaseline
  ) throws -> StoreCensus {
    // The store's indexes are on the same pages, and its own check leaves them out. The comparison has checked those of
    // the clone's own trees.
    let tables = StoreCheck.Tables.except(before.pages?.tables ?? [])
    do {
      try StoreCheck.requireIndexes(db, "the clone", path: nil, of: tables)
    } catch {
      // The entries of a sound store may be wrong under the new schema.
      try requireIndexesOfStore(attempt, of: tables)
      throw error
    }
    try StoreCheck.requireConstraints(db, "the clone")
    try reading.checkIntegrity(db)
    try reading.checkValues(db)
    return try reading.count(db, ColumnSums())
  }

  /// - Throws: `DamagedStore` where the indexes of the store itself do not match its tables.
  private func requireIndexesOfStore(
    _ attempt: CutoverAttempt, of tables: StoreCheck.Tables
  ) throws {
    do {
      try attempt.backupSource.read {
        try StoreCheck.requireIndexes($0, "the store", path: attempt.paths.store, of: tables)
      }
    } catch let error as InstarError where error.code == .corruptStore {
      throw DamagedStore(error: error)
    }
  }

  /// The damage that the clone has is that of the store.
  private struct DamagedStore: Error {
    let error: InstarError
  }

  /// Reads a transaction that has the rows and indexes of the backup.
  private func readTransaction(
    _ reading: CloneVerification.Reading, _ db: Database
  ) throws -> StoreCensus {
    // The check of the backup has compared the indexes with the rows.
    try StoreCheck.requireSound(db, "the clone", checksIndexes: { false })
    try reading.checkValues(db)
    return try reading.count(db, ColumnSums())
  }

  /// Whether the transaction of a run has the rows and indexes of the backup. Always `false` with `verify: full`, which
  /// reads everything again.
  private func transactionKeepsRows(
    _ attempt: CutoverAttempt, _ before: SchemaBaseline, _ verification: CloneVerification,
    _ db: Database
  ) throws -> Bool {
    // A new column can change what an expression means: a text in double quotes becomes the column of that name.
    guard attempt.files.clone.transaction != nil, request.verification == .standard,
      verification.leavesRows, before.indexesStoredValues, StoreCheck.indexesStoredValues(db)
    else { return false }
    return try TransactionComparison(
      backup: attempt.files.backup, roots: before.roots, pageSize: before.pageSize
    ).hasSameRows(db)
  }

  /// Two threads read a large clone: one its pages and its values, the other its indexes and what is counted.
  private func perform(
    _ reading: CloneVerification.Reading, _ db: Database, _ clone: Clone
  ) throws -> StoreCensus {
    let (columns, checkIntegrity, count) = (reading.columns, reading.checkIntegrity, reading.count)
    let counting = BackgroundWork {
      try clone.read { db in
        let sums = try StoreCheck.requireIndexes(db, "the clone", path: nil, summing: columns)
        try checkIntegrity(db)
        return try count(db, sums)
      }
    }
    do {
      try StoreCheck.requireSound(db, "the clone", checksIndexes: { false })
      try reading.checkValues(db)
    } catch {
      // The thread must have ended before the clone is removed. If it found damage, report that: the values may only
      // seem wrong because of it.
      if let other = counting.failure() as? InstarError, other.code == .corruptStore { throw other }
      throw error
    }
    return try counting.wait()
  }

  private func stampNotes(_ stamp: StoreStamp, _ path: MigrationPath) -> [String] {
    guard stamp.lacksSchema else { return [] }
    return [
      "the schema of version \(path.to) is too large for the store's metadata, so"
        + " 'instarctl schema import' can only read the tables"
    ]
  }

  private func metadataNotes(
    _ inspection: StoreInspection, _ before: SchemaBaseline
  ) -> [String] {
    var notes: [String] = []
    if let problem = inspection.probe.metadataProblem, before.metadata == nil {
      notes.append(
        "the store has new metadata, because \(problem); only the backup has what the app kept there"
      )
    }
    let path = inspection.path
    let hasChanges = path.last.entities.contains { !path.unchangedEntities.contains($0.name) }
    if hasChanges, let metadata = before.metadata, !metadata.isMadeByInstar,
      inspection.reference == nil
    {
      // Apple's frameworks recognize versions by hashes that cannot be computed here.
      notes.append(
        "Apple's frameworks may not recognize version \(path.to):"
          + " Instar computed the hashes of the changed entities")
    }
    return notes
  }
}

extension MigrationRun.CutoverAttempt {
  /// The store before the stages, as what becomes the backup has it.
  fileprivate var earlierStore: EarlierStore {
    EarlierStore(layout: layouts.before, read: backupSource.read)
  }
}
