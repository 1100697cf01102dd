/// The text of a `CREATE INDEX` statement, taken apart: what the index covers, and of which rows.
struct CreateIndexText: Sendable {
  /// Columns or expressions, each as written but for comments and line breaks.
  let terms: [String]
  /// What stands behind `WHERE`; `nil` for an index of all rows.
  let condition: String?

  /// `nil` for a text without terms in parentheses.
  init?(_ sql: String) {
    var terms: [String] = []
    var current = ""
    var condition: String?
    var depth = 0
    var isDone = false
    for token in SQLToken.tokens(of: sql) {
      // A comment could swallow what is written behind it.
      let text = token.kind == .space ? " " : token.text
      if isDone {
        if condition != nil {
          condition?.append(text)
        } else if token.kind == .word, token.name.uppercased() == "WHERE" {
          condition = ""
        }
        continue
      }
      switch token.kind {
      case .open:
        depth += 1
        if depth == 1 { continue }
      case .close:
        depth -= 1
        isDone = depth == 0
        if isDone { continue }
      case .comma where depth == 1:
        terms.append(current)
        current = ""
        continue
      default: break
      }
      if depth > 0 { current += text }
    }
    guard isDone else { return nil }
    self.terms = (terms + [current]).map(Self.trimmed)
    self.condition = condition.map(Self.trimmed)
  }

  private static func trimmed(_ text: String) -> String {
    String(text.drop { $0 == " " }.reversed().drop { $0 == " " || $0 == ";" }.reversed())
  }
}
