import InstarChange
import InstarModel
package import InstarSchema
import InstarStore
package import InstarWire

extension PlanDefinition {
  /// The migration from a version to the last one: every stage, what changes in it, and the statements of each change
  /// of schema. No store is opened: the changes are made on an empty one.
  ///
  /// - Parameter store: The tables of the store to plan for. Where it is `nil`, or SQLite cannot create them here, the
  ///   statements are those for a store that Instar created; the latter is noted.
  /// - Throws: `noMigrationPath`; `needsCustomStage` with the change that a lightweight stage cannot make; the error
  ///   that would end the run where the store's structure is the cause.
  package func migration(
    from start: Schema.Version, of store: StoreDDL? = nil
  ) throws(InstarError) -> PlannedMigration {
    let path = try path(from: start)
    let last = path.last?.to.schema.version ?? start
    var migration = PlannedMigration(plan: name, from: start, to: last, stages: [])
    migration.notes = separateArrayNotes(since: start)
    var empty: EmptyStore?
    var isGeneral = store == nil
    if let store {
      do {
        empty = try EmptyStore(store)
      } catch {
        migration.notes.append(Self.note("the statements are", error))
        isGeneral = true
      }
    }
    for stage in path {
      let change = stage.change
      try StageCheck.check(stage.schemas, plan: name)
      for part in stage.schemas.parts where part.isImplicit {
        migration.notes.append(Self.note(ofStageFrom: part.from, to: part.to))
      }
      migration.notes += [stage.schemas.fusionNote].compactMap(\.self)
      migration.notes += StageCheck.rowRequirements(of: stage.schemas)
      var planned: [PlannedChange]?
      do throws(InstarError) {
        planned = try empty?.make(change)
      } catch {
        // `willMigrate` may change the store first, so that this error does not occur in a run.
        guard !isGeneral, case .custom(.some, _) = stage.stage.work
        else { throw error }
        let step = "\(stage.from.schema.version) → \(stage.to.schema.version)"
        migration.notes.append(Self.note("from \(step) on, the statements are", error))
        isGeneral = true
      }
      if planned == nil {
        let general = try EmptyStore(of: stage.from.layout)
        do throws(InstarError) {
          planned = try general.make(change)
          empty = general
        } catch {
          // Only the store itself has triggers of derived attributes that Instar cannot create.
          guard error.code == .unsupported else { throw error }
          migration.notes.append(
            "the statements from \(stage.from.schema.version) to \(stage.to.schema.version) depend on the store: "
              + error.cause)
        }
      }
      migration.stages.append(
        PlannedMigration.Stage(
          from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.manifest.kind,
          label: stage.manifest.label,
          planned: planned ?? []))
    }
    return migration
  }

  private func separateArrayNotes(since start: Schema.Version) -> [String] {
    versions.map(\.schema).filter { $0.version >= start }.separateArrayNotes
      .map { note, correction in note + (correction.map { "; \($0)" } ?? "") }
  }

  private static func note(_ what: String, _ error: InstarError) -> String {
    "\(what) those for a store that Instar created; a run may execute others, because this store's own tables "
      + "cannot be created and changed here: \(error.cause)"
  }
}
