import InstarChange
import InstarModel
import InstarSchema

// Stages that a plan does not have.

extension PlanDefinition {
  /// Returns lightweight stages from the versions at which none starts to the next ones, where that is possible.
  static func implicitStages(
    between versions: [PlanVersion], besides starts: Set<Schema.Version>,
    _ types: [Schema.Version: any VersionedSchema.Type]
  ) -> [MigrationStage] {
    zip(versions, versions.dropFirst()).compactMap { from, to in
      guard !starts.contains(from.schema.version),
        to.reasonsForCode(in: SchemaDifference(from: from.schema, to: to.schema)).isEmpty,
        let first = types[from.schema.version], let second = types[to.schema.version]
      else { return nil }
      return .lightweight(fromVersion: first, toVersion: second)
    }
  }

  static func note(ofStageFrom from: Schema.Version, to: Schema.Version) -> String {
    "the plan has no stage from \(from) to \(to); Instar adds a lightweight stage"
  }

  /// Returns the error of a version at which no stage starts, and which a lightweight stage cannot change to the next.
  func missingStage(at version: PlanVersion, _ what: String) -> InstarError {
    let from = version.schema.version
    guard let next = versions.first(where: { $0.schema.version > from }) else {
      return InstarError(
        .noMigrationPath, what, cause: "no stage starts at \(from)",
        next: "add a stage that starts at \(from)")
    }
    let reasons = next.reasonsForCode(
      in: SchemaDifference(from: version.schema, to: next.schema))
    return InstarError(
      .noMigrationPath, what,
      cause:
        "no stage starts at \(from), and a lightweight stage to \(next.schema.version) is not possible: "
        + reasons.joined(separator: "; "),
      next: "add a stage:\n" + SchemaStage.customStageSource(version.name, next.name))
  }

  /// Returns what to write where two schemas have the same version.
  static func correction(
    of versioned: any VersionedSchema.Type, _ other: any VersionedSchema.Type,
    in plan: any SchemaMigrationPlan.Type
  ) -> String {
    guard versioned != other else { return "list \(versioned) once in `schemas`" }
    let last = plan.schemas.map { $0.versionIdentifier }.max() ?? versioned.versionIdentifier
    return
      "give the one that no store has yet another version, such as: "
      + "static let versionIdentifier = Schema.Version(\(last.major + 1), 0, 0)"
  }
}
