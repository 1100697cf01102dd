public import InstarSchema

/// The schema of a store, as far as the store itself holds it.
public struct StoreIntrospection: Sendable {
  /// Where the schema was found.
  public var origin: SchemaOrigin
  /// Its version is the one that the store declares, or 1.0.0.
  public var schema: Schema
  /// The Swift types of values that attributes of type `Data` hold as archives, by "Note.tags": "[String]".
  public var archivedTypes: [String: String] = [:]
  /// What the store has and the schema does not show, one sentence each.
  public var notes: [String] = []
}
