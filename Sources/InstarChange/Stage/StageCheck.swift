package import InstarSchema
package import InstarStore
import InstarWire

/// Refuses stages that the difference of their versions does not allow, before any of them runs.
package enum StageCheck {
  /// Refuses a lightweight stage between versions that need code whatever the rows are.
  package static func check(
    _ stage: SchemaStage, plan: String
  ) throws(InstarError) {
    guard stage.kind == .lightweight, !stage.reasonsForCode.isEmpty else { return }
    throw needsCode(stage, plan, stage.reasonsForCode)
  }

  /// Refuses a lightweight stage for the rows that its change of schema would meet.
  package static func checkNeeds(
    _ stage: SchemaStage, plan: String, _ session: SQLSession
  ) throws(InstarError) {
    guard stage.kind == .lightweight else { return }
    let layouts = stage.from.layout.entityLayouts
    var reasons: [String] = []
    var changes: [SchemaDifference.Change] = []
    var first: AffectedRows?
    for change in stage.changesThatNeedRows {
      guard let need = change.rowsInNeed, let reason = change.reasonForCustomStage,
        let mapping = stage.difference.entities.first(where: { $0.new.name == need.entity }),
        let layout = layouts.first(where: { $0.name == mapping.old?.name }),
        let rows = try session.affectedRows({
          try layout.rows(
            $0, without: need.property.flatMap(mapping.sourceName),
            excludesSubentities: need.excludesSubentities)
        })
      else { continue }
      reasons.append(Self.sentence(rows, of: layout.name, reason))
      changes.append(change)
      first = first ?? rows
    }
    if !reasons.isEmpty { throw needsCode(stage, plan, reasons, changes, first) }
  }

  /// "Note.mood is required, and existing rows have no value for it: 3 rows of Note (rows 1, 2, 3)".
  package static func sentence(
    _ rows: AffectedRows, of entity: String, _ reason: String
  ) -> String {
    "\(reason): \(rows.count.counted("row")) of \(entity)"
      + (rows.keys.isEmpty ? "" : " (\(rows.text))")
  }

  /// Returns what the rows of a store must be like for a stage to run, in sentences.
  package static func rowRequirements(of stage: SchemaStage) -> [String] {
    let (from, to) = (stage.from.schema.version, stage.to.schema.version)
    return stage.changesThatNeedRows.compactMap { change in
      guard let need = change.rowsInNeed, let reason = change.reasonForCustomStage,
        stage.kind == .lightweight || stage.addsEmptyColumn(change)
      else { return nil }
      let rows = need.property.map { "no row of \(need.entity) lacks '\($0)'" }
      let own = need.excludesSubentities ? " of its own" : ""
      return "the stage from \(from) to \(to) runs only if "
        + "\(rows ?? "\(need.entity) has no rows\(own)"): \(reason)"
    }
  }

  /// What makes a stage possible that rows without a value refuse.
  private static let cureOfRows =
    "give the property an initial value, make it optional, or write the stage as a custom one"

  /// Returns what makes a stage possible that the rows of a change refuse.
  package static func cure(
    of change: SchemaDifference.Change, in stage: SchemaStage
  ) -> String {
    stage.addsEmptyColumn(change) ? stage.difference.cureOfEmptyColumn(change) : cureOfRows
  }

  /// - Parameter changes: Those that only rows refuse; empty for changes that need code whatever the rows are.
  private static func needsCode(
    _ stage: SchemaStage, _ plan: String, _ reasons: [String],
    _ changes: [SchemaDifference.Change] = [], _ rows: AffectedRows? = nil
  ) -> InstarError {
    let (from, to) = (stage.from.schema.version, stage.to.schema.version)
    return InstarError(
      .needsCustomStage, "cannot use plan \(plan)",
      cause:
        "the stage from \(from) to \(to) is lightweight, but \(reasons.joined(separator: "; "))",
      next: cure(of: changes, in: stage), rows: rows)
  }

  private static func cure(
    of changes: [SchemaDifference.Change], in stage: SchemaStage
  ) -> String {
    let cures = changes.filter(stage.addsEmptyColumn).map(stage.difference.cureOfEmptyColumn)
    // A custom stage would fail too.
    if !changes.isEmpty, cures.count == changes.count { return cures.joined(separator: "; ") }
    let advice = changes.isEmpty ? "write it as a custom stage" : cureOfRows
    return (cures + ["\(advice):\n\(stage.customStageSource)"]).joined(separator: "; ")
  }
}
