public import Foundation
public import InstarSchema

extension Schema.Attribute {
  /// The type of the Swift property. In a schema from a file or another process it is the usual Swift type of such a
  /// column, optional or not.
  public var valueType: any Any.Type {
    if let type = swiftType.type { return type }
    return switch type {
    case .bool: typeOfValue(Bool.self)
    case .int16: typeOfValue(Int16.self)
    case .int32: typeOfValue(Int32.self)
    case .int64: typeOfValue(Int.self)
    case .decimal: typeOfValue(Decimal.self)
    case .double: typeOfValue(Double.self)
    case .float: typeOfValue(Float.self)
    case .string: typeOfValue(String.self)
    case .date: typeOfValue(Date.self)
    case .data, .codable: typeOfValue(Data.self)
    case .uuid: typeOfValue(UUID.self)
    case .url: typeOfValue(URL.self)
    }
  }

  private func typeOfValue<Value>(_ type: Value.Type) -> any Any.Type {
    isOptional ? Value?.self : type
  }

  /// The initial value, of type `valueType`, which existing rows get if the attribute is new and required; `nil`
  /// without one.
  public var defaultValue: Any? {
    guard let storedDefault else { return nil }
    let slot = Slot(storedDefault)
    if let type = valueType as? any PersistentAttribute.Type { return type.init(slot: slot) }
    if let type = valueType as? any Codable.Type { return Self.value(of: slot, as: type) }
    return nil
  }

  static func value<Value: Codable>(of slot: Slot, as type: Value.Type) -> Any? {
    if let raw = type as? any RawRepresentable.Type, let value = rawValue(of: slot, as: raw) {
      return value
    }
    return CodableForm.json.value(of: slot, asOptional: type)
  }

  private static func rawValue<Value: RawRepresentable>(
    of slot: Slot, as type: Value.Type
  ) -> Any? {
    guard let raw = Value.RawValue.self as? any PersistentAttribute.Type else { return nil }
    return (raw.init(slot: slot) as? Value.RawValue).flatMap(Value.init(rawValue:))
  }
}

extension SchemaProperty {
  /// The type of the Swift property. In a schema from a file or another process it is the usual Swift type of an
  /// attribute's column, and `Any` for other properties.
  public var valueType: any Any.Type {
    switch self {
    case let attribute as Schema.Attribute: attribute.valueType
    case let composite as Schema.CompositeAttribute: composite.valueType
    case let relationship as Schema.Relationship: relationship.valueType
    default: Any.self
    }
  }
}

extension Schema.CompositeAttribute {
  /// The type of the Swift property; `Any` in a schema that came from a file or another process.
  public var valueType: any Any.Type { swiftType.type ?? Any.self }
}

extension Schema.Relationship {
  /// The type of the Swift property; `Any` in a schema that came from a file or another process.
  public var valueType: any Any.Type { swiftType.type ?? Any.self }
}

extension Schema {
  /// Writes the schema to a file as JSON with sorted keys. An existing file is replaced atomically.
  ///
  /// - Throws: Errors of writing the file; an existing file is then unchanged.
  public func save(to url: URL) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try encoder.encode(self).write(to: url, options: .atomic)
  }

  /// Reads a schema that `save(to:)` wrote. It equals the saved one but has no Swift types, so it can be compared but
  /// not used to open a container.
  ///
  /// - Throws: `DecodingError` if the file does not contain a schema; errors of reading the file.
  public static func load(from url: URL) throws -> Schema {
    try JSONDecoder().decode(Schema.self, from: Data(contentsOf: url))
  }
}
