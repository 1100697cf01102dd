internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The content of a store after a cutover that failed or was cut off, as a new connection reads it.
///
/// Only a new connection can tell: a commit whose last step failed may have happened. The journal may be gone although
/// the folder could not be synced, and complete frames may be in the log although its index does not count them.
struct CutoverOutcome {
  enum Content {
    /// The version and structure from before the run. No journal or log can turn it into the new content.
    case old
    /// The new version, with the structure that the run gave it.
    case new
    /// Neither: another process changed the store in the meantime.
    case other
  }

  let content: Content
  /// The version that the store declares.
  let version: Schema.Version?

  /// Seconds to wait for an app that is using the store.
  private static let busyTimeout = 5.0

  /// Reads the store. Opening it for writing lets SQLite roll back a transaction that was cut off.
  ///
  /// - Precondition: This process has no other connection to the store, except an app's own (`OpenPolicy.shared`).
  /// - Throws: `corruptStore` or `notAStore` where the store is damaged. After any other error nothing is known.
  init(of record: PhaseRecord, in paths: StorePaths, _ openPolicy: OpenPolicy) throws {
    _ = try openPolicy.probeFile(paths.store)
    let queue = try GuardedConnection.open(
      paths.store, access: .readWrite, busyTimeout: Self.busyTimeout, firesTriggers: false)
    defer { try? queue.close() }
    (content, version) = try queue.inDatabase { db in
      if try Replicator(of: paths.store, db) != nil {
        // The log is the replicator's to checkpoint.
        try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
        try GuardedConnection.keepLogOnClose(true, db)
      }
      try db.execute(sql: "PRAGMA synchronous = FULL; BEGIN IMMEDIATE")
      defer { if db.isInsideTransaction { try? db.execute(sql: "ROLLBACK") } }
      let now = try Declaration(db, record)
      var content = Content.other
      if now.isNew(record) {
        content = .new
        // Between the death of the keeper and here an app may have used a file that is not the store, and with it the
        // journal or the log at the store's path (see `StaleFile`).
        if record.cutover == .exchange { try StoreCheck.requireSound(db, "the store") }
      } else {
        // A failed check proves nothing about the cutover if the store was damaged before its restore.
        if record.manifest?.isSound != false {
          try StoreCheck.requireSound(db, "the store")
        }
        if now.isEarlier(record) { content = .old }
      }
      try Self.sealLog(db)
      return (content, now.version)
    }
    queue.inDatabase { db in
      Self.removeEndedJournal(paths, db)
      if record.usesLog == true { Self.restoreLog(paths, db) }
    }
    // The removal of a rollback journal is the commit: it must survive a loss of power.
    if content == .new { try paths.synchronizeFolder() }
  }

  /// Has SQLite remove the journal of a `StoreTransaction` that its keeper had not committed when it died. The store
  /// was not written, and the header of the journal is cleared.
  static func removeUncommittedJournal(_ paths: StorePaths) {
    let journal = SideFile.journal.path(of: paths.store)
    guard access(journal, F_OK) == 0, !StoreFile.journalHasContent(journal) else { return }
    // If this fails, the file stays: SQLite ignores it.
    try? GuardedConnection.use(paths.store, access: .readWrite) { db in
      try GuardedConnection.keepLogOnClose(true, db)
      removeEndedJournal(paths, db)
    }
  }

  /// Has SQLite remove the journal of a cutover that was committed: the connection of a keeper that died kept the file,
  /// with its header cleared. A journal that is still needed was rolled back before.
  private static func removeEndedJournal(_ paths: StorePaths, _ db: Database) {
    // If this fails, the file stays: its header is cleared, so SQLite ignores it.
    guard access(SideFile.journal.path(of: paths.store), F_OK) == 0,
      (try? String.fetchOne(db, sql: "PRAGMA journal_mode")) == "delete"
    else { return }
    // SQLite deletes the file when the mode changes, under its own lock.
    try? db.execute(sql: "PRAGMA journal_mode = PERSIST; PRAGMA journal_mode = DELETE")
  }

  /// Restores write-ahead-log mode in a store that left it for an exchange.
  private static func restoreLog(_ paths: StorePaths, _ db: Database) {
    // A journal with a cleared header, by which the store was about to leave its log: SQLite removes it when the mode
    // changes.
    if access(SideFile.journal.path(of: paths.store), F_OK) == 0 {
      // If this fails, the file stays: SQLite ignores it.
      try? db.execute(sql: "PRAGMA journal_mode = DELETE")
    }
    // If this fails, an app has the store open with a rollback journal. The content is whole, and an app that wants a
    // log asks for it.
    try? db.execute(sql: "PRAGMA journal_mode = WAL")
  }

  /// Overwrites frames of a failed commit that may follow the last valid frame of the log. A process that rebuilds the
  /// log's index after a crash would count them as committed.
  private static func sealLog(_ db: Database) throws {
    guard try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal" else { return }
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    // SQLite writes the first page also where the value is the same.
    try db.execute(sql: "PRAGMA user_version = \(version); COMMIT")
  }

  /// The version that a store declares, and the structure that it has.
  struct Declaration {
    let version: Schema.Version?
    /// The fingerprint of the structure.
    let fingerprint: String
    /// The digest of the rows; `nil` for a migration, whose versions differ, and for a damaged store.
    let contentDigest: String?
    /// Whether the structure is the one that a run stamped the store with.
    private let isStamped: Bool

    init(_ db: Database, _ record: PhaseRecord) throws {
      let format = StoreFormat(ofRecordWith: record.versionSource)
      let structure = try StoreStructure.read(db, format: format)
      let declared = try format.declaration(
        db, at: record.versionSource ?? .userVersion, in: structure)
      version = declared.version
      fingerprint = structure.fingerprint
      contentDigest = record.restoredRun == nil ? nil : try Self.digest(db)
      isStamped = (declared.fingerprint ?? record.fingerprint) == fingerprint
    }

    /// - Returns: `nil` for a damaged store. Its rows cannot all be read, so they are not those of a checked backup.
    private static func digest(_ db: Database) throws -> String? {
      do {
        return try ContentDigest.ofRows(db)
      } catch let error as DatabaseError
        where [.SQLITE_IOERR, .SQLITE_NOMEM].contains(error.resultCode)
      {
        // Another reading may succeed.
        throw error
      } catch {
        return nil
      }
    }

    /// Whether the store has the content that the run was to give it.
    ///
    /// A backup may have the version and structure of the store that it replaces, but not its rows. Where the rows are
    /// equal too, either answer is true. If the backup has an earlier version, the version proves it, although an app
    /// may have written rows since: no app migrates a store back.
    func isNew(_ record: PhaseRecord) -> Bool {
      guard version == record.to else { return false }
      guard let digest = record.contentDigest else { return isStamped }
      guard fingerprint == record.fingerprint else { return false }
      return contentDigest == digest || Self.goesBack(record)
    }

    private static func goesBack(_ record: PhaseRecord) -> Bool {
      guard let target = record.to, let earlier = record.declaredVersion else { return false }
      return target < earlier
    }

    /// Whether the store is as it was before the run. Records of earlier releases have no fingerprint.
    ///
    /// Here version and structure do not prove it: an app may have migrated a restored store again since.
    func isEarlier(_ record: PhaseRecord) -> Bool {
      guard let earlier = record.earlierFingerprint else { return version == record.from }
      if let digest = record.earlierContentDigest, digest != contentDigest { return false }
      return version == record.declaredVersion && fingerprint == earlier
    }
  }
}
