/// How a schema is laid out in SQLite.
@frozen
public enum StoreFormat: String, Sendable, Codable, Hashable {
  /// What SwiftData and Core Data write.
  case coredata
  /// Ordinary tables.
  case plain
}

/// What tells one version of a store from another: what it declares of itself, and what it is made of.
public struct StoreIdentity: Sendable, Codable, Hashable {
  public var format: StoreFormat
  /// `nil` where the store declares none, or one that is not of the form 1.2.3.
  public var version: Schema.Version?
  /// The names of the entities that the store lists.
  public var entityNames: [String]
  public var structure: StoreStructure
  /// SHA-256 over `structure.canonicalText`, in hexadecimal digits.
  public var fingerprint: String
  /// The fingerprint that the store had when Instar last put it back; `nil` where it never did.
  public var stampedFingerprint: String?
  /// What a plain store declares, by where it does.
  public var declaredVersions: [VersionSource: Schema.Version] = [:]
  /// What the history tables of migration tools in a plain store say.
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

/// How far a probe goes to count rows, which reads whole tables.
@frozen
public enum RowCounting: String, Sendable, Codable, Hashable {
  case none
  /// Table after table, until some tenths of a second are used up; the others are not counted.
  case quick
  case all
}

/// Where a store stands, seen from a plan.
@frozen
public enum StoreState: String, Sendable, Codable, Hashable {
  /// At the plan's last version.
  case current
  /// At an earlier version of the plan.
  case behind
  /// At a version the plan does not know yet.
  case ahead
  /// Declares no version; its structure equals exactly one version of the plan.
  case unversioned
  /// At no version of the plan, or no plan was given.
  case unknown
  case notAStore
  case corrupt
  case encrypted
  case busy
  /// May not be read, or reading it did not come to an end.
  case unreadable
}
