/// Rows of text in aligned columns, two blanks apart.
struct Table {
  enum Alignment {
    case left, right
  }

  private let alignments: [Alignment]
  private var rows: [[ConsoleLine]] = []

  init(_ alignments: Alignment..., header: [ConsoleLine]? = nil) {
    self.alignments = alignments
    if let header { rows.append(header) }
  }

  mutating func add(_ cells: ConsoleLine...) {
    rows.append(cells)
  }

  /// The lines, without blanks at their ends.
  func lines(indent: ConsoleLine = "") -> [ConsoleLine] {
    let widths = alignments.indices.map { column in
      rows.map { column < $0.count ? $0[column].width : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = indent
      var gap = 0
      for ((cell, alignment), width) in zip(zip(row, alignments), widths) {
        let padding = width - cell.width
        if !cell.isEmpty {
          line += .spaces(alignment == .left ? gap : gap + padding) + cell
          gap = 0
        }
        gap += 2 + (alignment == .left || cell.isEmpty ? padding : 0)
      }
      return line
    }
  }
}
