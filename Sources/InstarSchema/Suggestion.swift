/// Finds the name that was probably meant.
package enum Suggestion {
  /// Returns the candidate with the fewest letters to change, add, leave out or swap with the next. If none is near,
  /// returns the only one that begins with the word; else `nil`.
  package static func nearest(to word: String, among candidates: [String]) -> String? {
    let word = word.lowercased()
    let limit = max(1, word.count / 3)
    let near =
      candidates
      .map { (name: $0, distance: distance(word, $0.lowercased())) }
      .filter { $0.distance <= limit }
      .min { $0.distance < $1.distance }
    if let near { return near.name }
    let longer = candidates.filter { $0.lowercased().hasPrefix(word) }
    return word.count >= shortestBeginning && longer.count == 1 ? longer.first : nil
  }

  /// Shorter words begin too many names.
  private static let shortestBeginning = 3

  /// The Damerau-Levenshtein distance, where no letter is changed twice.
  private static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    var rows = [Array(0...right.count)]
    for (index, letter) in left.enumerated() {
      let last = rows[index]
      var row = [index + 1]
      for (place, other) in right.enumerated() {
        let exchanged = last[place] + (letter == other ? 0 : 1)
        var distance = min(exchanged, last[place + 1] + 1, row[place] + 1)
        if index > 0, place > 0, letter == right[place - 1], other == left[index - 1] {
          distance = min(distance, rows[index - 1][place - 1] + 1)
        }
        row.append(distance)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}
