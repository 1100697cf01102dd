/// One version of a plan, as its plugin's manifest lists it and a probe is compared with it.
public struct VersionManifest: Sendable, Codable, Hashable {
  /// It has all models, also `unlistedModels`.
  public var schema: Schema
  /// The structure of a store of this version.
  public var structure: StoreStructure
  /// SHA-256 of `structure`, in hexadecimal digits.
  public var fingerprint: String
  /// The name of the `VersionedSchema` type, without the types that it is nested in; left out if unknown.
  public var name: String?
  /// The models that the `VersionedSchema` does not list, and that Instar adds because listed ones reference them.
  public var unlistedModels: [String] = []
  /// What the types of properties read, by "Entity.property", where a type may refuse a stored value.
  package var valueShapes: [String: ValueShape] = [:]

  /// A version.
  public init(
    schema: Schema, structure: StoreStructure, fingerprint: String, name: String? = nil
  ) {
    self.name = name
    self.schema = schema
    self.structure = structure
    self.fingerprint = fingerprint
  }

  /// The names that a store of this version lists as its entities: those of tables, where nothing else lists them.
  var listedNames: [String] {
    schema.format.listsEntities ? schema.entities.map(\.name) : structure.tables.map(\.name)
  }
}
