internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
package import InstarWire

/// One run that brings a store back to the backup of an earlier run.
///
/// The states are those of `MigrationRun` without a worker: `inspecting`, `cloning`, `cutover`. The clone is a checked
/// copy of the backup. The state of the store that is replaced becomes a backup itself, so a restore can be undone.
///
/// Invariants:
/// - The supervisor has `cloning` and `cutover` on disk before the run enters them.
/// - Before `cutover` not a byte of the store is written; an error leaves neither clone nor a second backup behind.
/// - The backup that is restored stays as it is.
package struct RestoreRun {
  private enum State {
    case inspecting, cloning, cutover
  }

  private let request: RestoreRequest
  private let conversation: any KeeperConversation
  private let openPolicy: OpenPolicy
  /// The backup, or its copy.
  private var backup: StoredBackup
  private var state = State.inspecting
  private var report: RunReport
  /// `nil` before the run makes its first file.
  private var paths: StorePaths?
  private let start = ContinuousClock.now

  /// - Parameter conversation: Asked before each phase, and told what happens.
  package init(
    _ request: RestoreRequest, conversation: any KeeperConversation, openPolicy: OpenPolicy
  ) {
    self.request = request
    self.conversation = conversation
    self.openPolicy = openPolicy
    backup = StoredBackup(reference: request.backup)
    report = RunReport(ofNewRun: request.run, store: request.store)
    report.restoredRun = request.backup.run
    report.to = request.backup.manifest?.version
  }

  /// Performs the run, and reports how it ended.
  package mutating func perform() -> RunReport {
    do {
      try restore()
    } catch {
      let known = describe(error)
      report.fail(with: known, mayHaveBackup: state == .cutover)
      if known.code == .busyStore { report.result = .busy }
    }
    report.end(since: start, in: paths)
    return report
  }

  private mutating func restore() throws {
    try RunIdentifier.require(request.run)
    try RunIdentifier.require(request.backup.run)
    let file = try openPolicy.probeFile(request.store)
    let paths = StorePaths(resolvedStore: file.path)
    report.bytes = file.state.size
    // Before the store is locked: reading a large backup takes time.
    backup = backup.usable()
    if backup.reference.path != request.backup.path {
      report.notes.append(
        "the backup beside the store cannot be used, so its copy '\(backup.reference.path)' was restored"
      )
    }
    try backup.check()
    try conversation.enter(record(.cloning, nil))
    state = .cloning
    self.paths = paths
    report.result = .failed
    emit(.started)
    let files = try RunFiles(paths, run: request.run)
    defer { files.remove() }
    let target = try makeClone(files)
    report.to = report.to ?? target.version
    let lock = try StoreLock(
      try openPolicy.probeFile(paths.store), busyTimeout: request.busyTimeoutSeconds)
    defer { lock.release() }
    emit(.locked)
    let present = try backUp(lock, files, target)
    emit(.verified)
    try cutOver(lock, files, present: present, target: target)
  }

  // MARK: Steps

  /// What the copy of the store contains, before it is replaced.
  private struct Present {
    var manifest: BackupManifest
    /// The external values that the backup gets. Nobody knows which of them a damaged store references: all.
    var externalFiles: Set<String>
    /// Those that nobody references once the store is replaced, if the backup that is restored does not. None of a
    /// damaged store: they may be those of another.
    var ownFiles: Set<String>
  }

  private mutating func backUp(
    _ lock: StoreLock, _ files: RunFiles, _ target: StoredBackup.Contents
  ) throws -> Present {
    let (pageCount, pageSize) = try lock.read { db in
      (
        try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0,
        try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0
      )
    }
    try requirePageSize(pageSize, lock, target)
    let bytes = pageCount * pageSize
    // The backup, and for the cutover either the log with the new pages or the journal with the old ones.
    try FileCopy.requireSpace(
      bytes + (lock.usesLog ? target.bytes : bytes) + FileCopy.smallFiles,
      in: files.paths.instarFolder)
    try RunFiles.makeFile(files.backup)
    try lock.copy(to: files.backup)
    try DurableFile.synchronizeFile(files.backup)
    let present = try describePresent(files, target)
    report.from = present.manifest.version
    report.manifest = present.manifest
    emit(.backedUp) { $0.bytes = bytes }
    return present
  }

  /// In write-ahead-log mode SQLite cannot change the page size of a file, so its backup API refuses such a copy.
  private func requirePageSize(
    _ pageSize: Int64, _ lock: StoreLock, _ target: StoredBackup.Contents
  ) throws(InstarError) {
    guard lock.usesLog, pageSize != target.pageSize else { return }
    let store = CommandText.quoted(request.store)
    throw InstarError(
      .unsupported, "cannot restore the store",
      cause: "the backup has pages of \(target.pageSize) bytes and the store of \(pageSize), "
        + "which SQLite cannot change in write-ahead-log mode",
      next:
        "stop the app, run: sqlite3 \(store) 'PRAGMA journal_mode = DELETE' (the app can return to WAL "
        + "afterwards), then run: \(request.command)")
  }

  /// Reads the copy of the store. A damaged store is restored too: that may be why it is restored.
  private mutating func describePresent(
    _ files: RunFiles, _ target: StoredBackup.Contents
  ) throws -> Present {
    let external = ExternalFiles(of: files.paths)
    var damage: String?
    var contents: StoredBackup.Contents?
    do {
      try GuardedConnection.use(files.backup, access: .immutable) { db in
        contents = try StoredBackup.Contents(
          db, source: request.backup.manifest?.versionSource, external: external)
        try StoreCheck.requireQuickCheck(db, "the store")
      }
    } catch {
      let known = InstarError(error, what: "cannot read the store")
      guard known.provesUnusableContent else { throw known }
      damage = known.cause
    }
    let ownFiles = damage == nil ? contents?.externalFiles : nil
    let externalFiles = ownFiles ?? external.names()
    var manifest = try BackupManifest(
      ofFile: files.backup, run: files.run, store: request.store,
      format: contents?.format ?? target.format,
      external: external.measure(externalFiles))
    manifest.version = contents?.version
    manifest.versionSource = manifest.format.hasMetadata ? nil : target.versionSource
    if let damage {
      manifest.check = damage
      report.notes.append("the store was damaged before it was restored: \(damage)")
      let left = externalFiles.subtracting(target.externalFiles)
      if !left.isEmpty {
        report.notes.append(
          "\(left.count) files of large values stay beside the store: only the damaged content could show whether it "
            + "references them; its backup has them too")
      }
    }
    return Present(manifest: manifest, externalFiles: externalFiles, ownFiles: ownFiles ?? [])
  }

  private func makeClone(_ files: RunFiles) throws -> StoredBackup.Contents {
    let bytes = try backup.reference.manifest?.bytes ?? FileCopy.size(of: backup.path)
    try FileCopy.requireSpace(bytes + FileCopy.smallFiles, in: files.paths.instarFolder)
    try backup.write(to: files.cloneFile)
    // The backup may have changed since it was checked: what is written back is what is checked.
    let contents = try backup.verify(files.cloneFile)
    try FileCopy.useRollbackJournal(files.cloneFile)
    return contents
  }

  private mutating func cutOver(
    _ lock: StoreLock, _ files: RunFiles, present: Present, target: StoredBackup.Contents
  ) throws {
    var cutover = Cutover(
      conversation, openPolicy, lock: lock, files: files,
      external: ExternalFiles(of: files.paths), backupFolder: nil, command: request.command)
    defer {
      report.backup = cutover.keptBackup
      if cutover.keptBackup == nil { report.manifest = nil }
    }
    noteMissingFiles(target, files)
    try cutover.keepBackup(externalFiles: present.externalFiles)
    state = .cutover
    var record = record(.cutover, target)
    record.manifest = present.manifest
    let content = Cutover.Content(
      format: target.format, structure: target.structure, externalFiles: target.externalFiles,
      newFiles: backup.external, version: target.version, versionSource: target.versionSource)
    guard try cutover.perform(record, content, earlierFiles: present.ownFiles) else {
      throw InstarError(
        .busyStore, "cannot restore the store",
        cause: "another process wrote to the store before the cutover",
        next: "when the store is less busy, run: \(request.command)")
    }
    report.result = .restored
    report.cutover = cutover.kind
    report.notes += cutover.notes
    emit(.cutOver) {
      $0.backup = cutover.keptBackup
      $0.cutover = cutover.kind
    }
  }

  private mutating func noteMissingFiles(_ target: StoredBackup.Contents, _ files: RunFiles) {
    let present = ExternalFiles(of: files.paths)
    let missing = target.externalFiles.filter { !present.has($0) && !backup.external.has($0) }
    guard let first = missing.min() else { return }
    let subject =
      missing.count == 1
      ? "1 file of a large value is" : "\(missing.count) files of large values are"
    report.notes.append(
      "\(subject) neither beside the store nor beside the backup, such as '\(first)'")
  }

  // MARK: Reporting

  /// - Parameter target: `nil` before the clone is made.
  private func record(_ phase: Phase, _ target: StoredBackup.Contents?) -> PhaseRecord {
    var record = report.record(phase)
    guard let target else {
      record.versionSource = request.backup.manifest?.versionSource
      return record
    }
    record.to = target.version
    if !target.format.hasMetadata { record.versionSource = target.versionSource }
    record.fingerprint = target.structure.fingerprint
    return record
  }

  private func emit(_ step: RunEvent.Step, _ fill: (inout RunEvent) -> Void = { _ in }) {
    var event = report.event(step)
    fill(&event)
    // An event may be lost: if the supervisor has ended, the next question fails.
    try? conversation.send(.run(event))
  }

  private func describe(_ error: any Error) -> InstarError {
    let what = "cannot restore '\(request.store)' to the backup of run \(request.backup.run)"
    var known = InstarError(error, what: what, store: request.store)
      .about(what, store: request.store)
    known.nameState(keeping: report.backup)
    // Random bytes look encrypted. If its app has encrypted the store, the advice loses nothing.
    if [.corruptStore, .notAStore, .encryptedStore, .missingStore].contains(known.code) {
      known.next = CommandText.replacement(
        of: request.store, byBackupOf: request.backup.run)
    }
    known.completeNext(.command(request.command))
    known.next = known.next ?? adviceOnRights()
    return known
  }

  /// The next step if the keeper, as the store's owner, has no permission to write the store or its folder.
  private func adviceOnRights() -> String? {
    let folder = request.store.parentFolder
    let paths = [request.store, folder]
    guard let path = paths.first(where: { access($0, W_OK) != 0 }) else { return nil }
    return errno == EROFS
      ? "mount its file system for writing, then run: \(request.command)"
      : "run as the owner of the store: chmod u+w \(CommandText.quoted(path)); "
        + "then run: \(request.command)"
  }
}

extension BackupManifest {
  /// The manifest of a backup, which is complete.
  init(
    ofFile file: String, run: String, store: String, format: StoreFormat,
    external: (count: Int, bytes: Int64)
  ) throws(InstarError) {
    guard let status = stat(of: file) else {
      throw RunFiles.failure("cannot read '\(file)'", errno)
    }
    self.init(
      run: run, store: store, madeAt: Date().timeIntervalSince1970,
      bytes: Int64(status.st_size), contentHash: try FileDigest.ofFile(file),
      externalFiles: external.count, externalBytes: external.bytes, format: format)
  }
}
