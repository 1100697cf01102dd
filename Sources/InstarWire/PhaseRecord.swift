public import InstarSchema

/// One record of the phase journal: what a recovery needs to know about a run that was cut off.
public struct PhaseRecord: Sendable, Codable, Hashable {
  /// The run identifier.
  public var run: String
  /// The path of the store, absolute.
  public var store: String
  /// The ledger path of the run, as the supervisor knew it when the run began; left out by a keeper, by an app's
  /// container, and by an earlier version.
  public var keptStore: String?
  /// The phase that the run enters.
  public var phase: Phase
  /// The path of the plugin.
  public var plugin: String?
  /// The name of the plan.
  public var plan: String?
  /// The store's version before the run.
  public var from: Schema.Version?
  /// The last version of the plan.
  public var to: Schema.Version?
  /// The path of the backup; left out in `cloning` if the backup is beside the store.
  public var backup: String?
  /// Where a plain store declares its version; left out for the Core Data format.
  public var versionSource: VersionSource?
  /// The fingerprint of the migrated clone of a plain store; left out in `cloning`.
  public var fingerprint: String?
  /// The version that the store declared before the run; left out in `cloning`, and if it declared none.
  public var declaredVersion: Schema.Version?
  /// The fingerprint of the store before the run; left out in `cloning`.
  public var earlierFingerprint: String?
  /// The run whose backup is restored; left out for a migration.
  public var restoredRun: String?
  /// The digest of the rows that a restore brings back: their version may be that of the rows that they replace. Left
  /// out for a migration.
  public var contentDigest: String?
  /// The digest of the rows that a restore replaces; left out for a migration, and for a damaged store.
  public var earlierContentDigest: String?
  /// True for a rehearsal, which never enters `cutover`; else left out.
  public var rehearses: Bool?
  /// Where a copy of the backup goes; left out if there is to be none.
  public var copyTo: BackupFolder?
  /// The way of the cutover that was begun; left out in `cloning`. An exchange that is not possible in the end becomes
  /// a write-back.
  public var cutover: CutoverKind?
  /// The inode of the clone: the store's after an exchange. Left out where no exchange was begun.
  public var cloneInode: UInt64?
  /// The inode of the store before an exchange: the backup's after it, where the store's own file becomes the backup.
  /// Left out where no exchange was begun.
  public var storeInode: UInt64?
  /// Whether the store had a write-ahead log before an exchange, during which it has none. Left out where no exchange
  /// was begun.
  public var usesLog: Bool?
  /// The manifest of the backup; left out in `cloning`.
  public var manifest: BackupManifest?
  /// True for a run that the ledger has: of this one only files are removed, and its store and backup are left alone.
  /// Else left out; a supervisor sets it when it sends the record to a keeper.
  public var isInLedger: Bool?
  /// True for a run that the ledger has and that ended in `cloning` without a backup: a loss of power brought back one
  /// that is there, and it is removed. Else left out; a supervisor sets it as it sets `isInLedger`.
  public var hasNoBackup: Bool?
  /// The start of the run, in seconds since 1970.
  public var startedAt: Double

  /// A record without optional fields.
  public init(run: String, store: String, phase: Phase, startedAt: Double) {
    self.run = run
    self.store = store
    self.phase = phase
    self.startedAt = startedAt
  }
}
