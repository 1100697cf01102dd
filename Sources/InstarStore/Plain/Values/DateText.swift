import InstarSchema

/// A point in time as text in the proleptic Gregorian calendar, UTC, to the microsecond.
struct DateText {
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
