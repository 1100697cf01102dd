internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Counts the values of attributes that a plan removes. The plan needs no permission for that, but the report says it.
struct RemovedValues {
  /// "drops 1204 non-null values of Note.subtitle", for each attribute that has any.
  let sentences: [String]

  /// - Parameters:
  ///   - layout: The layout of the path's first version, in the store.
  init(_ db: Database, layout: any StoreLayout, path: MigrationPath) throws {
    let layouts = layout.entityLayouts.keyed(by: \.name)
    sentences = try path.endingAttributes.compactMap { entity, name, losers in
      guard let layout = layouts[entity],
        let column = layout.attributes.first(where: { $0.attribute.name == name })?.column.name
      else { return nil }
      var (condition, rows) = (layout.rowCondition, "")
      if let losers, let column = layout.entityColumn {
        let numbers = losers.compactMap { layouts[$0]?.number }
        condition = "\(column) IN (\(numbers.map(String.init).joined(separator: ", ")))"
        rows = " in rows of \(losers.joined(separator: " and "))"
      }
      let count = try Int.fetchOne(
        db,
        sql: "SELECT count(\(column)) FROM \(layout.table)"
          + (condition.map { " WHERE \($0)" } ?? ""))
      guard let count, count > 0 else { return nil }
      let drops = "drops \(count) non-null values of \(entity).\(name)\(rows)"
      return path.hasNewAttribute(name, of: entity)
        ? "\(drops); version \(path.to) has a new attribute of this name, which does not get them"
        : drops
    }
  }
}

extension StoreInspection {
  /// Returns what the run will remove, as far as the schemas tell. Reads columns of all rows, so only `plan` calls it.
  func removedValues(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    let removed = try StoreReader.withReadOnlyStore(file.path) { db in
      try RemovedValues(db, layout: layout, path: path)
    }
    return removed.sentences.map { Finding(severity: .note, message: $0) }
  }
}

extension MigrationPath {
  /// Returns `endingAttributes`.
  func attributesThatEnd() -> [(entity: String, attribute: String, losers: [String]?)] {
    attributePaths.compactMap { path in
      guard !path.removingEntities.isEmpty, let name = path.origin.property else { return nil }
      // What nothing keeps is gone also in the rows that lost it before.
      let losers = path.removingEntities + (path.isKept ? [] : path.losingEntities)
      let abstract = Set(first.entities.lazy.filter(\.isAbstract).map(\.name))
      let owners = first.family(of: path.origin.entity).filter { !abstract.contains($0) }
      let isWhole = owners.allSatisfy(losers.contains)
      return (
        path.origin.entity, name, isWhole ? nil : owners.filter(losers.contains).sorted()
      )
    }
  }

  /// Whether the last schema has an attribute of the name of one that ended, as after a change of type in two stages.
  fileprivate func hasNewAttribute(_ attribute: String, of entity: String) -> Bool {
    last.entities.contains { candidate in
      origin(of: candidate.name) == entity
        && candidate.attributes.contains { $0.name == attribute }
    }
  }
}
