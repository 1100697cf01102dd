import InstarWire

/// One line for a terminal, safe to print.
///
/// Names, paths and SQL come from stores and plugins, and may hold sequences that control a terminal or forge a line.
/// Every value that goes into a line is escaped when the line is made, and `Console` prints nothing but lines.
struct ConsoleLine: ExpressibleByStringInterpolation {
  /// Escaped, with the colours of `Style`.
  fileprivate(set) var text: String
  /// How many characters the terminal shows.
  private(set) var width: Int

  /// A line with the text in it, escaped.
  init(_ text: String) {
    self.text = text.escapedForTerminal
    width = self.text.count
  }

  /// Trusts the text: a literal is part of this program.
  init(stringLiteral text: String) {
    self.text = text
    width = text.count
  }

  init(stringInterpolation: StringInterpolation) {
    self = stringInterpolation.line
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var line: ConsoleLine = ""

    init(literalCapacity: Int, interpolationCount: Int) {}

    mutating func appendLiteral(_ literal: String) {
      line += ConsoleLine(stringLiteral: literal)
    }

    mutating func appendInterpolation(_ other: ConsoleLine) {
      line += other
    }

    mutating func appendInterpolation(_ value: some CustomStringConvertible) {
      line += ConsoleLine(value.description)
    }
  }

  static func += (line: inout ConsoleLine, other: ConsoleLine) {
    line.text += other.text
    line.width += other.width
  }

  static func + (first: ConsoleLine, second: ConsoleLine) -> ConsoleLine {
    var line = first
    line += second
    return line
  }

  /// The same line between the codes of a colour.
  func colored(_ start: String, _ end: String) -> ConsoleLine {
    var line = self
    line.text = start + text + end
    return line
  }

  /// Spaces up to a width.
  static func spaces(_ count: Int) -> ConsoleLine {
    ConsoleLine(stringLiteral: String(repeating: " ", count: max(0, count)))
  }

  var isEmpty: Bool { text.isEmpty }

  /// A text of several lines, the last with or without a line break at its end. Its tabs stay.
  static func lines(of text: String) -> [ConsoleLine] {
    var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines.map { line in
      var escaped: ConsoleLine = ""
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
      for (index, part) in parts.enumerated() {
        escaped += index == 0 ? "" : "\t"
        escaped += ConsoleLine(String(part))
      }
      return escaped
    }
  }
}
