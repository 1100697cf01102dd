package import InstarSchema
import InstarStore
package import InstarWire

extension PlanDefinition {
  /// The way from a version to the last one: every stage, what changes in it, and the statements of each change of
  /// schema. No store is opened.
  ///
  /// - Parameter store: The statements are those of the change of such a store, found by changing an empty one; where it is
  ///   left out, those of the change of a store that Instar made.
  /// - Throws: `noMigrationPath`; `needsCustomStage` with the change a lightweight stage cannot make; with a store also what
  ///   a run would be ended by for what the store is made of.
  package func migration(
    from start: Schema.Version, of store: StoreSketch? = nil
  ) throws(InstarError) -> MigrationPlan {
    let path = try path(from: start)
    // A table whose own conditions need the app's functions cannot be made here; altering it does not need them.
    let empty = store.flatMap { try? EmptyStore($0) }
    var stages: [MigrationPlan.Stage] = []
    for stage in path {
      let difference = SchemaDifference(from: stage.from.schema, to: stage.to.schema)
      try StageCheck.check(stage, difference, plan: name)
      let statements: [String]
      switch (stage.from.layout, stage.to.layout) {
      case (.coreData(let old), .coreData(let new)):
        statements =
          try empty?.change(stage, difference)
          ?? LayoutChange(from: old, to: new, difference).statements
          + ExternalChange.statements(difference, new)
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
