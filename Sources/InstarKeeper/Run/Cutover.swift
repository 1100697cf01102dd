internal import CInstar
internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Replaces a store's content with a clone's: the last steps of a migration or a restore.
///
/// 1. `keepBackup` gives the backup its final name, durably, unless the store's own file becomes the backup.
/// 2. `perform` asks for the phase `cutover`, adds the clone's external values to the store, and replaces the content:
///    by exchange (see `Exchange`), else by write-back. There SQLite writes the store in one transaction: all pages of
///    the clone, or the change that made the clone (see `StoreChange`). If the run has changed and verified the store
///    in a transaction already, this is committed (see `StoreTransaction`).
///
/// If the store's own file becomes the backup, the clone has the backup's final name before the exchange. So the file
/// that leaves gets that name in the same instant, and is never in a folder that the run removes.
///
/// After an error a new connection reads the store, because the failed one does not know whether its commit happened.
/// The backup is removed only if nothing was written, or if the new connection proves that the store is as before.
/// Keeping it always would leave one more backup with each attempt on a busy store.
struct Cutover {
  /// The clone, and how the store is recognized that has its content.
  struct Content {
    /// The format of the clone.
    var format: StoreFormat
    var structure: StoreStructure
    /// The external values that its rows reference.
    var externalFiles: Set<String>
    /// The files of these values, where the store does not have them.
    var newFiles: ExternalFiles
    var version: Schema.Version?
    var versionSource: VersionSource
    /// The change that makes this content of the store's; `nil` where only a copy of all pages does.
    var change: StoreChange?
  }

  let conversation: any KeeperConversation
  let openPolicy: OpenPolicy
  let lock: StoreLock
  let files: RunFiles
  let external: ExternalFiles
  /// A folder for the backup that the operator chose; `nil` for `.instar/` beside the store.
  let backupFolder: String?
  /// The command that recovers the run and repeats it.
  let command: String
  /// Which way to take. The operator chooses it for a migration.
  var policy = CutoverPolicy.writeBack
  /// Where the backup is, or the clone waits for the exchange that makes the store the backup; `nil` before
  /// `keepBackup`, and after the file was removed.
  private(set) var keptBackup: String?
  /// Whether an exchange makes the store's own file the backup. Then there is no copy of the store.
  var storeBecomesBackup = false
  /// The manifest of the backup, as the phase on disk has it; `nil` before `perform`.
  private(set) var manifest: BackupManifest?
  /// How the content was replaced; `nil` where it was not.
  private(set) var kind: CutoverKind?
  /// Whether the change made something else of the store than of the clone. The store is as before then.
  private(set) var hasOtherResult = false
  /// The file of an exchange that is not the store, where an app has it open.
  private(set) var staleFile: StaleFile?
  /// Why the store was not exchanged, although it should be, and which external values stay without a reference.
  private(set) var notes: [String] = []

  private var paths: StorePaths { files.paths }
  private var run: String { files.run }
  private var backup: String { paths.backup(run, in: backupFolder ?? paths.instarFolder) }
  private var fileList: String { paths.fileList(run) }

  static let what = "cannot replace the content of the store"

  init(
    _ conversation: any KeeperConversation, _ openPolicy: OpenPolicy, lock: StoreLock,
    files: RunFiles, external: ExternalFiles, backupFolder: String?, command: String
  ) {
    self.conversation = conversation
    self.openPolicy = openPolicy
    self.lock = lock
    self.files = files
    self.external = external
    self.backupFolder = backupFolder
    self.command = command
  }

  // MARK: The backup

  /// Gives a copied backup its final name, durably, and every backup the files of its external values, before the store
  /// is written.
  mutating func keepBackup(externalFiles: Set<String>) throws {
    let backup = backup
    do {
      if !storeBecomesBackup { try nameCopy() }
      try external.backUp(externalFiles, besideFile: backup)
      keptBackup = backup
    } catch {
      BackupFiles.remove(backup)
      throw error
    }
  }

  /// Gives the copy of the store its final name, durably.
  private func nameCopy() throws {
    try Self.rename(files.backup, toBackup: backup)
    try DurableFile.synchronizeFolder(backupFolder ?? paths.instarFolder)
    try paths.synchronizeInstarFolderName()
  }

  /// Copies the store to a backup, if the exchange that was to make its file the backup is not possible.
  ///
  /// - Precondition: The store is locked, and its content is the one that was checked.
  private mutating func copyStore(_ record: inout PhaseRecord) throws {
    storeBecomesBackup = false
    try RunFiles.makeFile(files.backup)
    try lock.copy(to: files.backup)
    try DurableFile.synchronizeFile(files.backup)
    let bytes = try FileCopy.size(of: files.backup)
    let hash = try FileDigest.ofFile(files.backup)
    try nameCopy()
    try enter(&record, contentHash: hash, bytes: bytes)
  }

  /// Writes the phase again with the manifest of the backup as it is now. A store that left its log has another header,
  /// and a copy lacks the bytes after the last page of the store's file.
  private mutating func enter(
    _ record: inout PhaseRecord, contentHash: String, bytes: Int64
  ) throws {
    guard record.manifest?.contentHash != contentHash else { return }
    record.manifest?.contentHash = contentHash
    record.manifest?.bytes = bytes
    manifest = record.manifest
    try conversation.enter(record)
  }

  private static func rename(_ file: String, toBackup backup: String) throws {
    let what = "cannot keep the backup"
    let next = "run: ls -la \(CommandText.quoted(backup.parentFolder))"
    func failure(_ code: Int32) -> InstarError {
      InstarError(
        .backupFailed, what, cause: "cannot create '\(backup)': \(String(cString: strerror(code)))",
        next: next)
    }
    if Foundation.rename(file, backup) == 0 { return }
    guard errno == EXDEV else { throw failure(errno) }
    // Another file system or mount: its name comes last, so that it never names part of a backup.
    let partial = StorePaths.partial(backup)
    unlink(partial)
    do {
      try RunFiles.makeFile(partial)
      try FileCopy.copy(file, to: partial)
      try DurableFile.synchronizeFile(partial)
      guard Foundation.rename(partial, backup) == 0 else { throw failure(errno) }
    } catch {
      unlink(partial)
      let known = InstarError(error, what: what)
      if known.code == .noSpace || known.what == what { throw known }
      // The run replaces `what` by its own sentence, so the cause must name the file.
      throw InstarError(
        .backupFailed, what, cause: "\(known.what): \(known.cause)", next: known.next ?? next)
    }
  }

  /// Removes the backup and the linked files of a cutover that did not take place.
  private mutating func removeBackup(_ changes: ExternalFiles.Changes) {
    // The only file with the old content is never removed, whatever happened.
    if lock.isFile(at: backup) { return }
    BackupFiles.remove(backup)
    external.disown(changes, listedIn: fileList)
    keptBackup = nil
  }

  // MARK: The cutover

  /// Replaces the store's content by the clone's.
  ///
  /// - Parameters:
  ///   - record: The phase to enter, with what distinguishes the clone's content from the store's. This function adds
  ///     the backup and the state of the store before.
  ///   - earlier: What the store declared before its transaction; `nil` without one.
  ///   - earlierFiles: The external values that the rows of the store reference now.
  /// - Returns: `false` when another process wrote to the store in the meantime: it was not changed, and the backup is
  ///   removed.
  /// - Throws: The error with the state that the store is in.
  mutating func perform(
    _ record: PhaseRecord, _ content: Content, earlier: CutoverOutcome.Declaration? = nil,
    earlierFiles: Set<String>
  ) throws -> Bool {
    var changes = ExternalFiles.Changes()
    let isCutOver: Bool
    var record = record
    do {
      record.backup = backup
      let triesExchange = try mayExchange()
      record.cutover = triesExchange ? .exchange : .writeBack
      if triesExchange { record.describe(exchangeOf: lock, for: files.cloneFile) }
      let earlier = try earlier ?? lock.read { try CutoverOutcome.Declaration($0, record) }
      record.declaredVersion = earlier.version
      record.earlierFingerprint = earlier.fingerprint
      if record.restoredRun != nil {
        record.contentDigest = try digestOfClone()
        record.earlierContentDigest = earlier.contentDigest
      }
      manifest = record.manifest
      try conversation.enter(record)
      changes = try external.adopt(
        content.externalFiles, from: content.newFiles, before: earlierFiles, like: paths.store,
        listedIn: fileList)
      isCutOver = try triesExchange ? exchange(&record, content) : writeBack(&record, content)
    } catch {
      throw afterFailure(error, record, changes)
    }
    guard isCutOver else {
      removeBackup(changes)
      return false
    }
    record.manifest?.write(besideBackup: backup)
    let left = external.removeOrphans(changes, besideFile: backup, listedIn: fileList)
    notes += [left].compactMap(\.self)
    return true
  }

  /// Reads the store after a failed cutover, and removes the backup if that is safe.
  ///
  /// - Returns: The error with the state that the store is in.
  private mutating func afterFailure(
    _ error: any Error, _ record: PhaseRecord, _ changes: ExternalFiles.Changes
  ) -> InstarError {
    var known = InstarError(error, what: Self.what, store: record.store)
    if known.isInDoubt {
      known.next = nextInDoubt
      return known
    }
    guard lock.mayHaveWritten else {
      removeBackup(changes)
      return known
    }
    let hasPath = lock.hasPath
    if !hasPath { lock.emptyLog() }
    lock.release()
    guard hasPath else {
      // The file of this name was never written. The rows of the one that was moved away may reference the new files.
      if lock.mayHaveCommitted {
        unlink(fileList)
      } else {
        external.disown(changes, listedIn: fileList)
      }
      known.state = known.state ?? "replaced by another process during the cutover"
      return known
    }
    // If the store cannot be read now, nothing is proven: it is in doubt, and the backup stays.
    if let found = try? CutoverOutcome(of: record, in: paths, openPolicy), found.content == .old {
      removeBackup(changes)
      known.state = "unchanged; SQLite rolled the transaction back"
    } else {
      // Recovery decides: the phase record and the list of files stay.
      known.state = InstarError.inDoubt
      known.next = nextInDoubt
    }
    return known
  }

  private var nextInDoubt: String { "to recover the run and then repeat it, run: \(command)" }

  private func digestOfClone() throws -> String {
    try files.clone.read { try ContentDigest.ofRows($0) }
  }

  /// Whether to try an exchange.
  private mutating func mayExchange() throws -> Bool {
    guard case .file(let clone) = files.clone,
      Exchange.isWanted(policy, bytes: try FileCopy.size(of: clone), openPolicy)
    else { return false }
    guard let obstacle = Exchange.obstacle(lock, files) else { return true }
    note(obstacle)
    return false
  }

  private mutating func note(_ obstacle: String) {
    notes.append(
      "Instar wrote to the store's file instead of exchanging it for the clone: \(obstacle)"
    )
  }

  /// - Returns: `false` where another process used the store in the meantime: it is as before, and no longer locked.
  private mutating func exchange(
    _ record: inout PhaseRecord, _ content: Content
  ) throws -> Bool {
    let clone = storeBecomesBackup ? backup : files.cloneFile
    if storeBecomesBackup { try moveClone(from: files.cloneFile, to: backup) }
    let exchange = Exchange(lock: lock, paths: paths, clone: clone)
    let result = try exchange.perform { descriptor in
      guard storeBecomesBackup, lock.hasLeftLog else { return }
      try enter(
        &record, contentHash: FileDigest.ofFile(descriptor, paths.store),
        bytes: FileCopy.size(of: paths.store))
    }
    switch result {
    case .done(let former):
      kind = .exchange
      staleFile = former
      return true
    case .disturbed(let clone):
      staleFile = clone
      return false
    case .impossible(let reason):
      note(reason)
      if storeBecomesBackup { try moveClone(from: backup, to: files.cloneFile) }
      return try writeBack(&record, content)
    }
  }

  private func moveClone(from path: String, to target: String) throws {
    guard instar_rename_no_replace(AT_FDCWD, path, AT_FDCWD, target) == 0 else {
      throw RunFiles.failure("cannot move the clone to '\(target)'", errno)
    }
  }

  private mutating func writeBack(
    _ record: inout PhaseRecord, _ content: Content
  ) throws -> Bool {
    if storeBecomesBackup { try copyStore(&record) }
    do {
      guard try write(content) else { return false }
    } catch let error as DatabaseError {
      let known = InstarError(error, what: Self.what)
      throw InstarError(
        known.code == .busyStore || known.code == .noSpace ? known.code : .writeBackFailed,
        Self.what, cause: known.cause, next: known.next)
    }
    try lock.requirePath(Self.what, since: "during the cutover")
    let isWritten = try lock.read { db in
      let structure = try StoreStructure.read(db, format: content.format)
      guard structure == content.structure else { return false }
      return try content.format.declaration(db, at: content.versionSource, in: structure).version
        == content.version
    }
    guard isWritten else {
      let version = content.version.map { "version \($0)" } ?? "the version of the clone"
      throw InstarError(
        .writeBackFailed, Self.what, cause: "after the cutover the store is not at \(version)")
    }
    kind = .writeBack
    return true
  }
}

extension Cutover {
  /// Writes the clone's content to the store, and commits.
  ///
  /// - Returns: `false` where the store is as before, and no longer locked.
  private mutating func write(_ content: Content) throws -> Bool {
    if files.clone.transaction != nil {
      try lock.commitChange()
      return true
    }
    guard let change = content.change else { return try lock.replaceContents(with: files.clone) }
    let result = try lock.makeChange(like: files.clone) { try change.make(in: $0, like: $1) }
    hasOtherResult = result == .otherResult
    return result == .done
  }
}

extension PhaseRecord {
  /// Adds what a recovery must know of an exchange.
  fileprivate mutating func describe(exchangeOf lock: StoreLock, for clone: String) {
    if let status = stat(of: clone) { cloneInode = UInt64(status.st_ino) }
    storeInode = lock.inode
    usesLog = lock.usesLog
  }
}
