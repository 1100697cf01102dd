internal import InstarSchema
internal import InstarWire

extension RunReport {
  /// Fills in the rows of each entity and the links of each relationship, before and after.
  mutating func count(before: StoreCensus, after: StoreCensus, path: MigrationPath) {
    entities = Self.entities(before: before, after: after, path: path)
    relationships = Self.relationships(before: before, after: after, path: path)
  }

  private static func entities(
    before: StoreCensus, after: StoreCensus, path: MigrationPath
  ) -> [Entity] {
    let kept = path.last.entities.map { ($0.name, path.origin(of: $0.name)) }
    let origins = Set(kept.compactMap(\.1))
    let removed = before.rows.filter { !origins.contains($0.key) }
      .map { Entity(name: $0.key, rowsBefore: $0.value, rowsAfter: nil) }
    let entities = kept.map { name, origin in
      Entity(
        name: name, rowsBefore: origin.flatMap { before.rows[$0] }, rowsAfter: after.rows[name])
    }
    return (entities + removed).sorted { $0.name < $1.name }
  }

  /// Both ends of a relationship hold the same links, which are counted once.
  private static func relationships(
    before: StoreCensus, after: StoreCensus, path: MigrationPath
  ) -> [Relationship] {
    var links: [Relationship] = []
    var locations = Set<String>()
    var continued = Set<String>()
    for entity in path.last.entities {
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        let origin = path.origin(of: relationship, in: entity.name)
        if let origin { continued.insert(origin) }
        guard let now = after.links[name], locations.insert(now.location).inserted else { continue }
        links.append(
          Relationship(
            name: name, linksBefore: origin.flatMap { before.links[$0]?.count },
            linksAfter: now.count))
      }
    }
    locations = Set(continued.compactMap { before.links[$0]?.location })
    for (name, gone) in before.links.sorted(by: { $0.key < $1.key })
    where locations.insert(gone.location).inserted {
      links.append(Relationship(name: name, linksBefore: gone.count, linksAfter: nil))
    }
    return links
  }
}
