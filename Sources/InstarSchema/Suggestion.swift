/// Finds the name that was probably meant.
package enum Suggestion {
  /// Returns the candidate with the fewest letters to change, add or leave out; `nil` where none is near.
  package static func nearest(to word: String, among candidates: [String]) -> String? {
    let limit = max(1, word.count / 3)
    return
      candidates
      .map { (name: $0, distance: distance(word.lowercased(), $0.lowercased())) }
      .filter { $0.distance <= limit }
      .min { $0.distance < $1.distance }?
      .name
  }

  /// The Levenshtein distance.
  private static func distance(_ left: String, _ right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (index, letter) in left.enumerated() {
      var next = [index + 1]
      for (place, other) in right.enumerated() {
        let exchanged = row[place] + (letter == other ? 0 : 1)
        next.append(min(exchanged, row[place + 1] + 1, next[place] + 1))
      }
      row = next
    }
    return row[right.count]
  }
}
