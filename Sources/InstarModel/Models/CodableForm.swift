@_spi(Reflection) import Swift
import Foundation
import InstarSchema
import Synchronization

/// How values of a Codable type that is no attribute type of its own are stored (Core Data layout, section 3.4).
///
/// Found from the type alone, since a schema is made without a value at hand.
enum CodableForm: Sendable {
  /// One column for each stored field, named as the field; what is no plain value in it is JSON in a BLOB.
  case fields([Field])
  /// One column for each case of an enum without raw value; the column of the value's case holds the name of the case.
  case cases([String])
  /// UTF-8 JSON in one BLOB: arrays, sets, dictionaries, and types that encode themselves in a way of their own.
  case json

  struct Field: Sendable {
    let name: String
    let type: Schema.AttributeType
    /// The field's type in Swift.
    let swiftType: Schema.SwiftType
    /// Where in the struct the field is: what tells key paths apart.
    let offset: Int
  }

  /// The columns of a value that has several.
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
    // Keys that are not the fields' names are the type's own business.
    let isPlain = fields.allSatisfy { keyType.init(stringValue: $0.name) != nil }
    return isStruct && !fields.isEmpty && isPlain ? .fields(fields) : .json
  }

  /// How a field of a composite is stored by itself.
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
}

extension Optional: OptionalType {
  static var wrappedType: Any.Type { Wrapped.self }
}

/// A decoder that only learns by which keys a type wants to be read.
private final class KeyProbe: Decoder {
  private(set) var keyType: (any CodingKey.Type)?
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  /// `nil` for a type that does not read itself by keys.
  static func keyType<Value: Decodable>(of type: Value.Type) -> (any CodingKey.Type)? {
    let probe = KeyProbe()
    // Always throws: the probe has no values to give.
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
