public import InstarSchema

/// What is known of a backup since it was made: a restore and `instarctl backups verify` compare the file with it.
///
/// It is part of the run's line in the ledger, and a file beside the backup.
public struct BackupManifest: Sendable, Codable, Hashable {
  /// The run that made the backup.
  public var run: String
  /// The path of the store, absolute.
  public var store: String
  /// When the backup was made, in seconds since 1970.
  public var madeAt: Double
  /// The size of the file, in bytes.
  public var bytes: Int64
  /// XXH3-128 of the file, in hexadecimal digits, after "xxh3-128:".
  public var contentHash: String
  /// The number of files beside the backup that hold external values.
  public var externalFiles: Int
  /// The size of these files, in bytes; left out by releases that did not measure it.
  public var externalBytes: Int64?
  /// The format of the store.
  public var format: StoreFormat
  /// The version that the backup has; left out if unknown.
  public var version: Schema.Version?
  /// Where a plain store declares its version; left out for the Core Data format.
  public var versionSource: VersionSource?
  /// What SQLite's `quick_check` found: "ok", or the damage that the store already had.
  public var check: String
  /// The name of the plan of the run; left out for a restore.
  public var plan: String?
  /// The path of the plugin of the run; left out for a restore.
  public var plugin: String?
  /// The release of Instar that made the backup.
  public var tool: String

  /// Whether the backup passed SQLite's check when it was made.
  public var isSound: Bool { check == Self.soundCheck }

  /// The result of `quick_check` for a sound database.
  public static let soundCheck = "ok"

  /// Returns the path of the manifest of a backup: `a.store.RUN.json` beside `a.store.RUN.backup`.
  package static func path(ofBackup backup: String) -> String {
    let end = [compressedSuffix, suffix].first(where: backup.hasSuffix)
    return String(backup.dropLast(end?.count ?? 0)) + ".json"
  }

  /// The end of the name of a backup.
  package static let suffix = ".backup"
  /// The end of the name of a compressed copy of a backup: nothing else tells that it is compressed.
  package static let compressedSuffix = ".backup.zst"

  /// A manifest of a sound backup, without version and plan.
  public init(
    run: String, store: String, madeAt: Double, bytes: Int64, contentHash: String,
    externalFiles: Int, externalBytes: Int64? = nil, format: StoreFormat
  ) {
    self.run = run
    self.store = store
    self.madeAt = madeAt
    self.bytes = bytes
    self.contentHash = contentHash
    self.externalFiles = externalFiles
    self.externalBytes = externalBytes
    self.format = format
    check = Self.soundCheck
    tool = Release.version
  }
}
