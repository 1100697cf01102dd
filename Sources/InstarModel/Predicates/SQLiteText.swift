import Foundation
import GRDBSQLite

/// A text in SQLite's memory, valid during one call of a function.
struct SQLiteText {
  let bytes: UnsafeBufferPointer<UInt8>

  /// Returns `nil` for NULL.
  init?(_ value: OpaquePointer?) {
    guard let start = sqlite3_value_text(value) else { return nil }
    bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
  }

  init(_ start: UnsafeRawPointer?, _ count: Int32) {
    bytes = UnsafeBufferPointer(
      start: start?.assumingMemoryBound(to: UInt8.self), count: start == nil ? 0 : Int(count))
  }

  var string: String { String(decoding: bytes, as: UTF8.self) }

  /// Whether each byte is one character: ASCII without the carriage return, which forms one character with a line feed.
  private var isBytewise: Bool {
    for byte in bytes where byte >= 0x80 || byte == 0x0D { return false }
    return true
  }

  var count: Int { isBytewise ? bytes.count : string.count }

  func contains(_ other: SQLiteText) -> Bool {
    guard isBytewise, other.isBytewise else {
      // Calls the generic search by characters, as Foundation does, not that of StringProtocol.
      return Self.containsElements(string, other.string)
    }
    guard let first = other.bytes.first else { return true }
    var rest = bytes[...]
    while rest.count >= other.bytes.count, let found = rest.firstIndex(of: first) {
      rest = rest[found...]
      if rest.starts(with: other.bytes) { return true }
      rest = rest.dropFirst()
    }
    return false
  }

  private static func containsElements<Base: Collection, Other: Collection>(
    _ base: Base, _ other: Other
  ) -> Bool where Base.Element == Other.Element, Base.Element: Equatable {
    base.contains(other)
  }

  func starts(with other: SQLiteText) -> Bool {
    guard isBytewise, other.isBytewise else { return string.starts(with: other.string) }
    return bytes.starts(with: other.bytes)
  }

  func order(_ other: SQLiteText) -> Int32 {
    let common = min(bytes.count, other.bytes.count)
    var order: Int32 = 0
    if let start = bytes.baseAddress, let otherStart = other.bytes.baseAddress, common > 0 {
      order = memcmp(start, otherStart, common)
    }
    if order == 0, bytes.count == other.bytes.count { return 0 }
    guard isBytewise, other.isBytewise else {
      let (one, two) = (string, other.string)
      return one == two ? 0 : one < two ? -1 : 1
    }
    if order != 0 { return order }
    return bytes.count < other.bytes.count ? -1 : 1
  }
}
