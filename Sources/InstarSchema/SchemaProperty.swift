/// What attributes and relationships have in common.
public protocol SchemaProperty: Sendable, Hashable {
  /// The name of the Swift property.
  var name: String { get }
  /// The name the property had in the version before, equal to `name` where it was not renamed.
  var originalName: String { get }
  /// Whether a model may have no value for it.
  var isOptional: Bool { get }
}
