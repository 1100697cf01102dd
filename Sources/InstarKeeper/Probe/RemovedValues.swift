internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Counts the values of attributes that a plan removes. The plan needs no permission for that, but the report says it.
struct RemovedValues {
  /// The values of one attribute.
  struct Values {
    let ending: EndingAttribute
    let count: Int
    /// " in rows of Cat"; empty where all rows of the entity lose them.
    let place: String
    /// The conditions for the rows that have one.
    let conditions: [String]

    /// "20 non-null values of Note.content"
    var text: String { "\(count) non-null values of \(ending.path)\(place)" }
  }

  /// For each attribute that has any.
  let values: [Values]

  /// - Parameters:
  ///   - layout: The layout of the path's first version, in the store.
  init(_ db: Database, layout: any StoreLayout, path: MigrationPath) throws {
    let layouts = layout.entityLayouts.keyed(by: \.name)
    values = try path.endingAttributes.compactMap { ending in
      guard let layout = layouts[ending.entity],
        let column = layout.attributes.first(where: { $0.attribute.name == ending.attribute })?
          .column.name
      else { return nil }
      var (conditions, place) = ([layout.rowCondition].compactMap(\.self), "")
      if let losers = ending.losers, let column = layout.entityColumn {
        let numbers = losers.compactMap { layouts[$0]?.number }
        conditions = ["\(column) IN (\(numbers.map(String.init).joined(separator: ", ")))"]
        place = " in rows of \(losers.joined(separator: " and "))"
      }
      if let retyped = ending.retyped {
        let names = retyped.caseNames.map { AttributeValue.text($0).literal }
        conditions.append("\(column) NOT IN (\(names.joined(separator: ", ")))")
      }
      conditions.append("\(column) IS NOT NULL")
      let count = try Int.fetchOne(
        db,
        sql: "SELECT count(*) FROM \(layout.table) WHERE \(conditions.joined(separator: " AND "))")
      guard let count, count > 0 else { return nil }
      return Values(ending: ending, count: count, place: place, conditions: conditions)
    }
  }
}

extension RemovedValues.Values {
  /// What a run does with them, as far as the schemas tell.
  func sentence(along path: MigrationPath) -> String {
    let drops = "drops \(text)"
    if let retyped = ending.retyped {
      return "\(drops), which are not the name of a case: \(retyped.caseList)"
    }
    guard path.successor(of: ending) != nil else { return drops }
    return "\(drops); the new attribute of this name in version \(path.to) does not get them"
      + (path.isLightweight ? "" : " unless code of the plan writes them")
  }

  fileprivate func finding(along path: MigrationPath) -> Finding {
    let fix = ending.retyped.map { $0.correction(of: ending.entity) }
    return Finding(
      severity: fix == nil ? .note : .warning, message: sentence(along: path), fix: fix)
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
    return removed.values.map { $0.finding(along: path) }
  }
}

extension MigrationPath {
  /// The entity of the last version with a new attribute of the name of one that ended, as after a change of type in
  /// two stages; `nil` for none.
  func successor(of ending: EndingAttribute) -> String? {
    last.entities.first { candidate in
      origin(of: candidate.name) == ending.entity
        && candidate.attributes.contains { $0.name == ending.attribute }
    }?.name
  }
}
