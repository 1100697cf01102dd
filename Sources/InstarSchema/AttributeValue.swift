/// The default of an attribute, as it is stored.
@frozen
public enum AttributeValue: Sendable, Hashable {
  /// Also of booleans.
  case integer(Int64)
  /// Also of dates: seconds since 2001-01-01 UTC.
  case real(Double)
  /// UTF-8.
  case text(String)
  /// Bytes; a UUID is 16 of them.
  case blob([UInt8])
}

/// An object with one key, the kind of the value. A number that is not finite is a text, because JSON has no such
/// number.
extension AttributeValue: Codable {
  private enum Kind: String, CodingKey {
    case integer, real, text, blob
  }

  private enum Key: String, CodingKey {
    case value = "_0"
  }

  /// - Throws: `DecodingError` for what `encode(to:)` does not write.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Kind.self)
    guard let kind = container.allKeys.first, container.allKeys.count == 1 else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath,
          debugDescription: "expected one of the keys integer, real, text and blob"))
    }
    let nested = try container.nestedContainer(keyedBy: Key.self, forKey: kind)
    switch kind {
    case .integer: self = .integer(try nested.decode(Int64.self, forKey: .value))
    case .real: self = .real(try Self.real(in: nested))
    case .text: self = .text(try nested.decode(String.self, forKey: .value))
    case .blob: self = .blob(try nested.decode([UInt8].self, forKey: .value))
    }
  }

  private static func real(in container: KeyedDecodingContainer<Key>) throws -> Double {
    // A finite number is a number in JSON too.
    guard let text = try? container.decode(String.self, forKey: .value) else {
      return try container.decode(Double.self, forKey: .value)
    }
    guard let number = Double(text) else {
      throw DecodingError.dataCorruptedError(
        forKey: .value, in: container, debugDescription: "'\(text)' is not a number")
    }
    return number
  }

  /// Writes the value and its kind.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Kind.self)
    switch self {
    case .integer(let number):
      var nested = container.nestedContainer(keyedBy: Key.self, forKey: .integer)
      try nested.encode(number, forKey: .value)
    case .real(let number):
      var nested = container.nestedContainer(keyedBy: Key.self, forKey: .real)
      if number.isFinite {
        try nested.encode(number, forKey: .value)
      } else {
        try nested.encode("\(number)", forKey: .value)
      }
    case .text(let text):
      var nested = container.nestedContainer(keyedBy: Key.self, forKey: .text)
      try nested.encode(text, forKey: .value)
    case .blob(let bytes):
      var nested = container.nestedContainer(keyedBy: Key.self, forKey: .blob)
      try nested.encode(bytes, forKey: .value)
    }
  }
}
