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
    var preview = EmptyStorePreview(of: store, &migration.notes)
    for stage in path {
      try StageCheck.check(stage.schemas, plan: name)
      for part in stage.schemas.parts where part.isImplicit {
        migration.notes.append(Self.note(ofStageFrom: part.from, to: part.to))
      }
      migration.notes += [stage.schemas.fusionNote].compactMap(\.self)
      migration.notes += StageCheck.rowRequirements(of: stage.schemas)
      let planned = try preview.make(stage, &migration.notes)
      migration.stages.append(
        PlannedMigration.Stage(
          from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.manifest.kind,
          label: stage.manifest.label, planned: planned))
    }
    return migration
  }

  private func separateArrayNotes(since start: Schema.Version) -> [String] {
    versions.map(\.schema).filter { $0.version >= start }.separateArrayNotes
      .map { note, correction in note + (correction.map { "; \($0)" } ?? "") }
  }
}

/// The empty store on which the stages of a plan are previewed, one after the other: one with the tables of the store
/// to plan for, until one of its changes fails, and then one that Instar created.
private struct EmptyStorePreview {
  /// `nil` before the first stage where the tables of the store to plan for cannot be created here, or are not known.
  private var empty: EmptyStore?
  /// Whether the statements are those for a store that Instar created.
  private var isGeneral: Bool

  init(of store: StoreDDL?, _ notes: inout [String]) {
    isGeneral = store == nil
    guard let store else { return }
    do {
      empty = try EmptyStore(store)
    } catch {
      notes.append(Self.note("the statements are", error))
      isGeneral = true
    }
  }

  /// Makes the change of a stage.
  ///
  /// - Returns: What it changes; empty where only the store itself can tell.
  mutating func make(
    _ stage: PlanDefinition.Stage, _ notes: inout [String]
  ) throws(InstarError) -> [PlannedChange] {
    do throws(InstarError) {
      if let planned = try empty?.make(stage.change) { return planned }
    } catch {
      // `willMigrate` may change the store first, so that this error does not occur in a run.
      guard !isGeneral, case .custom(.some, _) = stage.stage.work else { throw error }
      let step = "\(stage.from.schema.version) → \(stage.to.schema.version)"
      notes.append(Self.note("from \(step) on, the statements are", error))
      isGeneral = true
    }
    return try makeInNewStore(stage, &notes)
  }

  private mutating func makeInNewStore(
    _ stage: PlanDefinition.Stage, _ notes: inout [String]
  ) throws(InstarError) -> [PlannedChange] {
    let general = try EmptyStore(of: stage.from.layout)
    do throws(InstarError) {
      let planned = try general.make(stage.change)
      empty = general
      return planned
    } catch {
      // Only the store itself has triggers of derived attributes that Instar cannot create.
      guard error.code == .unsupported else { throw error }
      notes.append(
        "the statements from \(stage.from.schema.version) to \(stage.to.schema.version) depend on the store: "
          + error.cause)
      return []
    }
  }

  private static func note(_ what: String, _ error: InstarError) -> String {
    "\(what) those for a store that Instar created; a run may execute others, because this store's own tables "
      + "cannot be created and changed here: \(error.cause)"
  }
}
