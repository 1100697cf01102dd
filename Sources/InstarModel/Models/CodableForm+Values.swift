import Foundation
import InstarSchema
import InstarStore

extension CodableForm {
  /// Returns the stored form of a value or an optional one.
  func slot<Value: Codable>(ofOptional value: Value) throws -> Slot {
    if let optional = value as? any OptionalCodable { return try optional.slot(in: self) }
    return try slot(of: value)
  }

  /// Returns the stored form of a value of a Codable type, which may be an optional one.
  func slot<Value, Stored: Codable>(of value: Value, as type: Stored.Type) throws -> Slot {
    try (value as? Stored).map { try slot(ofOptional: $0) } ?? .null
  }

  /// Returns the value, or the optional one, of a stored form; `nil` if the form does not fit the type.
  func value<Value, Stored: Codable>(
    of slot: Slot, asOptional stored: Stored.Type, as type: Value.Type
  ) -> Value? {
    value(of: slot, asOptional: stored).flatMap { $0 as? Value }
  }

  /// Returns the value, or the optional one, of a stored form; `nil` if the form does not fit the type.
  func value<Value: Codable>(of slot: Slot, asOptional type: Value.Type) -> Value? {
    if let optional = type as? any OptionalCodable.Type {
      // Casting the optional itself would read what the form does not fit as `nil`.
      return optional.optionalValue(of: slot, in: self).flatMap { $0 as? Value }
    }
    return value(of: slot, as: type)
  }

  /// Returns the stored form of a value.
  ///
  /// - Throws: The error of the type's encoding.
  func slot(of value: some Codable) throws -> Slot {
    switch self {
    case .json: return .blob(try Self.json(value))
    case .cases(let names):
      let name = try Self.caseName(Self.json(value))
      return .composite(names.map { $0 == name ? .text($0) : .null })
    case .fields(let fields):
      let encoder = FieldEncoder()
      try value.encode(to: encoder)
      return .composite(fields.map { encoder.values[$0.name] ?? .null })
    }
  }

  /// Returns why no value of a type can be stored; `nil` if values can, or if only a save can find out.
  ///
  /// It encodes a placeholder. That calls the type's code, so only types are asked that have a field which is not
  /// Codable: they encode it in their own way, as `Measurement` does its unit.
  func problem<Value: Codable>(of type: Value.Type) -> InstarError? {
    guard case .fields(let fields) = self,
      fields.contains(where: { !($0.swiftType.type is any Codable.Type) }),
      let value = Placeholder.value(of: type)
    else { return nil }
    do {
      _ = try slot(of: value)
      return nil
    } catch {
      // The type's own error is about the placeholder's value.
      return error as? InstarError
    }
  }

  /// Returns the value of a stored form; `nil` if the form does not fit the type.
  func value<Value: Codable>(of slot: Slot, as type: Value.Type) -> Value? {
    // `refusal` finds the reason again if an error needs it.
    try? decode(slot, as: type)
  }

  /// Returns the value of a stored form; `nil` if it is of another form.
  ///
  /// - Throws: The error of the type's decoding.
  func decode<Value: Codable>(_ slot: Slot, as type: Value.Type) throws -> Value? {
    switch (self, slot) {
    case (.json, .blob(let data)):
      return try JSONDecoder().decode(type, from: ArchivedCollection.json(of: data) ?? data)
    case (.cases, .composite(let leaves)):
      let names = leaves.compactMap { leaf in
        if case .text(let name) = leaf { name } else { nil }
      }
      guard names.count == 1, let name = names.first else { return nil }
      let key = try JSONEncoder().encode(name)
      return try JSONDecoder().decode(type, from: Data("{".utf8) + key + Data(":{}}".utf8))
    case (.fields(let fields), .composite(let leaves)):
      guard fields.count == leaves.count else { return nil }
      let values = Dictionary(firstOf: zip(fields.map(\.name), leaves).map { ($0, $1) })
      return try type.init(from: FieldDecoder(values: values))
    default: return nil
    }
  }

  /// Returns why a stored value is not of the type; `nil` if its decoding succeeds.
  ///
  /// The description of a decoding error may quote the stored value, which may be private, so it is not used.
  func refusal<Value: Codable>(of slot: Slot, as type: Value.Type) -> String? {
    do {
      _ = try decode(slot, as: type)
      return nil
    } catch DecodingError.keyNotFound(let key, _) {
      return "the value has no '\(key.stringValue)'"
    } catch DecodingError.typeMismatch(let wanted, let context),
      DecodingError.valueNotFound(let wanted, let context)
    {
      let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }
      return "the value has no \(wanted)"
        + (path.isEmpty ? "" : " at '\(path.joined(separator: "."))'")
    } catch is DecodingError {
      return "the value is damaged or was written for another type"
    } catch {
      return "the decoding of \(type) threw a \(Swift.type(of: error))"
    }
  }

  /// Encodes a value with sorted keys, so equal values have equal bytes.
  static func json(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }

  /// Returns `user` for `{"user":{}}`, the form in which Swift encodes a case without values.
  private static func caseName(_ json: Data) throws -> String? {
    try JSONDecoder().decode([String: [String: String]].self, from: json).keys.first
  }

  /// Returns the stored form of a field: a plain value as in a column, all others as JSON.
  fileprivate static func slot(ofField value: some Encodable) throws -> Slot {
    try slot(ofPlain: value) ?? .blob(json(value))
  }

  /// Returns the stored form of a value of an attribute type, or of a type with such a raw value; `nil` for others.
  static func slot(ofPlain value: Any) -> Slot? {
    if let attribute = value as? any PersistentAttribute { return attribute.slot }
    guard let raw = value as? any RawRepresentable else { return nil }
    return (raw.rawValue as? any PersistentAttribute)?.slot
  }

  /// Returns the value of such a type, or the optional one, of a stored form; `nil` if the form does not fit the type.
  static func plainValue<Value>(of slot: Slot, as type: Value.Type) -> Value? {
    // Generic, because a cast of a `nil` whose type is known to be an optional always fails.
    func cast<Source>(_ source: Source) -> Value? { source as? Value }
    func attribute<Stored: PersistentAttribute>(_ type: Stored.Type) -> Value? {
      type.init(slot: slot).flatMap(cast)
    }
    if let type = type as? any PersistentAttribute.Type { return attribute(type) }
    let optional = type as? any OptionalType.Type
    if let optional, slot.isNull { return optional.none(as: type) }
    guard let raw = (optional?.wrappedType ?? type) as? any RawRepresentable.Type else {
      return nil
    }
    return rawValue(raw, of: slot).flatMap { $0 as? Value }
  }

  fileprivate static func field<Value: Decodable>(_ type: Value.Type, of slot: Slot) throws
    -> Value?
  {
    if let attribute = type as? any PersistentAttribute.Type {
      return attribute.init(slot: slot) as? Value
    }
    if let raw = type as? any RawRepresentable.Type, attributeType(of: type) != .codable {
      return rawValue(raw, of: slot) as? Value
    }
    guard case .blob(let data) = slot else { return nil }
    return try JSONDecoder().decode(type, from: ArchivedCollection.json(of: data) ?? data)
  }

  private static func rawValue<Raw: RawRepresentable>(_ type: Raw.Type, of slot: Slot) -> Raw? {
    guard let attribute = Raw.RawValue.self as? any PersistentAttribute.Type,
      let value = attribute.init(slot: slot) as? Raw.RawValue
    else { return nil }
    return Raw(rawValue: value)
  }
}

/// `Optional` of a Codable type.
private protocol OptionalCodable {
  func slot(in form: CodableForm) throws -> Slot
  static func optionalValue(of slot: Slot, in form: CodableForm) -> Self?
}

extension Optional: OptionalCodable where Wrapped: Codable {
  func slot(in form: CodableForm) throws -> Slot {
    guard let self else { return .null }
    return try form.slot(of: self)
  }

  static func optionalValue(of slot: Slot, in form: CodableForm) -> Self? {
    if slot.isNull { return .some(.none) }
    return form.value(of: slot, as: Wrapped.self).map { .some($0) }
  }
}

/// Encodes a struct into the stored forms of its fields.
private final class FieldEncoder: Encoder {
  var values: [String: Slot] = [:]
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(Container(encoder: self))
  }

  // The type decodes a keyed container, so it must encode one too.
  func unkeyedContainer() -> any UnkeyedEncodingContainer { Refusal() }
  func singleValueContainer() -> any SingleValueEncodingContainer { Refusal() }

  private struct Container<Key: CodingKey>: KeyedEncodingContainerProtocol {
    /// `nil` in a nested container, which throws at the first value.
    let encoder: FieldEncoder?
    let codingPath: [any CodingKey] = []

    private func set(_ slot: Slot, forKey key: Key) throws {
      guard let encoder else { throw Refusal.error }
      encoder.values[key.stringValue] = slot
    }

    func encodeNil(forKey key: Key) throws { try set(.null, forKey: key) }

    func encode(_ value: some Encodable, forKey key: Key) throws {
      try set(CodableForm.slot(ofField: value), forKey: key)
    }

    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { KeyedEncodingContainer(Container<Nested>(encoder: nil)) }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { Refusal() }
    func superEncoder() -> any Encoder { FieldEncoder() }
    func superEncoder(forKey key: Key) -> any Encoder { FieldEncoder() }
  }

  private struct Refusal: UnkeyedEncodingContainer, SingleValueEncodingContainer {
    static let error = InstarError(
      .invalidModel, "cannot store a value",
      cause: "the type's `encode(to:)` does not write every key that `init(from:)` reads",
      next: "let Swift synthesize Codable, or store the value as JSON with @Attribute(.codable)")
    let codingPath: [any CodingKey] = []
    let count = 0
    func encodeNil() throws { throw Self.error }
    func encode(_ value: some Encodable) throws { throw Self.error }
    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> { KeyedEncodingContainer(Container<Nested>(encoder: nil)) }
    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { self }
    func superEncoder() -> any Encoder { FieldEncoder() }
  }
}

/// Decodes a struct from the stored forms of its fields.
private struct FieldDecoder: Decoder {
  let values: [String: Slot]
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Container(values: values))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Self.mismatch }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Self.mismatch }

  static var mismatch: DecodingError {
    DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: [], debugDescription: "a composite is decoded by its keys"))
  }

  private struct Container<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let values: [String: Slot]
    let codingPath: [any CodingKey] = []

    var allKeys: [Key] { values.keys.compactMap { Key(stringValue: $0) }.filter(contains) }

    func contains(_ key: Key) -> Bool { values[key.stringValue].map { !$0.isNull } ?? false }

    func decodeNil(forKey key: Key) -> Bool { !contains(key) }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
      guard let slot = values[key.stringValue], !slot.isNull,
        let value = try CodableForm.field(type, of: slot)
      else {
        throw DecodingError.valueNotFound(
          type,
          DecodingError.Context(codingPath: [key], debugDescription: "no value of this type"))
      }
      return value
    }

    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw FieldDecoder.mismatch }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
      throw FieldDecoder.mismatch
    }
    func superDecoder() throws -> any Decoder { throw FieldDecoder.mismatch }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw FieldDecoder.mismatch }
  }
}
