internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The links of a relationship that reference missing rows.
struct BrokenLinks {
  /// "Note.folder"
  let relationship: String
  let statement: LinkStatement
  /// How many links the relationship has.
  let linkCount: Int
  let rows: AffectedRows

  var sentence: String {
    "\(rows.count) of \(linkCount) links of \(relationship) reference missing rows\(rows.suffix)"
  }
}

extension StoreLayout {
  /// Returns the relationships with links to missing rows. Reads all keys of the store.
  func brokenLinks(_ db: Database) throws -> [BrokenLinks] {
    var locations = Set<String>()
    return try StoreCensus(db, layout: self, findsBroken: true).links.sorted { $0.key < $1.key }
      .compactMap { name, links in
        // Both ends of a relationship hold the same links.
        guard links.broken ?? 0 > 0, locations.insert(links.location).inserted,
          let statement = linkStatement(name), let rows = try statement.brokenRows(db)
        else { return nil }
        return BrokenLinks(
          relationship: name, statement: statement, linkCount: links.count, rows: rows)
      }
  }
}

extension StoreInspection {
  /// Returns the relationships with links to missing rows: code of a plan that follows such a link fails.
  ///
  /// Reads all keys of the store, so only `plan` calls it.
  func brokenLinks(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { try layout.brokenLinks($0) }.map {
      Finding(
        severity: .warning, code: .brokenReferences, message: $0.sentence,
        fix: "set them to nil in willMigrate; else they stay as they are", rows: $0.rows)
    }
  }
}
