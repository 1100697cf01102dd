/// The default of an attribute, as it is stored.
@frozen
public enum AttributeValue: Sendable, Hashable, Codable {
  /// Also of booleans.
  case integer(Int64)
  /// Also of dates: seconds since 2001-01-01 UTC.
  case real(Double)
  /// UTF-8.
  case text(String)
  /// Bytes; a UUID is 16 of them.
  case blob([UInt8])
}
