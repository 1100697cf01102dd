/// A token of SQL, as far as names, parentheses and commas matter.
package struct SQLToken: Sendable {
  package enum Kind: Sendable {
    case word, quoted, text, open, close, comma, space, other
  }

  package let kind: Kind
  /// As written.
  package let text: String
  /// A name without its quotes; a word as it is. SQLite also accepts a string literal where only a name is possible.
  package var name: String {
    let bytes = Array(text.utf8)
    guard kind == .quoted || kind == .text, let quote = bytes.first, bytes.count >= 2 else {
      return kind == .word ? text : ""
    }
    var name: [UInt8] = []
    var isDoubled = false
    for byte in bytes.dropFirst().dropLast() {
      isDoubled = byte == quote && quote != UInt8(ascii: "[") && !isDoubled
      if !isDoubled { name.append(byte) }
    }
    return String(decoding: name, as: UTF8.self)
  }

  /// Returns the name that stands as an identifier in SQL.
  static func name(ofSQL identifier: String) -> String {
    tokens(of: identifier).first?.name ?? identifier
  }

  /// Returns all names in a text in lower case, without string literals.
  package static func names(in text: String) -> Set<String> {
    Set(
      tokens(of: text).filter { $0.kind == .word || $0.kind == .quoted }.map {
        $0.name.lowercased()
      })
  }

  /// Returns the content of the first parentheses, split at its commas, and the tokens after them; `nil` where there
  /// are no parentheses.
  static func list(in text: String) -> (elements: [[SQLToken]], rest: ArraySlice<SQLToken>)? {
    let tokens = tokens(of: text)
    var elements: [[SQLToken]] = [[]]
    var depth = 0
    for (index, token) in tokens.enumerated() {
      switch token.kind {
      case .open:
        depth += 1
        if depth == 1 { continue }
      case .close:
        depth -= 1
        if depth == 0 { return (elements, tokens[(index + 1)...]) }
      case .comma where depth == 1:
        elements.append([])
        continue
      default: break
      }
      if depth > 0 { elements[elements.count - 1].append(token) }
    }
    return nil
  }

  /// Splits a text into tokens, which together are the text.
  package static func tokens(of text: String) -> [SQLToken] {
    let scanner = SQLScanner(bytes: Array(text.utf8))
    var tokens: [SQLToken] = []
    var start = 0
    while start < scanner.bytes.count {
      let (kind, end) = scanner.token(at: start)
      let text = String(decoding: scanner.bytes[start..<end], as: UTF8.self)
      tokens.append(SQLToken(kind: kind, text: text))
      start = end
    }
    return tokens
  }
}
