internal import GRDB
internal import InstarChange
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Rows without a value that a stage requires, as far as the store shows them before a run.
  ///
  /// They refuse a lightweight stage, unless code of an earlier stage changes them first. So do rows whose values a
  /// custom stage has to write; the plan warns of these, and the verification finds the ones that are left.
  ///
  /// - Parameter includesWarnings: Whether to read the rows that code may still change.
  func rowsInNeed(
    _ openPolicy: OpenPolicy, includesWarnings: Bool
  ) throws(InstarError) -> [Finding] {
    let needs = path.needs.filter { includesWarnings || !$0.isCurable }
    guard !needs.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let layouts = layout.entityLayouts.keyed(by: \.name)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try needs.compactMap { need -> Finding? in
        guard
          let rows = try layouts[need.entity]?.rows(
            db, without: need.property, excludesSubentities: need.excludesSubentities)
        else { return nil }
        return need.finding(rows)
      }
    }
  }
}

extension MigrationPath {
  /// Rows of the first version that have no value which a stage requires, with names of the first version.
  fileprivate struct Need {
    var stage: StageManifest
    var reason: String
    var entity: String
    /// The property that has no value in these rows; `nil` where all rows of the entity count.
    var property: String?
    /// Whether rows of subentities do not count.
    var excludesSubentities: Bool
    /// Whether code runs before the value is missed.
    var isCurable: Bool
    /// The property that an ordinary table gets as a new NOT NULL column.
    var newColumn: String?
    /// What gives the rows a value.
    var cure: String

    func finding(_ rows: AffectedRows) -> Finding {
      if isCurable, let newColumn {
        return Finding(
          severity: .warning, code: .missingRequiredValues,
          message: rows.sentence(
            of: entity,
            have: "no value of '\(newColumn)', which is new and required in version \(stage.to), "
              + "and must have one before didMigrate runs")
            + "; the run fails unless the plan's code removes these rows first",
          fix: cure, rows: rows)
      }
      guard isCurable, let property else {
        return Finding(
          severity: .error, code: .needsCustomStage,
          message: StageCheck.sentence(
            rows, of: entity,
            "the stage from \(stage.from) to \(stage.to) is lightweight, but \(reason)"),
          fix: cure, rows: rows)
      }
      return Finding(
        severity: .warning, code: .missingRequiredValues,
        message: rows.sentence(
          of: entity, have: "no value of '\(property)', which version \(stage.to) requires")
          + MigrationPath.unlessChanged,
        fix: "let willMigrate of this stage, or the code of an earlier one, write the values",
        rows: rows)
    }
  }

  /// Where code runs first, only the rows that exist without a value now: a new property has none in any row, and
  /// whoever wrote the code knows that. But no code can write a new column of an ordinary table in time.
  fileprivate var needs: [Need] {
    stages.indices.flatMap { index in
      let isCurable = runsCode(before: index)
      let stage = schemaStages[index]
      return stage.changesThatNeedRows.compactMap { change -> Need? in
        let isEmptyColumn = stage.addsEmptyColumn(change)
        guard let rows = change.rowsInNeed, let reason = change.reasonForCustomStage,
          !isCurable || rows.property != nil || isEmptyColumn,
          let origin = origin(of: rows.entity, rows.property, before: index)
        else { return nil }
        return Need(
          stage: stages[index], reason: reason, entity: origin.entity, property: origin.property,
          excludesSubentities: rows.excludesSubentities, isCurable: isCurable,
          newColumn: isEmptyColumn ? change.property : nil,
          cure: StageCheck.cure(of: change, in: stage))
      }
    }
  }

  /// The end of a warning about rows that code of the plan may still change.
  static let unlessChanged = "; the run fails unless the plan's code changes them"

  /// Whether code of the plan can change rows before a stage changes the schema.
  func runsCode(before index: Int) -> Bool { stages[...index].contains { $0.kind != .lightweight } }

  /// Returns the names that an entity and its property of the version after a stage have in the first version.
  ///
  /// - Returns: `nil` where the first version has no such entity or property.
  func origin(
    of entity: String, _ property: String?, before index: Int
  ) -> (entity: String, property: String?)? {
    var (entity, property) = (entity, property)
    for difference in differences.prefix(index + 1).reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == entity }),
        let source = mapping.old
      else { return nil }
      if let name = property {
        guard let before = mapping.sourceName(of: name) else { return nil }
        property = before
      }
      entity = source.name
    }
    return (entity, property)
  }
}
