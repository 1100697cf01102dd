internal import Foundation
package import GRDB
public import InstarSchema

/// Converts values that SQLite has no type for, in plain stores.
///
/// Models hold a date as seconds since 2001, a UUID as 16 bytes and JSON as bytes (see `Schema.AttributeType`).
/// Statements of the SDK call the two functions of an encoding, so neither models nor predicates know it. A stored
/// value of another kind is passed on unchanged; its reader reports it.
extension Schema.Column.Encoding {
  package var readFunction: String { "instar_read_\(rawValue)" }
  package var writeFunction: String { "instar_write_\(rawValue)" }

  // MARK: Values

  /// Returns the value as it is stored.
  public func written(_ value: AttributeValue) -> AttributeValue {
    switch (self, value) {
    case (.iso8601, .real(let seconds)):
      return DateText(secondsSince2001: seconds).map { .text($0.text("T", "Z")) } ?? value
    case (.dateTime, .real(let seconds)):
      return DateText(secondsSince2001: seconds).map { .text($0.text(" ", "")) } ?? value
    case (.unixSeconds, .real(let seconds)):
      let unix = seconds + Self.secondsTo2001
      return Int64(exactly: unix).map { .integer($0) } ?? .real(unix)
    case (.unixMilliseconds, .real(let seconds)):
      let milliseconds = ((seconds + Self.secondsTo2001) * 1000).rounded()
      return Int64(exactly: milliseconds).map { .integer($0) } ?? value
    case (.julianDay, .real(let seconds)):
      return .real((seconds + Self.secondsTo2001) / 86_400 + Self.julianDayOf1970)
    case (.uuidText, .blob(let bytes)):
      return String(uuid: bytes).map { .text($0.lowercased()) } ?? value
    case (.uuidUppercaseText, .blob(let bytes)):
      return String(uuid: bytes).map { .text($0) } ?? value
    case (.uuidHexadecimal, .blob(let bytes)):
      return bytes.count == 16 ? .text(Digest.hexadecimal(bytes)) : value
    case (.jsonText, .blob(let bytes)):
      return String(validating: bytes, as: UTF8.self).map { .text($0) } ?? value
    default: return value
    }
  }

  /// Returns a stored value of any form of the kind as models hold it.
  public func read(_ value: AttributeValue) -> AttributeValue {
    switch self {
    case .iso8601, .dateTime, .unixSeconds, .unixMilliseconds, .julianDay: return readDate(value)
    case .uuidText, .uuidUppercaseText, .uuidHexadecimal, .uuidBytes:
      guard case .text(let text) = value, let bytes = Self.bytes(ofUUID: text) else { return value }
      return .blob(bytes)
    case .jsonText, .jsonBytes:
      guard case .text(let text) = value else { return value }
      return .blob(Array(text.utf8))
    }
  }

  private func readDate(_ value: AttributeValue) -> AttributeValue {
    let number: Double
    switch value {
    case .text(let text): return DateText(text).map { .real($0.secondsSince2001) } ?? value
    case .integer(let integer): number = Double(integer)
    case .real(let real): number = real
    case .blob: return value
    }
    switch self {
    case .unixMilliseconds: return .real(number / 1000 - Self.secondsTo2001)
    case .julianDay:
      return .real((number - Self.julianDayOf1970) * 86_400 - Self.secondsTo2001)
    // SQLite's date functions read a number as a Julian day; apps that store both text and numbers mean seconds.
    default: return .real(number - Self.secondsTo2001)
    }
  }

  static let secondsTo2001 = 978_307_200.0
  private static let julianDayOf1970 = 2_440_587.5

  private static func bytes(ofUUID text: String) -> [UInt8]? {
    var digits: [UInt8] = []
    for character in text.utf8 where character != UInt8(ascii: "-") {
      guard let digit = Character(Unicode.Scalar(character)).hexDigitValue else { return nil }
      digits.append(UInt8(digit))
    }
    guard digits.count == 32 else { return nil }
    return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  // MARK: Functions

  static func register(_ db: Database) {
    for encoding in allCases {
      db.add(
        function: DatabaseFunction(encoding.readFunction, argumentCount: 1, pure: true) {
          AttributeValue($0[0]).map { encoding.read($0).databaseValue }
        })
      db.add(
        function: DatabaseFunction(encoding.writeFunction, argumentCount: 1, pure: true) {
          AttributeValue($0[0]).map { encoding.written($0).databaseValue }
        })
    }
  }
}

extension AttributeValue {
  init?(_ value: DatabaseValue) {
    switch value.storage {
    case .null: return nil
    case .int64(let integer): self = .integer(integer)
    case .double(let real): self = .real(real)
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob([UInt8](data))
    }
  }

  /// The value as SQLite binds it.
  package var databaseValue: DatabaseValue {
    switch self {
    case .integer(let integer): integer.databaseValue
    case .real(let real): real.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}
