internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Returns the relationships with links to missing rows: code of a plan that follows such a link fails.
  ///
  /// Reads all keys of the store, so only `plan` calls it.
  func brokenLinks(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      var locations = Set<String>()
      return try StoreCensus(db, layout: layout, findsBroken: true).links.sorted { $0.key < $1.key }
        .compactMap { name, links in
          // Both ends of a relationship hold the same links.
          guard links.broken ?? 0 > 0, locations.insert(links.location).inserted,
            let rows = try layout.linkStatement(name)?.brokenRows(db)
          else { return nil }
          return Finding(
            severity: .warning, code: .brokenReferences,
            message:
              "\(rows.count) of \(links.count) links of \(name) reference missing rows\(rows.suffix)",
            fix: "set them to nil in willMigrate; else they stay as they are", rows: rows)
        }
    }
  }
}
