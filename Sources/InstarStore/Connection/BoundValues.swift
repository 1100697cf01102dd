/// The values bound to a statement. SQLite does not report them, but it returns the statement's text with literals for
/// the parameters, so the values are where that text differs from the original.
struct BoundValues {
  /// As Core Data prints them, at the number of their parameter minus one.
  private(set) var inOrder: [String] = []

  /// - Parameters:
  ///   - template: the statement's text.
  ///   - expanded: The same with literals for its parameters, from `sqlite3_expanded_sql`.
  init(template: String, expanded: String) {
    var template = SQLToken.tokens(of: template)[...]
    var expanded = SQLToken.tokens(of: expanded)[...]
    var values: [Int: String] = [:]
    var highest = 0
    while let token = template.popFirst() {
      guard token.text == "?" else {
        expanded = expanded.dropFirst()
        continue
      }
      var number = highest + 1
      if let given = template.first.flatMap({ Int($0.text) }) {
        number = given
        template.removeFirst()
      }
      highest = max(highest, number)
      values[number] = Self.shown(Self.literal(&expanded))
    }
    inOrder = (1..<(highest + 1)).map { values[$0] ?? "nil" }
  }

  /// Removes a literal from the front: a number may have a sign, a point and an exponent, and a blob is a text after an
  /// `x`.
  private static func literal(_ tokens: inout ArraySlice<SQLToken>) -> String {
    var literal = tokens.popFirst()?.text ?? ""
    while let next = tokens.first?.text, let last = literal.last,
      literal == "x" || "-.+".contains(last) || literal.first != "'" && next == "."
        || literal.first?.isLetter == false && last == "e" && ["+", "-"].contains(next)
    {
      literal += next
      tokens.removeFirst()
    }
    return literal
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
}
