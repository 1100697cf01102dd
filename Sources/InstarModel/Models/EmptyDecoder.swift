/// A decoder with empty content: no elements, no optional fields, and placeholders for the other fields.
struct EmptyDecoder: Decoder {
  let depth: Int
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Keyed(depth: depth))
  }

  func unkeyedContainer() -> any UnkeyedDecodingContainer { Unkeyed() }
  func singleValueContainer() -> any SingleValueDecodingContainer { Single(depth: depth) }

  private static func value<Value: Decodable>(_ type: Value.Type, depth: Int) throws -> Value {
    guard let value = Placeholder.value(of: type, depth: depth) else { throw nothing(type) }
    return value
  }

  private static func nothing(_ type: any Any.Type) -> DecodingError {
    DecodingError.valueNotFound(
      type, DecodingError.Context(codingPath: [], debugDescription: "no value is stored"))
  }

  private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let depth: Int
    let codingPath: [any CodingKey] = []
    /// An enum with associated values decodes the only key.
    var allKeys: [Key] { EnumCases.all(of: Key.self)?.first.map { [$0] } ?? [] }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
      try EmptyDecoder.value(type, depth: depth)
    }
    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedDecodingContainer<Nested> { KeyedDecodingContainer(Keyed<Nested>(depth: depth)) }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { Unkeyed() }
    func superDecoder() -> any Decoder { EmptyDecoder(depth: depth) }
    func superDecoder(forKey key: Key) -> any Decoder { EmptyDecoder(depth: depth) }
  }

  private struct Unkeyed: UnkeyedDecodingContainer {
    let codingPath: [any CodingKey] = []
    let count: Int? = 0
    let isAtEnd = true
    let currentIndex = 0

    func decodeNil() throws -> Bool { throw EmptyDecoder.nothing(Any.self) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
      throw EmptyDecoder.nothing(type)
    }
    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { throw EmptyDecoder.nothing(Nested.self) }
    func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
      throw EmptyDecoder.nothing(Any.self)
    }
    func superDecoder() throws -> any Decoder { throw EmptyDecoder.nothing(Any.self) }
  }

  private struct Single: SingleValueDecodingContainer {
    let depth: Int
    let codingPath: [any CodingKey] = []

    func decodeNil() -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
      try EmptyDecoder.value(type, depth: depth)
    }
  }
}
