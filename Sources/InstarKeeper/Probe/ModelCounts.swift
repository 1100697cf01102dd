internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Rows with fewer or more models in a to-many relationship than a new limit of the last version allows.
  func modelCounts(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let limited = path.limitedRelationships.filter { $0.origin != nil && !$0.isUnchanged }
    guard !limited.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try limited.compactMap { limited in
        guard let origin = limited.origin,
          let rows = try limited.limit.violations(db, of: origin, in: layout)
        else { return nil }
        return finding(rows, limited)
      }
    }
  }

  private func finding(
    _ rows: AffectedRows, _ limited: MigrationPath.LimitedRelationship
  ) -> Finding {
    let problem = limited.limit.problem(of: limited.relationship, in: path.to)
    let isCurable = !path.isLightweight
    return Finding(
      severity: isCurable ? .warning : .error, code: .modelCount,
      message: rows.sentence(of: limited.entity, have: problem)
        + (isCurable ? MigrationPath.unlessChanged : ""),
      fix: isCurable
        ? "let the plan's code add or remove links of '\(limited.relationship)' in these rows"
        : "write a custom stage whose willMigrate adds or removes links of '\(limited.relationship)', or "
          + "change the limit",
      rows: rows)
  }
}
