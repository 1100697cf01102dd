public import InstarSchema

/// The schema of a store, as far as the store itself tells it: what a keeper answers to `.readSchema`.
public struct SchemaReport: Sendable, Codable, Hashable {
  /// Where a schema was found.
  public enum Origin: String, Sendable, Codable, Hashable {
    /// The archived model that Apple's frameworks keep in the store: complete.
    case modelCache
    /// The schema that Instar writes into the metadata of the stores that it makes and migrates: complete, but for what
    /// Swift types stand behind values with several columns.
    case metadata
    /// The tables alone: names of properties, and what of them is optional, are guessed where the format does not keep
    /// them.
    case tables
  }

  public var store: String
  public var format: StoreFormat
  public var origin: Origin
  /// The version that the store declares; `nil` where it declares none.
  public var version: Schema.Version?
  /// Of the version that the store declares, or 1.0.0.
  public var schema: Schema
  public var structure: StoreStructure
  public var fingerprint: String
  /// "Note.kind": properties that are enums: of the columns of one without raw value each is a case.
  public var enumerations: [String] = []
  /// "Note.author": properties of several columns that every model has a value of.
  public var requiredComposites: [String] = []
  /// What of the store the schema does not say, one sentence each.
  public var notes: [String]

  /// A report without notes.
  public init(
    store: String, format: StoreFormat, origin: Origin, version: Schema.Version?, schema: Schema,
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
