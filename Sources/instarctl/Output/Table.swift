/// Rows of text in aligned columns, two blanks apart.
struct Table {
  enum Alignment {
    case left, right
  }

  var alignments: [Alignment]
  private(set) var rows: [[String]] = []

  init(_ alignments: Alignment..., header: [String]? = nil) {
    self.alignments = alignments
    if let header { rows.append(header) }
  }

  mutating func add(_ cells: String...) {
    rows.append(cells)
  }

  /// The lines, without blanks at their ends.
  func lines(indent: String = "") -> [String] {
    let widths = alignments.indices.map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = indent
      for ((cell, alignment), width) in zip(zip(row, alignments), widths) {
        let padding = String(repeating: " ", count: width - cell.count)
        line += (alignment == .left ? cell + padding : padding + cell) + "  "
      }
      return String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}
