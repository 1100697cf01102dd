import InstarModel
package import InstarSchema
import InstarStore
package import InstarWire

extension PlanDefinition {
  /// The way from a version to the last one: every stage, what changes in it, and the statements of each change of
  /// schema. No store is opened.
  ///
  /// - Parameter store: The statements are those of the change of such a store, found by changing an empty one. Where it is
  ///   left out, or cannot be made here, they are those of the change of a store that Instar made; the latter is noted.
  /// - Throws: `noMigrationPath`; `needsCustomStage` with the change a lightweight stage cannot make; with a store also what
  ///   a run would be ended by for what the store is made of.
  package func migration(
    from start: Schema.Version, of store: StoreDDL? = nil
  ) throws(InstarError) -> PlannedMigration {
    let path = try path(from: start)
    let last = path.last?.to.schema.version ?? start
    var migration = PlannedMigration(plan: name, from: start, to: last, stages: [])
    var empty: EmptyStore?
    if let store {
      do {
        empty = try EmptyStore(store)
      } catch {
        migration.notes.append(Self.note("the statements are", error))
      }
    }
    for stage in path {
      let difference = SchemaDifference(from: stage.from.schema, to: stage.to.schema)
      try StageCheck.check(stage, difference, plan: name)
      var statements: [String]?
      do throws(InstarError) {
        statements = try empty?.change(stage, difference)
      } catch {
        // The stage's code may change the store beforehand, so that this is no obstacle.
        guard case .custom(_, _, let willMigrate, _) = stage.stage, willMigrate != nil else {
          throw error
        }
        let place = "\(stage.from.schema.version) → \(stage.to.schema.version)"
        migration.notes.append(Self.note("from \(place) on, the statements are", error))
        empty = nil
      }
      if statements == nil { statements = try Self.generalStatements(stage, difference) }
      migration.stages.append(
        PlannedMigration.Stage(
          from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.manifest.kind,
          changes: difference.changes.map(\.sentence),
          statements: statements ?? []))
    }
    return migration
  }

  private static func note(_ what: String, _ error: InstarError) -> String {
    "\(what) those for a store that Instar made; the run's may differ, as this store's own tables "
      + "cannot be made and changed here: \(error.cause)"
  }

  /// Those for a store that Instar made.
  private static func generalStatements(
    _ stage: Stage, _ difference: SchemaDifference
  ) throws(InstarError) -> [String] {
    switch (stage.from.layout, stage.to.layout) {
    case (.coreData(let old), .coreData(let new)):
      CoreDataChange(from: old, to: new, difference).statements
        + ExternalChange.statements(difference, new)
    case (.plain(let old), .plain(let new)):
      try PlainChange(old: old, new: new, difference: difference).plannedStatements()
    case (.coreData, .plain), (.plain, .coreData): []
    }
  }
}
