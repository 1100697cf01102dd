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
    return "'"
      + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
      + "'"
  }
}
