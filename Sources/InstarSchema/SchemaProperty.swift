/// What attributes and relationships have in common.
public protocol SchemaProperty: Sendable, Hashable {
  /// The name of the Swift property.
  var name: String { get }
  /// The name the property had in the version before, equal to `name` where it was not renamed.
  var originalName: String { get }
  /// Whether a model may have no value for it.
  var isOptional: Bool { get }
  /// Whether two models cannot have the same value.
  var isUnique: Bool { get }
  /// Whether the property holds a value.
  var isAttribute: Bool { get }
  /// Whether the property refers to other models.
  var isRelationship: Bool { get }
  /// Whether the property is kept in memory only: an attribute with the option `.ephemeral`.
  var isTransient: Bool { get }
}

extension SchemaProperty {
  /// Whether the property refers to other models: each property does that is not an attribute.
  public var isRelationship: Bool { !isAttribute }
}
