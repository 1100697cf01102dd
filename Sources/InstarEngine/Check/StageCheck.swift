import InstarModel
package import InstarSchema
import InstarStore

/// Refuses stages that the difference of their versions does not allow, before any of them runs.
package enum StageCheck {
  /// Refuses a lightweight stage between versions that need code.
  package static func check(
    _ stage: PlanDefinition.Stage, _ difference: SchemaDifference, plan: String
  ) throws(InstarError) {
    guard case .lightweight = stage.stage else { return }
    var reasons = difference.changes.compactMap(\.needsCustomStage)
    if stage.to.layout.format == .plain { reasons += difference.linksToMoveBetweenTables }
    guard !reasons.isEmpty else { return }
    let (from, to) = (stage.from.schema.version, stage.to.schema.version)
    throw InstarError(
      .needsCustomStage, "cannot use plan \(plan)",
      cause:
        "the stage from \(from) to \(to) is lightweight, but \(reasons.joined(separator: "; "))",
      next: """
        write it as a custom stage:
        .custom(fromVersion: \(stage.stage.fromVersion).self, toVersion: \(stage.stage.toVersion).self,
          willMigrate: { context in … }, didMigrate: { context in … })
        """)
  }
}
