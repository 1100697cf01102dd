import GRDB
import InstarSchema

/// The values of a column, as far as its declared type shows.
enum ColumnContents {
  /// Values of one type, whatever is stored.
  case values(Schema.AttributeType)
  case dates
  /// UUIDs, or other text.
  case uuids
  /// Whatever is stored, in a column of this affinity.
  case stored(ColumnAffinity)

  init(declared: String) {
    switch declared.uppercased().prefix(while: { $0 != "(" && $0 != " " }) {
    case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ": self = .dates
    case "BOOL", "BOOLEAN": self = .values(.bool)
    case "UUID", "GUID", "UNIQUEIDENTIFIER", "CHAR", "NCHAR": self = .uuids
    // A day or a time of day is not a `Date`.
    case "DATE", "TIME", "JSON": self = .values(.string)
    case "DECIMAL", "NUMERIC", "MONEY", "NUMBER": self = .values(.decimal)
    default:
      let affinity = ColumnAffinity(declared)
      switch affinity {
      case .integer: self = .values(.int64)
      case .text: self = .values(.string)
      case .real: self = .values(.double)
      case .blob, .numeric: self = .stored(affinity)
      }
    }
  }

  /// Whether a stored value shows more than the declared type.
  var needsSample: Bool {
    if case .values = self { false } else { true }
  }

  /// Returns the type of the column's values and their encoding, by one of them; `nil` for a column without values.
  func type(seen sample: DatabaseValue?) -> (Schema.AttributeType, Schema.Column.Encoding?) {
    switch self {
    case .values(let type): return (type, nil)
    case .dates: return Self.dateType(sample)
    case .uuids:
      if let encoding = Self.uuidEncoding(sample) { return (.uuid, encoding) }
      if case .blob = sample?.storage { return (.data, nil) }
      return (.string, nil)
    case .stored(let affinity):
      switch sample?.storage {
      case .int64: return (.int64, nil)
      case .double: return (.double, nil)
      case .string: return (.string, nil)
      case .blob: return (.data, nil)
      case .null, nil: return affinity == .blob ? (.data, nil) : (.decimal, nil)
      }
    }
  }

  private static func dateType(
    _ sample: DatabaseValue?
  ) -> (Schema.AttributeType, Schema.Column.Encoding?) {
    switch sample?.storage {
    case .string(let text):
      // "2024-01-02 03:04:05"
      guard text.utf8.count >= 16, text.first?.isNumber == true else { return (.string, nil) }
      return (.date, text.contains("T") ? .iso8601 : .dateTime)
    case .int64(let number):
      if (100_000_000..<100_000_000_000).contains(number) { return (.date, .unixSeconds) }
      return (100_000_000_000..<100_000_000_000_000).contains(number)
        ? (.date, .unixMilliseconds) : (.int64, nil)
    case .double(let number):
      if (2_400_000..<2_500_000).contains(number) { return (.date, .julianDay) }
      return (100_000_000..<100_000_000_000).contains(number)
        ? (.date, .unixSeconds) : (.double, nil)
    case .blob: return (.data, nil)
    case .null, nil: return (.date, .dateTime)
    }
  }

  private static func uuidEncoding(_ sample: DatabaseValue?) -> Schema.Column.Encoding? {
    switch sample?.storage {
    case .blob(let data): return data.count == 16 ? .uuidBytes : nil
    case .string(let text):
      let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
      guard digits.count == 32, text.allSatisfy({ $0.isHexDigit || $0 == "-" }) else { return nil }
      if text.utf8.count == 32 { return .uuidHexadecimal }
      guard text.utf8.count == 36 else { return nil }
      return text.contains(where: \.isUppercase) ? .uuidUppercaseText : .uuidText
    default: return nil
    }
  }
}
