import InstarWire

/// A piece of a page in HTML, safe to show.
///
/// Names, paths and causes come from stores and plugins, and may hold markup. Every value that goes into a page is
/// escaped when the piece is made, in text and in attributes alike; only literals of this program are markup.
struct PageText: ExpressibleByStringInterpolation {
  private(set) var html: String

  /// The text, escaped. Characters that are not shown, or turn the direction of writing, are written as in JSON.
  init(_ text: String) {
    html = text.escapedForTerminal.reduce(into: "") { html, character in
      switch character {
      case "&": html += "&amp;"
      case "<": html += "&lt;"
      case ">": html += "&gt;"
      case "\"": html += "&quot;"
      case "'": html += "&#39;"
      default: html.append(character)
      }
    }
  }

  /// Trusts the text: a literal is part of this program.
  init(stringLiteral text: String) { html = text }

  init(stringInterpolation: StringInterpolation) { self = stringInterpolation.page }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var page: PageText = ""

    init(literalCapacity: Int, interpolationCount: Int) {}

    mutating func appendLiteral(_ literal: String) { page.html += literal }
    mutating func appendInterpolation(_ other: PageText) { page.html += other.html }
    mutating func appendInterpolation(_ others: [PageText]) {
      for other in others { page.html += other.html }
    }
    mutating func appendInterpolation(_ value: some CustomStringConvertible) {
      page += PageText(value.description)
    }
    /// A coordinate, with at most one digit after the point.
    mutating func appendInterpolation(at value: Double) {
      let tenths = (value * 10).rounded() / 10
      page.html += tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
    }
  }

  static func += (page: inout PageText, other: PageText) { page.html += other.html }
}
