/// How SQLite treats values by the declared type of their column (https://www.sqlite.org/datatype3.html, section 3.1).
package enum ColumnAffinity {
  case integer, text, blob, real, numeric

  package init(_ type: String) {
    let type = type.uppercased()
    func contains(_ words: String...) -> Bool { words.contains { type.contains($0) } }
    if contains("INT") {
      self = .integer
    } else if contains("CHAR", "CLOB", "TEXT") {
      self = .text
    } else if type.isEmpty || contains("BLOB") {
      self = .blob
    } else if contains("REAL", "FLOA", "DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Integer and numeric columns differ in casts only.
  package func isLike(_ other: ColumnAffinity) -> Bool {
    func kind(_ affinity: ColumnAffinity) -> ColumnAffinity {
      affinity == .numeric ? .integer : affinity
    }
    return kind(self) == kind(other)
  }
}
