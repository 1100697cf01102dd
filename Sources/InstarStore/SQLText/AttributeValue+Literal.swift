public import InstarSchema

extension AttributeValue {
  /// The value as an SQL literal.
  public var literal: String {
    switch self {
    case .integer(let integer): "\(integer)"
    // SQLite stores no such number, and takes NULL for it.
    case .real(let real) where real.isNaN: "NULL"
    // Swift prints the shortest text that reads back as the same number. SQLite has no literals for infinities.
    case .real(let real): real.isFinite ? "\(real)" : (real < 0 ? "-9e999" : "9e999")
    case .text(let text): Self.textLiteral(text)
    case .blob(let bytes): "X'\(Digest.hexadecimal(bytes))'"
    }
  }

  /// A NUL would end the statement, so such a text is written as bytes.
  private static func textLiteral(_ text: String) -> String {
    if text.utf8.contains(0) {
      return "CAST(\(AttributeValue.blob(Array(text.utf8)).literal) AS TEXT)"
    }
    return text.quoted(by: UInt8(ascii: "'"))
  }
}

extension String {
  /// Returns the text in quotes, with the quotes inside it doubled. Works on bytes, as SQLite does: Swift sees a quote
  /// and a following accent as one character.
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
