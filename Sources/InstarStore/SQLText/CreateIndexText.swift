/// A `CREATE INDEX` statement, split into what the index covers and which rows it covers.
struct CreateIndexText: Sendable {
  /// Columns or expressions, as written but without comments and line breaks.
  let terms: [String]
  /// The condition after `WHERE`; `nil` for an index of all rows.
  let condition: String?

  /// `nil` for a text without terms in parentheses.
  init?(_ sql: String) {
    guard let (elements, rest) = SQLToken.list(in: sql) else { return nil }
    terms = elements.map { Self.text(of: $0) }
    condition =
      rest.firstIndex { $0.kind == .word && $0.name.uppercased() == "WHERE" }
      .map { Self.text(of: rest[($0 + 1)...]) }
  }

  /// Without comments: a line comment would swallow the text after it.
  private static func text(of tokens: some Sequence<SQLToken>) -> String {
    trimmed(tokens.map { $0.kind == .space ? " " : $0.text }.joined())
  }

  private static func trimmed(_ text: String) -> String {
    String(text.drop { $0 == " " }.reversed().drop { $0 == " " || $0 == ";" }.reversed())
  }
}
