internal import Foundation
internal import GRDB
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
      return Self.hyphenated(bytes).map { .text($0) } ?? value
    case (.uuidUppercaseText, .blob(let bytes)):
      return Self.hyphenated(bytes).map { .text($0.uppercased()) } ?? value
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

  fileprivate static let secondsTo2001 = 978_307_200.0
  private static let julianDayOf1970 = 2_440_587.5

  private static func hyphenated(_ bytes: [UInt8]) -> String? {
    guard bytes.count == 16 else { return nil }
    var groups: [String] = []
    var start = 0
    for length in [4, 2, 2, 2, 6] {
      groups.append(Digest.hexadecimal(bytes[start..<(start + length)]))
      start += length
    }
    return groups.joined(separator: "-")
  }

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

  fileprivate var databaseValue: DatabaseValue {
    switch self {
    case .integer(let integer): integer.databaseValue
    case .real(let real): real.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}

/// A point in time as text in the proleptic Gregorian calendar, UTC, to the microsecond.
private struct DateText {
  private let microsecondsSince1970: Int64

  var secondsSince2001: Double {
    Double(microsecondsSince1970) / 1_000_000 - Schema.Column.Encoding.secondsTo2001
  }

  /// `nil` outside the years 0 to 9999, which have four digits.
  init?(secondsSince2001 seconds: Double) {
    let microseconds = ((seconds + Schema.Column.Encoding.secondsTo2001) * 1_000_000).rounded()
    guard microseconds >= -62_167_219_200_000_000, microseconds < 253_402_300_800_000_000 else {
      return nil
    }
    microsecondsSince1970 = Int64(microseconds)
  }

  /// Reads "2026-01-31", optionally with a time after "T" or a space, and an offset after that. Without an offset the
  /// time is UTC.
  init?(_ text: String) {
    var rest = Substring(text).utf8
    func number(_ digits: Int) -> Int64? {
      let part = rest.prefix(digits)
      guard part.count == digits, part.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
      }
      rest = rest.dropFirst(digits)
      return part.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func skip(_ characters: String) -> Bool {
      guard let next = rest.first, characters.utf8.contains(next) else { return false }
      rest = rest.dropFirst()
      return true
    }
    guard let year = number(4), skip("-"), let month = number(2), (1...12).contains(month),
      skip("-"), let day = number(2), (1...31).contains(day)
    else { return nil }
    var seconds = Self.days(year, month, day) * 86_400
    var microseconds: Int64 = 0
    if skip("Tt ") {
      guard let hour = number(2), hour <= 24, skip(":"), let minute = number(2), minute < 60 else {
        return nil
      }
      seconds += hour * 3600 + minute * 60
      if skip(":") {
        guard let second = number(2), second <= 60 else { return nil }
        seconds += second
        if skip(".,") {
          var unit: Int64 = 100_000
          guard rest.first.map({ (0x30...0x39).contains($0) }) == true else { return nil }
          while let digit = number(1) {
            microseconds += digit * unit
            unit /= 10
          }
        }
      }
      _ = skip(" ")
      if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") {
        let isEast = rest.first == UInt8(ascii: "+")
        rest = rest.dropFirst()
        guard let hours = number(2) else { return nil }
        _ = skip(":")
        let offset = hours * 3600 + (number(2) ?? 0) * 60
        seconds -= isEast ? offset : -offset
      } else {
        _ = skip("Zz")
      }
    }
    guard rest.isEmpty else { return nil }
    microsecondsSince1970 = seconds * 1_000_000 + microseconds
  }

  /// - Parameters:
  ///   - separator: The text between day and time.
  ///   - zone: The text at the end.
  func text(_ separator: String, _ zone: String) -> String {
    func padded(_ number: Int64, _ digits: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    let seconds = Self.floor(microsecondsSince1970, 1_000_000)
    let fraction = microsecondsSince1970 - seconds * 1_000_000
    let days = Self.floor(seconds, 86_400)
    let time = seconds - days * 86_400
    let (year, month, day) = Self.date(days)
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))\(separator)"
      + "\(padded(time / 3600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2))."
      + (fraction % 1000 == 0 ? padded(fraction / 1000, 3) : padded(fraction, 6)) + zone
  }

  private static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
    number / divisor - (number % divisor < 0 ? 1 : 0)
  }

  // Days from 1970-01-01 and back (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"): years begin in
  // March, so that the leap day is the last of the year.

  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = floor(shifted, 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func date(_ days: Int64) -> (Int64, Int64, Int64) {
    let shifted = days + 719_468
    let era = floor(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    let number = month < 10 ? month + 3 : month - 9
    return (yearOfEra + era * 400 + (number <= 2 ? 1 : 0), number, day)
  }
}
