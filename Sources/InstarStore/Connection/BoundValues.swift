/// The values bound to a statement. SQLite does not report them, but it returns the statement's text with literals for
/// the parameters, so the values are where that text differs from the original.
struct BoundValues {
  /// As Core Data prints them, at the number of their parameter minus one.
  private(set) var inOrder: [String] = []

  /// - Parameters:
  ///   - template: the statement's text.
  ///   - expanded: The same with literals for its parameters, from `sqlite3_expanded_sql`.
  init(template: String, expanded: String) {
    var template = Scanner(template)
    var expanded = Scanner(expanded)
    var values: [Int: String] = [:]
    var highest = 0
    while let token = template.next() {
      guard let number = token.parameterNumber(after: highest) else {
        expanded.skip(token.bytes.count)
        continue
      }
      highest = max(highest, number)
      guard let literal = expanded.next() else { break }
      values[number] = Self.shown(literal.text)
    }
    inOrder = (1..<(highest + 1)).map { values[$0] ?? "nil" }
  }

  private static let longestValue = 200

  private static func shown(_ literal: String) -> String {
    if literal == "NULL" { return "nil" }
    if literal.hasPrefix("'") {
      let text = literal.dropFirst().dropLast().split(
        separator: "''", omittingEmptySubsequences: false
      ).joined(separator: "'")
      return text.count > longestValue ? "\"\(text.prefix(longestValue))…\"" : "\"\(text)\""
    }
    if literal.hasPrefix("x'") { return "<\((literal.utf8.count - 3) / 2) bytes>" }
    return literal.contains { $0 == "." || $0 == "e" } ? "(double)\(literal)" : "(int64)\(literal)"
  }

  /// Splits a statement into literals, names, parameters and other single bytes.
  private struct Scanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func skip(_ count: Int) { position = min(position + count, bytes.count) }

    mutating func next() -> Token? {
      guard position < bytes.count else { return nil }
      let start = position
      let first = bytes[position]
      position += 1
      switch first {
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): skipQuoted(by: first)
      case UInt8(ascii: "x")
      where position < bytes.count && bytes[position] == UInt8(ascii: "'"):
        position += 1
        skipQuoted(by: UInt8(ascii: "'"))
      case UInt8(ascii: "?"), UInt8(ascii: "-"):
        // A minus belongs to the number after it: a parameter's literal is one token.
        skipWord()
      case _ where Self.isPartOfWord(first):
        skipWord()
      default: break
      }
      return Token(bytes: bytes[start..<position])
    }

    private mutating func skipQuoted(by quote: UInt8) {
      while position < bytes.count {
        let isQuote = bytes[position] == quote
        position += 1
        guard isQuote else { continue }
        guard position < bytes.count, bytes[position] == quote else { return }
        position += 1
      }
    }

    private mutating func skipWord() {
      while position < bytes.count, Self.isPartOfWord(bytes[position]) {
        // The sign of an exponent.
        let isExponent = bytes[position] == UInt8(ascii: "e")
        position += 1
        if isExponent, position + 1 < bytes.count,
          bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-"),
          (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position + 1])
        {
          position += 1
        }
      }
    }

    private static func isPartOfWord(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), 128...:
        true
      default: false
      }
    }
  }

  private struct Token {
    let bytes: ArraySlice<UInt8>

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The number of a parameter `?` or `?3`; `nil` for any other token.
    func parameterNumber(after highest: Int) -> Int? {
      guard bytes.first == UInt8(ascii: "?") else { return nil }
      return bytes.count == 1
        ? highest + 1 : Int(String(decoding: bytes.dropFirst(), as: UTF8.self))
    }
  }
}
