internal import InstarChange
internal import InstarEngine
package import InstarModel
package import InstarSchema
internal import InstarStore
internal import InstarSupervisor
package import InstarWire

/// Migrates store files by a plan, or by its first versions only, as an app that opens a container does: with backup,
/// clone, verification and one transaction. For tests of plans.
package struct PlanMigration {
  private let plan: PlanDefinition

  /// - Parameter last: The version to migrate to; `nil` for the plan's last one.
  /// - Throws: `invalidPlan` and other errors of the plan; `unknownVersion` for a version that the plan does not have.
  package init(
    _ plan: any SchemaMigrationPlan.Type, to last: Schema.Version? = nil
  ) throws(InstarError) {
    let whole = try PlanDefinition(plan)
    guard let last else {
      self.plan = whole
      return
    }
    guard whole.version(last) != nil else {
      let known = whole.versions.map(\.schema.version.description).joined(separator: ", ")
      throw InstarError(
        .unknownVersion, "cannot migrate to \(last)",
        cause: "plan \(whole.name) has the versions \(known)",
        next: "name one of these versions")
    }
    self.plan = PlanDefinition(
      whole, versions: whole.versions.filter { $0.schema.version <= last })
  }

  /// What the plan says about itself.
  package var manifest: PlanManifest { plan.manifest }

  /// The stages from a version to the last one, with their statements.
  ///
  /// - Throws: `noMigrationPath`, or `needsCustomStage` with the change that a lightweight stage cannot make.
  package func statements(
    from version: Schema.Version
  ) throws(InstarError) -> PlannedMigration {
    try plan.migration(from: version)
  }

  /// Migrates a store.
  ///
  /// - Parameters:
  ///   - store: The path of its file.
  ///   - stateFolder: Gets the backup, the phase journal and the ledger.
  ///   - beforeWrite: Called before each row that code of the plan inserts, changes or deletes. An error that it throws
  ///     fails that write.
  /// - Returns: The report of the run; `nil` if the store was at the last version.
  /// - Throws: Why the run failed. The store is unchanged then, unless the error's `state` says otherwise.
  package func run(
    store: String, stateFolder: String, beforeWrite: (@Sendable () throws -> Void)?
  ) throws(InstarError) -> RunReport? {
    guard let real = RealPath.of(store) else {
      throw InstarError(
        .missingStore, "cannot migrate '\(store)'", cause: String(cString: strerror(errno)))
    }
    var report: RunReport?
    let definition = beforeWrite.map { plan.watchingWrites($0) } ?? plan
    var migration = FileMigration(
      path: real, plan: definition, isReadOnly: false, stateFolder: stateFolder)
    migration.onReport = { report = $0 }
    _ = try migration.run { clone throws(InstarError) in
      try StageExecutor.run([clone], plan: definition.name)
    }
    return report
  }

  /// The tables, columns and indexes of a store.
  package static func structure(of store: String) throws(InstarError) -> StoreStructure {
    try StoreProbe.read(store).identity.structure
  }

  /// The version that a store declares; `nil` if it declares none.
  package func version(of store: String) throws(InstarError) -> Schema.Version? {
    let manifest = plan.manifest
    let probe = try StoreProbe.read(store, versionSources: [manifest.versionSource])
    return SchemaMatch(
      of: probe.identity.seen(
        from: manifest.versionSource, importing: manifest.importedVersions),
      among: manifest.versions
    ).version
  }
}
