public import InstarSchema

/// The schema that a keeper read from a store: its reply to `.readSchema`.
public struct SchemaReport: Sendable, Codable, Hashable {
  /// The path of the store.
  public var store: String
  /// How the schema maps to tables.
  public var format: StoreFormat
  /// Where the schema was found.
  public var origin: SchemaOrigin
  /// The version that the store declares; left out if it declares none.
  public var version: Schema.Version?
  /// The schema, with the version that the store declares, or 1.0.0.
  public var schema: Schema
  /// The tables, columns and indexes of the store.
  public var structure: StoreStructure
  /// SHA-256 of `structure`, in hexadecimal digits.
  public var fingerprint: String
  /// The Swift types of values that attributes of type `Data` hold as archives, such as "Note.tags": "[String]".
  public var archivedTypes: [String: String] = [:]
  /// What the schema does not show of the store, one sentence each.
  public var notes: [String]

  /// A report without archived types.
  public init(
    store: String, format: StoreFormat, origin: SchemaOrigin, version: Schema.Version?,
    schema: Schema,
    structure: StoreStructure, fingerprint: String, notes: [String] = []
  ) {
    self.store = store
    self.format = format
    self.origin = origin
    self.version = version
    self.schema = schema
    self.structure = structure
    self.fingerprint = fingerprint
    self.notes = notes
  }
}
