package import InstarSchema
import InstarStore
package import InstarWire

extension PlanDefinition {
  /// The way from a version to the last one: every stage, what changes in it, and the statements of each change of
  /// schema. No store is opened.
  ///
  /// - Throws: `noMigrationPath`; `needsCustomStage` with the change a lightweight stage cannot make.
  package func migration(from start: Schema.Version) throws(InstarError) -> MigrationPlan {
    let path = try path(from: start)
    var stages: [MigrationPlan.Stage] = []
    for stage in path {
      let difference = SchemaDifference(from: stage.from.schema, to: stage.to.schema)
      try StageCheck.check(stage, difference, plan: name)
      let statements: [String]
      switch (stage.from.layout, stage.to.layout) {
      case (.coreData(let old), .coreData(let new)):
        statements = LayoutChange(from: old, to: new, difference).statements
      case (.plain(let old), .plain(let new)):
        statements = try PlainChange(old: old, new: new, difference: difference).plannedStatements()
      case (.coreData, .plain), (.plain, .coreData): statements = []
      }
      stages.append(
        MigrationPlan.Stage(
          from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.manifest.kind,
          changes: difference.changes.map(\.sentence),
          statements: statements))
    }
    let last = path.last?.to.schema.version ?? start
    return MigrationPlan(plan: name, from: start, to: last, stages: stages)
  }
}
