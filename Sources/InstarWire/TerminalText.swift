internal import InstarSchema

extension String {
  /// The text on one line, safe for a terminal. Characters that control a terminal, begin a line or turn the direction
  /// of writing are written as in JSON: `\n`, `\t`, `\u001b`.
  public var escapedForTerminal: String {
    // Nearly every text. Bytes are compared faster than characters.
    if utf8.allSatisfy((UInt8(ascii: " ")...UInt8(ascii: "~")).contains) { return self }
    guard unicodeScalars.contains(where: \.isUnsafeOnTerminal) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
      case _ where scalar.isUnsafeOnTerminal:
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}
