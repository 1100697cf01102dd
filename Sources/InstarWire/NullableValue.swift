/// A value that JSON shows as null if there is none, so that scripts find its key.
@propertyWrapper
public struct NullableValue<Value: Sendable & Codable & Hashable>: Sendable, Codable, Hashable {
  /// The value; `nil` is written as null, not left out.
  public var wrappedValue: Value?

  /// A value, or null.
  public init(wrappedValue: Value?) {
    self.wrappedValue = wrappedValue
  }

  /// Reads the value or null.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
  }

  /// Writes the value or null.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}
