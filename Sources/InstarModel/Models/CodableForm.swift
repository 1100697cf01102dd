@_spi(Reflection) import Swift
import Foundation
import InstarSchema
import Synchronization

/// The stored form of a Codable type that is not an attribute type (Core Data layout, section 3.4).
///
/// It depends on the type only, because a schema is created without values.
enum CodableForm: Sendable {
  /// One column for each stored field, with the field's name. A field that is not a plain value is JSON in a BLOB.
  case fields([Field])
  /// One column for each case of an enum without raw value. The column of the value's case has the name of the case.
  case cases([String])
  /// UTF-8 JSON in one BLOB: arrays, sets, dictionaries, and types with custom coding.
  case json

  struct Field: Sendable {
    let name: String
    let type: Schema.AttributeType
    /// The field's type in Swift.
    let swiftType: Schema.SwiftType
    /// The offset of the field in the struct, which identifies key paths.
    let offset: Int
  }

  /// The columns of a composite; `nil` for JSON.
  var leaves: [Schema.PropertyMetadata.Leaf]? {
    switch self {
    case .fields(let fields):
      fields.map {
        Schema.PropertyMetadata.Leaf(
          name: $0.name, type: $0.type, valueType: $0.swiftType.type ?? Any.self)
      }
    case .cases(let names):
      names.map {
        Schema.PropertyMetadata.Leaf(name: $0, type: .string, valueType: String?.self)
      }
    case .json: nil
    }
  }

  private static let known = Mutex<[ObjectIdentifier: CodableForm]>([:])

  static func of<Value: Codable>(_ type: Value.Type) -> CodableForm {
    let identifier = ObjectIdentifier(type)
    if let form = known.withLock({ $0[identifier] }) { return form }
    let form = find(type)
    known.withLock { $0[identifier] = form }
    return form
  }

  private static func find<Value: Codable>(_ type: Value.Type) -> CodableForm {
    if type is any Collection.Type { return .json }
    guard let keyType = KeyProbe.keyType(of: type) else { return .json }
    if let cases = EnumCases.namesWithoutValues(of: type) {
      return cases.allSatisfy { keyType.init(stringValue: $0) != nil } ? .cases(cases) : .json
    }
    var fields: [Field] = []
    let isStruct = _forEachField(of: type, options: []) { name, offset, fieldType, _ in
      fields.append(
        Field(
          name: String(cString: name), type: attributeType(of: fieldType),
          swiftType: Schema.SwiftType(fieldType), offset: offset))
      return true
    }
    // If the keys differ from the names of the fields, the fields cannot be found by name.
    let isPlain = fields.allSatisfy { keyType.init(stringValue: $0.name) != nil }
    return isStruct && !fields.isEmpty && isPlain ? .fields(fields) : .json
  }

  /// Returns the attribute type of a field of a composite.
  static func attributeType(of type: Any.Type) -> Schema.AttributeType {
    if let optional = type as? any OptionalType.Type {
      return attributeType(of: optional.wrappedType)
    }
    if let attribute = type as? any PersistentAttribute.Type { return attribute.attributeType }
    if let raw = type as? any RawRepresentable.Type, let type = rawAttributeType(of: raw) {
      return type
    }
    return .codable
  }

  private static func rawAttributeType<Value: RawRepresentable>(
    of type: Value.Type
  ) -> Schema.AttributeType? {
    (Value.RawValue.self as? any PersistentAttribute.Type)?.attributeType
  }
}

/// `Optional`, as a type.
protocol OptionalType {
  static var wrappedType: Any.Type { get }
  /// Returns the optional without a value; `nil` if it is of another type.
  static func none<Value>(as type: Value.Type) -> Value?
}

extension Optional: OptionalType {
  static var wrappedType: Any.Type { Wrapped.self }

  static func none<Value>(as type: Value.Type) -> Value? {
    // Generic, because a cast of a `nil` whose type is known to be an optional always fails.
    func cast<Source>(_ source: Source) -> Value? { source as? Value }
    return cast(Self.none)
  }
}

/// A decoder that only records the key type that a type asks for.
private final class KeyProbe: Decoder {
  private(set) var keyType: (any CodingKey.Type)?
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  /// Returns `nil` for a type that does not decode a keyed container.
  static func keyType<Value: Decodable>(of type: Value.Type) -> (any CodingKey.Type)? {
    let probe = KeyProbe()
    // Always throws, because the probe has no values.
    _ = try? Value(from: probe)
    return probe.keyType
  }

  private struct Learned: Error {}

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    keyType = type
    throw Learned()
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Learned() }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Learned() }
}
