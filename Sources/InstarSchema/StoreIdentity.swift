/// How a schema maps to tables in SQLite.
@frozen
public enum StoreFormat: String, Sendable, Codable, Hashable {
  /// The tables that SwiftData and Core Data write.
  case coredata
  /// Ordinary tables.
  case plain
}

/// What a probe compares with the versions of plans: the version that a store declares, and its structure.
public struct StoreIdentity: Sendable, Codable, Hashable {
  public var format: StoreFormat
  /// The declared version; `nil` if the store declares none, or one that is not of the form 1.2.3.
  public var version: Schema.Version?
  /// The names of the entities that the store lists.
  public var entityNames: [String]
  public var structure: StoreStructure
  /// SHA-256 over `structure.canonicalText`, in hexadecimal digits.
  public var fingerprint: String
  /// The fingerprint that Instar stamped in the last cutover; `nil` if there was none.
  public var stampedFingerprint: String?
  /// The versions that a plain store declares, by the place where it declares them.
  public var declaredVersions: [VersionSource: Schema.Version] = [:]
  /// The versions in the history tables of migration tools in a plain store.
  public var toolVersions: [ToolVersion] = []

  public init(
    format: StoreFormat, version: Schema.Version?, entityNames: [String],
    structure: StoreStructure, fingerprint: String
  ) {
    self.format = format
    self.version = version
    self.entityNames = entityNames
    self.structure = structure
    self.fingerprint = fingerprint
  }
}

/// How many tables a probe counts the rows of, which reads whole tables.
@frozen
public enum RowCounting: String, Sendable, Codable, Hashable {
  /// No table.
  case none
  /// Table after table for some tenths of a second; the others are not counted.
  case quick
  /// Every table.
  case all
}

/// The state of a store in relation to a plan.
@frozen
public enum StoreState: String, Sendable, Codable, Hashable {
  /// At the plan's last version.
  case current
  /// At an earlier version of the plan.
  case behind
  /// At a later version than the last one of the plan.
  case ahead
  /// Declares no version of the plan, and has the structure of one or more of them.
  case unversioned
  /// At no version of the plan, or no plan was given.
  case unknown
  /// Not a SQLite database, or one without tables.
  case notAStore
  /// Damaged: cut short, or refused by SQLite's check.
  case corrupt
  /// Looks like an encrypted database.
  case encrypted
  /// Locked by another process, or with a transaction that only its app can undo.
  case busy
  /// Reading it is not permitted, failed, or did not end within its time limit.
  case unreadable
}
