/// The text of a `CREATE TABLE` statement, taken apart at its commas.
///
/// A table is rebuilt from its own text: what no model speaks of stays as it was written, comments included.
package struct CreateTableText: Sendable {
  /// What stands between the parentheses: definitions of columns, then constraints, each as written.
  package var items: [Item]
  /// What stands behind the parentheses: `WITHOUT ROWID`, `STRICT`.
  package var suffix: String

  package struct Item: Sendable, Hashable {
    package var text: String
    /// The words outside of parentheses and comments, in upper case where they are not quoted; what is in parentheses is "(".
    package let words: [String]
    /// Every name in it, in lower case, also inside of parentheses.
    package let names: Set<String>
    /// The column it defines; `nil` for a constraint.
    package let column: String?

    package init(_ text: String) {
      self.text = text
      var words: [String] = []
      var names: Set<String> = []
      var depth = 0
      var first: SQLToken?
      for token in SQLToken.tokens(of: text) {
        switch token.kind {
        case .open:
          if depth == 0 { words.append("(") }
          depth += 1
        case .close: depth -= 1
        case .word, .quoted:
          if token.kind == .quoted || !token.name.isEmpty { names.insert(token.name.lowercased()) }
          if first == nil { first = token }
          if depth == 0 { words.append(token.kind == .word ? token.name.uppercased() : token.name) }
        case .other, .space, .comma, .text: break
        }
      }
      self.words = words
      self.names = names
      let constraints: Set<String> = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]
      column = first.flatMap { token in
        token.kind == .word && constraints.contains(token.name.uppercased()) ? nil : token.name
      }
    }

    /// Whether SQLite computes the column.
    package var isGenerated: Bool {
      words.contains("GENERATED")
        || zip(words, words.dropFirst()).contains { $0 == "AS" && $1 == "(" }
    }

    /// Whether the column, or constraint, makes values unique.
    package var isUnique: Bool { words.contains("UNIQUE") || words.contains("PRIMARY") }

    /// The names in the first parentheses, in lower case: the columns of a constraint.
    package var listed: [String] {
      var names: [String] = []
      var depth = 0
      for token in SQLToken.tokens(of: text) {
        switch token.kind {
        case .open: depth += 1
        case .close: return names
        case .word, .quoted: if depth == 1 { names.append(token.name.lowercased()) }
        case .other, .space, .comma, .text: break
        }
      }
      return names
    }

    /// The text without white space and case, to compare constraints by.
    package var normalized: String {
      SQLToken.tokens(of: text).filter { $0.kind != .space }
        .map { $0.kind == .word || $0.kind == .quoted ? $0.name.lowercased() : $0.text }
        .joined(separator: " ")
    }

    /// The definition without a clause, given by its first words; with it go its name and what is to be done on conflict.
    package func removing(_ clause: String...) -> Item {
      var tokens = SQLToken.tokens(of: text)
      let words = Item.outerWords(tokens)
      let names = words.map { $0.name.uppercased() }
      guard
        let start = names.indices.first(where: { start in
          start + clause.count <= names.count
            && Array(names[start..<(start + clause.count)]) == clause
            // `DEFAULT NULL` and `ON DELETE SET NULL` say nothing of what a column may hold.
            && !(clause == ["NULL"] && start > 0
              && ["NOT", "DEFAULT", "SET"].contains(names[start - 1]))
        })
      else { return self }
      var first = start
      var last = start + clause.count - 1
      if start >= 2, names[start - 2] == "CONSTRAINT" { first = start - 2 }
      if last + 3 < names.count, names[last + 1] == "ON", names[last + 2] == "CONFLICT" {
        last += 3
      }
      var from = words[first].index
      if from > 0, tokens[from - 1].kind == .space, !tokens[from - 1].text.contains("-") {
        from -= 1
      }
      tokens.removeSubrange(from...words[last].index)
      return Item(tokens.map(\.text).joined())
    }

    /// The definition of a column that may, or may not, be NULL.
    package func required(_ isRequired: Bool) -> Item {
      guard isRequired else { return removing("NOT", "NULL") }
      if zip(words, words.dropFirst()).contains(where: { $0 == "NOT" && $1 == "NULL" }) {
        return self
      }
      return Item(removing("NULL").text + " NOT NULL")
    }

    /// The definition with another declared type.
    package func declared(as type: String) -> Item {
      let tokens = SQLToken.tokens(of: text)
      let words = Item.outerWords(tokens)
      guard let name = words.first else { return self }
      let clauses: Set<String> = [
        "CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE",
        "REFERENCES", "GENERATED", "AS",
      ]
      let rest = words.dropFirst().first { clauses.contains($0.name.uppercased()) }
      let end = rest.map(\.index) ?? tokens.count
      let behind = tokens[end...].map(\.text).joined()
      return Item(
        tokens[...name.index].map(\.text).joined() + " \(type)"
          + (behind.isEmpty ? "" : " \(behind)"))
    }

    /// The clauses of a kind, each with what is in its parentheses or its one name behind it.
    package func clauses(_ keyword: String) -> [String] {
      let tokens = SQLToken.tokens(of: text)
      var found: [String] = []
      for word in Item.outerWords(tokens) where word.name.uppercased() == keyword {
        var clause = ""
        var depth = 0
        for token in tokens[word.index...] {
          clause += token.text
          if token.kind == .open { depth += 1 }
          if token.kind == .close {
            depth -= 1
            if depth == 0 { break }
          }
          let isName = token.kind == .word || token.kind == .quoted
          if depth == 0, isName, token.name.uppercased() != keyword { break }
        }
        found.append(clause)
      }
      return found
    }

    /// The words outside of parentheses, with their places.
    private static func outerWords(_ tokens: [SQLToken]) -> [(name: String, index: Int)] {
      var depth = 0
      var words: [(String, Int)] = []
      for (index, token) in tokens.enumerated() {
        switch token.kind {
        case .open: depth += 1
        case .close: depth -= 1
        case .word: if depth == 0 { words.append((token.name, index)) }
        // In quotes, so that no name is taken for a keyword.
        case .quoted: if depth == 0 { words.append((token.text, index)) }
        case .space, .comma, .text, .other: break
        }
      }
      return words
    }
  }

  /// `nil` for a text that is no `CREATE TABLE` with columns in parentheses.
  package init?(_ sql: String) {
    var items: [String] = []
    var current = ""
    var suffix = ""
    var depth = 0
    var isDone = false
    for token in SQLToken.tokens(of: sql) {
      if isDone {
        suffix += token.text
        continue
      }
      switch token.kind {
      case .open:
        depth += 1
        if depth == 1 { continue }
      case .close:
        depth -= 1
        if depth == 0 {
          items.append(current)
          isDone = true
          continue
        }
      case .comma where depth == 1:
        items.append(current)
        current = ""
        continue
      default: break
      }
      if depth > 0 { current += token.text }
    }
    guard isDone, !items.isEmpty else { return nil }
    self.items = items.map(Item.init)
    self.suffix = suffix
  }

  /// The statement that makes the table under a name.
  package func statement(named name: String) -> String {
    "CREATE TABLE \(PlainName.sql(name)) (\(items.map(\.text).joined(separator: ",")))\(suffix)"
  }

  package func index(ofColumn name: String) -> Int? {
    items.firstIndex { $0.column?.lowercased() == name.lowercased() }
  }

  /// Adds a column behind the others.
  package mutating func append(column definition: String) {
    let end = items.lastIndex { $0.column != nil }.map { $0 + 1 } ?? items.count
    items.insert(Item("\n  \(definition)"), at: end)
  }
}

/// A piece of SQL text, as far as it matters where names, parentheses and commas are.
package struct SQLToken: Sendable {
  package enum Kind: Sendable {
    case word, quoted, text, open, close, comma, space, other
  }

  package let kind: Kind
  /// As written.
  package let text: String
  /// A name without its quotes; a word as it is.
  package var name: String {
    let bytes = Array(text.utf8)
    guard kind == .quoted, let quote = bytes.first, bytes.count >= 2 else {
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

  /// All names in a text, in lower case, string literals left out.
  package static func names(in text: String) -> Set<String> {
    Set(
      tokens(of: text).filter { $0.kind == .word || $0.kind == .quoted }.map {
        $0.name.lowercased()
      })
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
    /// The index behind a quoted text that begins at `start`.
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
