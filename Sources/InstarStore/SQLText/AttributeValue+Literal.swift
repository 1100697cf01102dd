public import InstarSchema

extension AttributeValue {
  /// The value as an SQL literal.
  public var literal: String {
    switch self {
    case .integer(let integer): "\(integer)"
    // Swift prints the shortest text that reads back as the same number; SQLite has no literal for those that are none.
    case .real(let real): real.isFinite ? "\(real)" : (real < 0 ? "-9e999" : "9e999")
    case .text(let text): Self.textLiteral(text)
    case .blob(let bytes): "X'\(Digest.hexadecimal(bytes))'"
    }
  }

  /// A NUL would end the statement's text, so such a text is written by its bytes.
  private static func textLiteral(_ text: String) -> String {
    if text.utf8.contains(0) {
      return "CAST(\(AttributeValue.blob(Array(text.utf8)).literal) AS TEXT)"
    }
    return text.quoted(by: UInt8(ascii: "'"))
  }
}

extension String {
  /// The text between two quotes, those in it doubled. By bytes, as SQLite reads it: to Swift a quote and the accent behind
  /// it are one character, which is no quote.
  package func quoted(by quote: UInt8) -> String {
    var bytes = [quote]
    for byte in utf8 {
      if byte == quote { bytes.append(byte) }
      bytes.append(byte)
    }
    bytes.append(quote)
    return String(decoding: bytes, as: UTF8.self)
  }
}
