/// Text of others, such as the names in a store, as it may go to a terminal.
extension String {
  /// On one line: what controls a terminal, begins a line or turns the direction of writing is
  /// written as `\n`, `\t` or `\u{1B}`. What is longer than a screen is cut.
  var printable: String {
    var text = ""
    var count = 0
    for scalar in unicodeScalars {
      count += 1
      guard count <= Self.printableLimit else { return text + "…" }
      switch scalar {
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
      default:
        switch scalar.properties.generalCategory {
        // The one that joins the parts of an emoji is harmless.
        case .format where scalar == "\u{200D}": text.unicodeScalars.append(scalar)
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
          text += "\\u{\(Swift.String(scalar.value, radix: 16, uppercase: true))}"
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    return text
  }

  /// Line by line.
  var printableLines: String {
    split(separator: "\n", omittingEmptySubsequences: false).map { Swift.String($0).printable }
      .joined(separator: "\n")
  }

  private static var printableLimit: Int { 1000 }
}
