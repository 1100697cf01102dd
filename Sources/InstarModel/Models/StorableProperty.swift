/// Which types a property of a model can have: what is storable without more ado has a `type` here.
///
/// The code that `@Model` emits for a property conforms a type to it that has one more `type`, for all other types, which
/// does not compile and names the property.
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
