internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Counts the values of attributes that a plan removes. The plan needs no permission for that, but the report says it.
struct RemovedValues {
  /// "drops 1204 non-null values of Note.subtitle", for each attribute that has any.
  let sentences: [String]
  /// How to keep them, by sentence, where the last version still has the property.
  private(set) var corrections: [String: String] = [:]

  /// - Parameters:
  ///   - layout: The layout of the path's first version, in the store.
  init(_ db: Database, layout: any StoreLayout, path: MigrationPath) throws {
    let layouts = layout.entityLayouts.keyed(by: \.name)
    var corrections: [String: String] = [:]
    sentences = try path.endingAttributes.compactMap { ending in
      guard let layout = layouts[ending.entity],
        let column = layout.attributes.first(where: { $0.attribute.name == ending.attribute })?
          .column.name
      else { return nil }
      var (conditions, rows) = ([layout.rowCondition].compactMap(\.self), "")
      if let losers = ending.losers, let column = layout.entityColumn {
        let numbers = losers.compactMap { layouts[$0]?.number }
        conditions = ["\(column) IN (\(numbers.map(String.init).joined(separator: ", ")))"]
        rows = " in rows of \(losers.joined(separator: " and "))"
      }
      if let retyped = ending.retyped {
        let names = retyped.caseNames.map { AttributeValue.text($0).literal }
        conditions.append("\(column) NOT IN (\(names.joined(separator: ", ")))")
      }
      let count = try Int.fetchOne(
        db,
        sql: "SELECT count(\(column)) FROM \(layout.table)"
          + (conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))"))
      guard let count, count > 0 else { return nil }
      let drops = "drops \(count) non-null values of \(ending.path)\(rows)"
      if let retyped = ending.retyped {
        let sentence = "\(drops), which are not the name of a case: \(retyped.caseList)"
        corrections[sentence] = retyped.correction(of: ending.entity)
        return sentence
      }
      return path.hasNewAttribute(ending.attribute, of: ending.entity)
        ? "\(drops); version \(path.to) has a new attribute of this name, which does not get them"
        : drops
    }
    self.corrections = corrections
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
    return removed.sentences.map { sentence in
      let fix = removed.corrections[sentence]
      return Finding(severity: fix == nil ? .note : .warning, message: sentence, fix: fix)
    }
  }
}

extension MigrationPath {
  /// Whether the last schema has an attribute of the name of one that ended, as after a change of type in two stages.
  fileprivate func hasNewAttribute(_ attribute: String, of entity: String) -> Bool {
    last.entities.contains { candidate in
      origin(of: candidate.name) == entity
        && candidate.attributes.contains { $0.name == attribute }
    }
  }
}
