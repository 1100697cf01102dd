public import InstarSchema

/// The schema of a store, as far as the store itself holds it.
public struct StoreIntrospection: Sendable {
  /// What the schema was read from.
  public enum Origin: Sendable, Hashable {
    /// The archived model in `Z_MODELCACHE`.
    case modelCache
    /// The schema in the metadata of a store that Instar created or migrated.
    case metadata
    /// The tables alone.
    case tables
  }

  public var origin: Origin
  /// Its version is the one that the store declares, or 1.0.0.
  public var schema: Schema
  /// "Note.kind": composites whose columns are the cases of an enum, and enums with a raw value.
  public var enumerations: [String] = []
  /// "Note.kind": composites that are not optional.
  public var requiredComposites: [String] = []
  /// The Swift types of values that attributes of type `Data` hold as archives, by "Note.tags": "[String]".
  public var archivedTypes: [String: String] = [:]
  /// What the store has and the schema does not show, one sentence each.
  public var notes: [String]

  init(origin: Origin, schema: Schema, notes: [String]) {
    self.origin = origin
    self.schema = schema
    self.notes = notes
  }
}
