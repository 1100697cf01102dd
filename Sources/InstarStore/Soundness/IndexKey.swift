/// The key of one index entry, compared as SQLite compares keys (https://www.sqlite.org/datatype3.html, section 4).
struct IndexKey {
  /// How SQLite compares texts.
  enum Collation: String {
    case binary = "BINARY"
    /// Without the case of ASCII letters.
    case ignoringCase = "NOCASE"
    /// Without spaces at the end.
    case ignoringTrailingSpaces = "RTRIM"
  }

  struct Term {
    var collation: Collation
    var isDescending: Bool
  }

  private enum Value {
    case null
    case integer(Int64)
    case real(Double)
    case text(Range<Int>)
    case blob(Range<Int>)

    /// Values of different classes are ordered by class.
    var rank: Int {
      switch self {
      case .null: 0
      case .integer, .real: 1
      case .text: 2
      case .blob: 3
      }
    }
  }

  private var values: [Value] = []
  /// The bytes of all texts and blobs.
  private var bytes: [UInt8] = []

  mutating func removeAll() {
    values.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  mutating func append(_ value: RowValue) {
    switch value {
    case .null: values.append(.null)
    case .integer(let number): values.append(.integer(number))
    case .real(let number): values.append(.real(number))
    case .text(let text): values.append(.text(keep(text)))
    case .blob(let blob): values.append(.blob(keep(blob)))
    }
  }

  private mutating func keep(_ new: UnsafeRawBufferPointer) -> Range<Int> {
    let start = bytes.count
    bytes.append(contentsOf: new)
    return start..<bytes.count
  }

  /// Whether one of the first values is NULL. A unique index allows such keys to repeat.
  func hasNull(in count: Int) -> Bool { values.prefix(count).contains { $0.rank == 0 } }

  /// Returns the number of leading values that are equal, and whether this key comes before the other one.
  func compare(to other: IndexKey, _ terms: [Term]) -> (equal: Int, isBefore: Bool) {
    for (position, term) in terms.enumerated() {
      let order = compare(values[position], other, other.values[position], term.collation)
      if order != 0 { return (position, term.isDescending ? order > 0 : order < 0) }
    }
    return (terms.count, false)
  }

  /// Returns a negative number where `mine` comes before `value`, 0 where they are equal.
  private func compare(
    _ mine: Value, _ other: IndexKey, _ value: Value, _ collation: Collation
  ) -> Int {
    switch (mine, value) {
    case (.integer(let left), .integer(let right)): left < right ? -1 : left == right ? 0 : 1
    case (.real(let left), .real(let right)): left < right ? -1 : left == right ? 0 : 1
    // Never equal: a whole number is an integer here, unless it is too large for one.
    case (.integer(let left), .real(let right)): Double(left) < right ? -1 : 1
    case (.real(let left), .integer(let right)): left < Double(right) ? -1 : 1
    case (.text(let left), .text(let right)):
      Self.compare(bytes[left], other.bytes[right], collation)
    case (.blob(let left), .blob(let right)):
      Self.compare(bytes[left], other.bytes[right], .binary)
    default: mine.rank - value.rank
    }
  }

  private static func compare(
    _ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>, _ collation: Collation
  ) -> Int {
    switch collation {
    case .binary: compareBytes(left, right)
    case .ignoringTrailingSpaces: compareBytes(trimmed(left), trimmed(right))
    case .ignoringCase: compareLetters(left, right)
    }
  }

  private static func compareBytes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Int {
    for (one, other) in zip(left, right) where one != other { return Int(one) - Int(other) }
    return left.count - right.count
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.prefix(
      (text.lastIndex { $0 != UInt8(ascii: " ") } ?? text.startIndex - 1) - text.startIndex + 1)
  }

  /// As SQLite's NOCASE, which compares nothing behind a zero byte but the lengths.
  private static func compareLetters(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Int {
    func lower(_ byte: UInt8) -> Int {
      Int((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
    }
    for (one, other) in zip(left, right) {
      let order = lower(one) - lower(other)
      if order != 0 { return order }
      if one == 0 { break }
    }
    return left.count - right.count
  }
}
