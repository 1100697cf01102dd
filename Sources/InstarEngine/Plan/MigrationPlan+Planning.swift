package import InstarSchema
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
      stages.append(
        MigrationPlan.Stage(
          from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.manifest.kind,
          changes: difference.changes.map(\.sentence),
          statements: LayoutChange(from: stage.from.layout, to: stage.to.layout, difference)
            .statements))
    }
    let last = path.last?.to.schema.version ?? start
    return MigrationPlan(plan: name, from: start, to: last, stages: stages)
  }
}
