/// Overloads of `type` for every type that a property of a model can have.
///
/// `@Model` emits a conforming type for a property, with one more overload for all other types. It is unavailable,
/// and its message names the property.
public protocol _StorableProperty {}

extension _StorableProperty {
  public static func type<Value: PersistentAttribute>(_: Value.Type) {}
  public static func type<Value: RawRepresentable>(_: Value.Type)
  where Value.RawValue: PersistentAttribute {}
  public static func type<Value: RawRepresentable>(_: Value?.Type)
  where Value.RawValue: PersistentAttribute {}
  @_disfavoredOverload
  public static func type<Value: Codable>(_: Value.Type) {}
  public static func type<Destination: PersistentModel>(_: Destination.Type) {}
  public static func type<Destination: PersistentModel>(_: Destination?.Type) {}
  public static func type<Destination: PersistentModel>(_: [Destination].Type) {}
  public static func type<Destination: PersistentModel>(_: [Destination]?.Type) {}
}
