internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// The relationships with links that lead to rows which do not exist: a plan's code that follows one of them fails.
  ///
  /// Reads all keys of the store, so only `plan` asks.
  func brokenLinks(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    let links = try StoreReader.withReadOnlyStore(file.path) { db in
      try StoreCensus(db, layout: layout).links
    }
    var places = Set<String>()
    return links.sorted { $0.key < $1.key }.compactMap { name, links in
      // Both ends of a relationship hold the same links.
      guard links.broken > 0, places.insert(links.place).inserted else { return nil }
      return Finding(
        severity: .warning, code: .brokenReferences,
        message:
          "\(links.broken) of \(links.count) links of \(name) lead to rows that do not exist",
        fix: "set them to nil in willMigrate; they stay as they are otherwise")
    }
  }
}
