/// Where the schema of a store was found.
@frozen
public enum SchemaOrigin: String, Sendable, Codable, Hashable {
  /// The archived model that Apple's frameworks write to the store: complete.
  case modelCache
  /// The schema that Instar writes to the metadata of stores: complete except for the Swift types of composites.
  case metadata
  /// The tables alone: the names of properties, and whether they are optional, are guessed if the format does not
  /// keep them.
  case tables
}
