internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Rows because of which a lightweight stage needs code, as far as the store shows them before a run: those that no
  /// custom stage changes first. The worker counts again before each stage.
  func rowsInNeed(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let needs = path.knownNeeds
    guard !needs.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let layouts = layout.entityLayouts.keyed(by: \.name)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try needs.compactMap { need -> Finding? in
        guard let sql = layouts[need.entity]?.rowCountStatement(without: need.property),
          let count = try Int.fetchOne(db, sql: sql), count > 0
        else { return nil }
        return Finding(
          severity: .error, code: .needsCustomStage,
          message:
            "the stage from \(need.stage.from) to \(need.stage.to) is lightweight, but \(need.reason): "
            + "\(count) rows of \(need.entity)",
          fix: "write it as a custom stage, or give the property a default value")
      }
    }
  }
}

extension MigrationPath {
  /// Rows of the first version that need code in a lightweight stage, with names of the first version.
  fileprivate struct Need {
    var stage: StageManifest
    var reason: String
    var entity: String
    /// The property that has no value in these rows; `nil` where all rows of the entity count.
    var property: String?
  }

  /// Those of the stages before the first one with code.
  fileprivate var knownNeeds: [Need] {
    var needs: [Need] = []
    for (index, stage) in stages.enumerated() {
      guard stage.kind == .lightweight else { break }
      for change in differences[index].changes {
        guard let rows = change.rowsInNeed, let reason = change.needsCustomStage,
          let origin = origin(of: rows, before: index)
        else { continue }
        needs.append(
          Need(stage: stage, reason: reason, entity: origin.entity, property: origin.property))
      }
    }
    return needs
  }

  /// `nil` where the first version has no such entity or property.
  private func origin(
    of rows: SchemaDifference.RowsInNeed, before index: Int
  ) -> (entity: String, property: String?)? {
    var entity = rows.entity
    var property = rows.property
    for difference in differences[...index].reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == entity }),
        let source = mapping.old
      else { return nil }
      if let name = property {
        let before =
          mapping.attributes.first { $0.new.name == name }?.old?.name
          ?? mapping.relationships.first { $0.new.name == name }?.old?.name
        guard let before else { return nil }
        property = before
      }
      entity = source.name
    }
    return (entity, property)
  }
}
