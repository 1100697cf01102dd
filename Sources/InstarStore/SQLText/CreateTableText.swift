/// A `CREATE TABLE` statement, split at its commas.
///
/// A table is rebuilt from its own text, so that whatever no model describes stays as written, including comments.
package struct CreateTableText: Sendable {
  /// The definitions of columns, then constraints, each as written.
  package var items: [Item]
  /// The table options after the parentheses: `WITHOUT ROWID`, `STRICT`.
  package var suffix: String

  package struct Item: Sendable, Hashable {
    package var text: String
    /// The words outside parentheses and comments, in upper case. Quoted words stay as written, so that no name equals
    /// a keyword. Parentheses with their content are "(".
    package let words: [String]
    /// Every name in the item, in lower case, also inside parentheses.
    package let names: Set<String>
    /// The column it defines; `nil` for a constraint.
    package let column: String?

    /// The first words of table constraints.
    private static let constraints: Set<String> = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]

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
          names.insert(token.name.lowercased())
          if first == nil { first = token }
          if depth == 0 { words.append(token.kind == .word ? token.name.uppercased() : token.text) }
        case .text:
          if first == nil { first = token }
        case .other, .space, .comma: break
        }
      }
      self.words = words
      column = first.flatMap { token in
        let word = token.kind == .word ? token.name.uppercased() : ""
        return word == "CONSTRAINT" || Self.constraints.contains(word) ? nil : token.name
      }
      if let column { names.insert(column.lowercased()) }
      if !words.contains("CHECK"), column == nil { names.formUnion(Self.listed(in: text)) }
      self.names = names
    }

    /// Whether SQLite computes the column. `GENERATED ALWAYS` alone does not show it: the words may be missing before
    /// `AS`, and a column may have them as its unquoted name.
    package var isGenerated: Bool {
      zip(words, words.dropFirst()).contains { $0 == "AS" && $1 == "(" }
    }

    /// Whether the column, or constraint, makes values unique.
    package var isUnique: Bool { words.contains("UNIQUE") || words.contains("PRIMARY") }

    /// The names in the first parentheses, in lower case: the columns of a constraint.
    package var listed: [String] { Self.listed(in: text) }

    private static func listed(in text: String) -> [String] {
      var names: [String] = []
      var depth = 0
      for token in SQLToken.tokens(of: text) {
        switch token.kind {
        case .open: depth += 1
        case .close: return names
        case .word, .quoted, .text: if depth == 1 { names.append(token.name.lowercased()) }
        case .other, .space, .comma: break
        }
      }
      return names
    }

    /// Whether the column is the rowid of its table if it is the whole primary key: only a column declared exactly
    /// `INTEGER PRIMARY KEY` is, and not with `DESC` (https://www.sqlite.org/lang_createtable.html, section 5).
    package var isRowIDAsKey: Bool {
      let tokens = SQLToken.tokens(of: text).filter { $0.kind != .space }.dropFirst()
      guard let type = tokens.first, type.name.uppercased() == "INTEGER" else { return false }
      let next = tokens.dropFirst().first
      let isWholeType = next.map { next in
        next.kind == .word && Self.clauseWords.contains(next.name.uppercased())
      }
      let isDescending = zip(words, words.dropFirst()).contains { $0 == "KEY" && $1 == "DESC" }
      return isWholeType ?? true && !isDescending
    }

    /// The words that end a column's type.
    private static let clauseWords: Set<String> = [
      "CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE",
      "REFERENCES", "GENERATED", "AS",
    ]

    /// The text without white space and case, for comparing constraints.
    package var normalized: String {
      SQLToken.tokens(of: text).filter { $0.kind != .space }
        .map { $0.kind == .word || $0.kind == .quoted ? $0.name.lowercased() : $0.text }
        .joined(separator: " ")
    }

    /// Returns the definition without a clause, given by its first words. The clause's name and conflict resolution are
    /// removed too.
    package func removing(_ clause: String...) -> Item {
      var tokens = SQLToken.tokens(of: text)
      let words = Item.outerWords(tokens)
      let names = words.map { $0.name.uppercased() }
      guard
        let start = names.indices.first(where: { start in
          start + clause.count <= names.count
            && Array(names[start..<(start + clause.count)]) == clause
            // `DEFAULT NULL` and `ON DELETE SET NULL` do not restrict the column.
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

    /// Returns the definition with or without `NOT NULL`.
    package func required(_ isRequired: Bool) -> Item {
      guard isRequired else { return removing("NOT", "NULL") }
      if zip(words, words.dropFirst()).contains(where: { $0 == "NOT" && $1 == "NULL" }) {
        return self
      }
      return Item(removing("NULL").text + " NOT NULL")
    }

    /// Returns the definition with another declared type.
    package func declared(as type: String) -> Item {
      let tokens = SQLToken.tokens(of: text)
      let words = Item.outerWords(tokens)
      guard let name = tokens.firstIndex(where: { $0.kind != .space }) else { return self }
      let rest = words.first {
        $0.index > name && Self.clauseWords.contains($0.name.uppercased())
      }
      let end = rest.map(\.index) ?? tokens.count
      let behind = tokens[end...].map(\.text).joined()
      return Item(
        tokens[...name].map(\.text).joined() + " \(type)"
          + (behind.isEmpty ? "" : " \(behind)"))
    }

    /// The text after `DEFAULT`: a literal, or an expression in parentheses; `nil` where the column has no default.
    package var defaultValue: String? {
      let tokens = SQLToken.tokens(of: text)
      return Item.defaultClause(tokens).map { clause in
        tokens[clause].dropFirst().drop { $0.kind == .space }.map(\.text).joined()
      }
    }

    /// Returns the definition with another default, or without one.
    package func withDefault(_ value: String?) -> Item {
      var tokens = SQLToken.tokens(of: text)
      guard let clause = Item.defaultClause(tokens) else {
        return value.map { Item("\(text) DEFAULT \($0)") } ?? self
      }
      let clauseText = value.map { "DEFAULT \($0)" } ?? ""
      tokens.replaceSubrange(clause, with: SQLToken.tokens(of: clauseText))
      return Item(tokens.map(\.text).joined())
    }

    private static func defaultClause(_ tokens: [SQLToken]) -> ClosedRange<Int>? {
      guard
        let start = outerWords(tokens).first(where: { $0.name.uppercased() == "DEFAULT" })?.index
      else { return nil }
      var depth = 0
      for index in tokens.indices.dropFirst(start + 1) where tokens[index].kind != .space {
        if tokens[index].kind == .open { depth += 1 }
        if tokens[index].kind == .close { depth -= 1 }
        let isSign = tokens[index].text == "-" || tokens[index].text == "+"
        guard depth == 0, !isSign else { continue }
        // The parts of a number, or of x'00', stand next to each other.
        let end = tokens[index...].firstIndex { $0.kind == .space || $0.kind == .comma }
        return start...(tokens[index].kind == .close ? index : (end ?? tokens.count) - 1)
      }
      return nil
    }

    /// Returns the clauses that begin with a keyword, each with its parentheses or the one name after it.
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

    /// The constraints of one item: SQLite also accepts them without commas between them.
    fileprivate var constraints: [Item] {
      let tokens = SQLToken.tokens(of: text)
      var starts: [Int] = []
      var hasKeyword = false
      for word in Item.outerWords(tokens) {
        let name = word.name.uppercased()
        let isKeyword = Self.constraints.contains(name)
        guard isKeyword || name == "CONSTRAINT" else { continue }
        if hasKeyword {
          starts.append(word.index)
          hasKeyword = false
        }
        if isKeyword { hasKeyword = true }
      }
      // Includes the space before it, which may hold a comment about it.
      starts = starts.map { tokens[$0 - 1].kind == .space ? $0 - 1 : $0 }
      return zip([0] + starts, starts + [tokens.count]).map { start, end in
        Item(tokens[start..<end].map(\.text).joined())
      }
    }

    /// The words outside parentheses, with their positions.
    private static func outerWords(_ tokens: [SQLToken]) -> [(name: String, index: Int)] {
      var depth = 0
      var words: [(String, Int)] = []
      for (index, token) in tokens.enumerated() {
        switch token.kind {
        case .open: depth += 1
        case .close: depth -= 1
        case .word: if depth == 0 { words.append((token.name, index)) }
        // Quoted, so that no name equals a keyword.
        case .quoted: if depth == 0 { words.append((token.text, index)) }
        case .space, .comma, .text, .other: break
        }
      }
      return words
    }
  }

  /// `nil` for a text that is not a `CREATE TABLE` with columns in parentheses.
  package init?(_ sql: String) {
    guard let (elements, rest) = SQLToken.list(in: sql) else { return nil }
    items = elements.flatMap { tokens -> [Item] in
      let item = Item(tokens.map(\.text).joined())
      return item.column == nil ? item.constraints : [item]
    }
    suffix = rest.map(\.text).joined()
  }

  /// Returns the statement that creates the table under a name.
  package func statement(named name: String) -> String {
    "CREATE TABLE \(SQLIdentifier.sql(name)) (\(items.map(\.text).joined(separator: ",")))\(suffix)"
  }

  package func index(ofColumn name: String) -> Int? {
    items.firstIndex { $0.column?.lowercased() == name.lowercased() }
  }

  /// Adds a column after the others.
  package mutating func append(column definition: String) {
    let end = items.lastIndex { $0.column != nil }.map { $0 + 1 } ?? items.count
    items.insert(Item("\n  \(definition)"), at: end)
  }
}
