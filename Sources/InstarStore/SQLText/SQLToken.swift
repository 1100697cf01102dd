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

  package static func tokens(of text: String) -> [SQLToken] {
    let bytes = Array(text.utf8)
    var tokens: [SQLToken] = []
    var start = 0
    func isWord(_ byte: UInt8) -> Bool {
      byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
        || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    /// The index after the quoted text that begins at `start`.
    func endOfQuoted(_ close: UInt8) -> Int {
      var index = start + 1
      while index < bytes.count {
        if bytes[index] == close {
          let isDoubled = close != 0x5D && index + 1 < bytes.count && bytes[index + 1] == close
          if !isDoubled { return index + 1 }
          index += 1
        }
        index += 1
      }
      return bytes.count
    }
    while start < bytes.count {
      let byte = bytes[start]
      let next = start + 1 < bytes.count ? bytes[start + 1] : 0
      var end = start + 1
      let kind: Kind
      switch byte {
      case UInt8(ascii: "("): kind = .open
      case UInt8(ascii: ")"): kind = .close
      case UInt8(ascii: ","): kind = .comma
      case UInt8(ascii: "'"):
        kind = .text
        end = endOfQuoted(byte)
      case UInt8(ascii: "\""), UInt8(ascii: "`"):
        kind = .quoted
        end = endOfQuoted(byte)
      case UInt8(ascii: "["):
        kind = .quoted
        end = endOfQuoted(0x5D)
      case UInt8(ascii: "-") where next == byte:
        kind = .space
        while end < bytes.count, bytes[end - 1] != 0x0A { end += 1 }
      case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
        kind = .space
        end = start + 2
        while end < bytes.count,
          !(bytes[end - 1] == 0x2F && bytes[end - 2] == 0x2A && end > start + 3)
        {
          end += 1
        }
      case _ where isSpace(byte):
        kind = .space
        while end < bytes.count, isSpace(bytes[end]) { end += 1 }
      case _ where isWord(byte):
        kind = .word
        while end < bytes.count, isWord(bytes[end]) { end += 1 }
      default: kind = .other
      }
      tokens.append(SQLToken(kind: kind, text: String(decoding: bytes[start..<end], as: UTF8.self)))
      start = end
    }
    return tokens
  }
}
