/// The order of several renames of tables, or of columns.
enum RenameOrder {
  /// Orders renames so that none takes a name that is still in use. A name in a cycle first gets a temporary name.
  ///
  /// - Parameters:
  ///   - key: Maps two names that cannot both exist to one key: their lower case, where SQLite ignores case.
  ///   - temporaryName: Makes a temporary name for a name.
  static func of(
    _ moves: [(String, String)], key: (String) -> String = { $0 },
    temporaryName: (String) throws -> String
  ) rethrows -> [(String, String)] {
    var waiting = moves.filter { $0.0 != $0.1 }
    var ordered: [(String, String)] = []
    while !waiting.isEmpty {
      let taken = Set(waiting.map { key($0.0) })
      if let free = waiting.firstIndex(where: {
        !taken.contains(key($0.1)) || key($0.0) == key($0.1)
      }) {
        ordered.append(waiting.remove(at: free))
      } else {
        let aside = try temporaryName(waiting[0].0)
        ordered.append((waiting[0].0, aside))
        waiting[0].0 = aside
      }
    }
    return ordered
  }
}
