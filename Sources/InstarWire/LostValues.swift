public import InstarSchema

/// Values of a property, or whole rows, that a stage neither kept nor converted, and that no closure replaced.
public struct LostValues: Sendable, Codable, Hashable {
  /// The version before the stage.
  public var version: Schema.Version
  /// The entity, by its name in that version.
  public var entity: String
  /// The attribute or relationship, by its name in that version; `nil` for rows of the entity.
  public var property: String?
  /// The number of non-null values, of links, or of rows.
  public var count: Int

  /// Creates a count of lost values or rows.
  public init(version: Schema.Version, entity: String, property: String?, count: Int) {
    self.version = version
    self.entity = entity
    self.property = property
    self.count = count
  }
}
