/// Overloads of `type` for every type that a property of a model can have.
///
/// `@Model` emits a conforming type for a property, with one more overload for all other types. It is unavailable,
/// and its message names the property.
public protocol _StorableProperty {}

extension _StorableProperty {
  /// Accepts values that have a column type of their own.
  public static func type<Value: PersistentAttribute>(_: Value.Type) {}
  /// Accepts enums with a raw value that can be stored.
  public static func type<Value: RawRepresentable>(_: Value.Type)
  where Value.RawValue: PersistentAttribute {}
  /// Accepts optional enums with such a raw value.
  public static func type<Value: RawRepresentable>(_: Value?.Type)
  where Value.RawValue: PersistentAttribute {}
  /// Accepts structs, enums and collections that are stored as a composite or encoded.
  @_disfavoredOverload
  public static func type<Value: Codable>(_: Value.Type) {}
  /// Accepts a required to-one relationship.
  public static func type<Destination: PersistentModel>(_: Destination.Type) {}
  /// Accepts an optional to-one relationship.
  public static func type<Destination: PersistentModel>(_: Destination?.Type) {}
  /// Accepts a to-many relationship.
  public static func type<Destination: PersistentModel>(_: [Destination].Type) {}
  /// Accepts an optional to-many relationship.
  public static func type<Destination: PersistentModel>(_: [Destination]?.Type) {}
}
