package import InstarSchema
import InstarModel
package import InstarStore

/// What speaks against a stage before any of it runs.
package enum StageCheck {
  /// Refuses a lightweight stage between versions that need code.
  package static func check(
    _ stage: PlanDefinition.Stage, _ difference: SchemaDifference, plan: String
  ) throws(InstarError) {
    guard case .lightweight = stage.stage else { return }
    let reasons = difference.changes.compactMap(\.needsCustomStage)
    guard !reasons.isEmpty else { return }
    let (from, to) = (stage.from.schema.version, stage.to.schema.version)
    throw InstarError(
      .needsCustomStage, "cannot use plan \(plan)",
      cause:
        "its stage from \(from) to \(to) is lightweight, but \(reasons.joined(separator: "; "))",
      next: """
        write it as a custom stage:
        .custom(fromVersion: \(stage.stage.fromVersion).self, toVersion: \(stage.stage.toVersion).self,
          willMigrate: { context in … }, didMigrate: { context in … })
        """)
  }

  /// Looks for rows that would break a rule that is new in the stage: values that repeat under a new uniqueness.
  ///
  /// Runs after `willMigrate`, which is where a plan removes them, and before the change of schema.
  package static func checkRows(
    _ stage: PlanDefinition.Stage, from oldLayout: CoreDataLayout, _ difference: SchemaDifference,
    _ session: SQLSession
  ) throws(InstarError) {
    for mapping in difference.entities {
      guard let old = mapping.old, let layout = oldLayout.entity(named: old.name) else {
        continue
      }
      for group in mapping.new.uniquenessConstraints {
        let columns = group.compactMap { name -> String? in
          if let attribute = mapping.attributes.first(where: { $0.new.name == name })?.old {
            return layout.attributes.first { $0.attribute.name == attribute.name }?.column
          }
          return nil
        }
        guard columns.count == group.count else {
          try checkNewUnique(group, mapping, layout.table, stage, session)
          continue
        }
        let isNew = !oldLayout.indexes.contains {
          $0.isUnique && $0.table == layout.table && $0.columns == columns
        }
        guard isNew else { continue }
        let list = columns.joined(separator: ", ")
        let present = columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
        let repeated = try session.integer(
          "SELECT COUNT(*) FROM (SELECT 1 FROM \(layout.table) WHERE \(present) "
            + "GROUP BY \(list) HAVING COUNT(*) > 1)")
        guard let repeated, repeated > 0 else { continue }
        let path = "\(mapping.new.name).\(group.joined(separator: ", "))"
        throw InstarError(
          .duplicateUniqueValues,
          "cannot migrate from \(stage.from.schema.version) to \(stage.to.schema.version)",
          cause: "\(path) becomes unique, but \(repeated) of its values occur more than once",
          next: "remove the duplicates in willMigrate")
      }
    }
  }

  /// A unique attribute that is new and gets a default would have the same value in every row.
  private static func checkNewUnique(
    _ group: [String], _ mapping: SchemaDifference.EntityMapping, _ table: String,
    _ stage: PlanDefinition.Stage, _ session: SQLSession
  ) throws(InstarError) {
    guard case .lightweight = stage.stage, group.count == 1,
      let attribute = mapping.attributes.first(where: { $0.new.name == group[0] }),
      attribute.old == nil, !attribute.new.isOptional,
      let rows = try session.integer("SELECT COUNT(*) FROM \(table)"), rows > 1
    else { return }
    let path = "\(mapping.new.name).\(group[0])"
    throw InstarError(
      .duplicateUniqueValues,
      "cannot migrate from \(stage.from.schema.version) to \(stage.to.schema.version)",
      cause: "\(path) is new and unique, and \(rows) rows would get the same default",
      next: "make it a custom stage that gives each row its own value in didMigrate")
  }
}
