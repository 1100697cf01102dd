/// What a probe compares with the versions of plans: the version that a store declares, and its structure.
public struct StoreIdentity: Sendable, Codable, Hashable {
  /// How the store keeps its schema.
  public var format: StoreFormat
  /// The declared version; `nil` if the store declares none, or one that is not of the form 1.2.3.
  public var version: Schema.Version?
  /// The names of the entities that the store lists.
  public var entityNames: [String]
  /// The tables and indexes that the store has.
  public var structure: StoreStructure
  /// SHA-256 over `structure.canonicalText`, in hexadecimal digits.
  public var fingerprint: String
  /// The fingerprint that Instar stamped in the last cutover; `nil` if there was none.
  public var stampedFingerprint: String?
  /// The versions that a plain store declares, by the place where it declares them.
  public var declaredVersions: [VersionSource: Schema.Version] = [:]
  /// The versions in the history tables of migration tools in a plain store.
  public var toolVersions: [ToolVersion] = []

  /// Whether the store is an empty database, to which an app can still add the tables of any version.
  public var isEmpty: Bool { !format.hasMetadata && structure.tables.isEmpty }

  /// An identity as a probe read it, without versions of other tools.
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
