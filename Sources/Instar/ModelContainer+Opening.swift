internal import InstarEngine

extension ModelContainer {
  /// Opens the store of a configuration: migrates it by a plan where it is behind, and makes it where there is none.
  ///
  /// A store that is at an earlier version of the plan is migrated before this returns, in this process, by the same
  /// steps as the daemon's: a verified backup, the stages on a clone, verification of the clone, and one transaction that
  /// makes the store what the clone is. Other containers of the store may be alive; their models are those of the old
  /// version, so let them go first. A store that declares no version is taken for the version that it is built like.
  /// Backups and the ledger are in `INSTAR_STATE_DIR`, else in `instar` below `XDG_STATE_HOME` or `~/.local/state`.
  ///
  /// - Parameters:
  ///   - schema: What the store is read by. With a plan it has the models of the plan's last version.
  ///   - migrationPlan: The versions the store may be at, and the ways between them.
  ///   - configurations: One; none stands for the default place.
  /// - Throws: `SwiftDataError`, with the cause: `backwardMigration` where the store is newer than the plan,
  ///   `unknownSchema` where it is at no version of it, `loadIssueModelContainer` in these and all other cases. The store is
  ///   then as it was.
  public convenience init(
    for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
    configurations: [ModelConfiguration]
  ) throws {
    let configuration = try ContainerOpening.configuration(of: configurations, schema: schema)
    let opening = ContainerOpening(configuration: configuration, schema: schema)
    try self.init(
      opening: configuration, schema: opening.migrate(by: migrationPlan))
  }

  /// The same, with the configuration written without brackets.
  ///
  /// - Throws: as `init(for:migrationPlan:configurations:)`.
  public convenience init(
    for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
    configurations: ModelConfiguration...
  ) throws {
    try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
  }

  /// The same, with a schema of these models and of those that their relationships lead to. Without a plan its version is
  /// 1.0.0; with one it is the plan's last version.
  ///
  /// - Throws: as `init(for:migrationPlan:configurations:)`.
  public convenience init(
    for types: any PersistentModel.Type...,
    migrationPlan: (any SchemaMigrationPlan.Type)? = nil, configurations: ModelConfiguration...
  ) throws {
    try self.init(for: Schema(types), migrationPlan: migrationPlan, configurations: configurations)
  }
}
