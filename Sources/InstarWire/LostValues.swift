public import InstarSchema

/// Values of a property that a stage neither kept nor converted, and that no closure replaced.
public struct LostValues: Sendable, Codable, Hashable {
  /// The version before the stage.
  public var version: Schema.Version
  /// The entity, by its name in that version.
  public var entity: String
  /// The attribute or relationship, by its name in that version.
  public var property: String
  /// The number of non-null values, or of links.
  public var count: Int

  /// Creates a count of lost values.
  public init(version: Schema.Version, entity: String, property: String, count: Int) {
    self.version = version
    self.entity = entity
    self.property = property
    self.count = count
  }
}
