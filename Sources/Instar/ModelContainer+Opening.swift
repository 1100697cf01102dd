internal import InstarEngine

extension ModelContainer {
  /// Opens the stores of configurations: migrates them by a plan where they are behind, and makes those that are
  /// missing.
  ///
  /// A store that is at an earlier version of the plan is migrated before this returns, in this process, by the same
  /// steps as the daemon's: a verified backup, the stages on a clone, verification of the clone, and one transaction
  /// that makes the store what the clone is. Other containers of the store may be alive; their models are those of the
  /// old version, so release them first. A store that declares no version is adopted as the version that its structure
  /// matches. Backups and the ledger are in `INSTAR_STATE_DIR`, else in `instar` below `XDG_STATE_HOME` or
  /// `~/.local/state`.
  ///
  /// Each of several configurations is its own store, with the models of its schema and the destinations of their
  /// relationships; one without a schema has the models that no other one has. So every model of the container is in
  /// exactly one store. No relationship can cross stores.
  ///
  /// ```swift
  /// let container = try ModelContainer(
  ///   for: Recipe.self, Comment.self,
  ///   configurations: ModelConfiguration(for: Recipe.self),
  ///   ModelConfiguration(for: Comment.self, isStoredInMemoryOnly: true))
  /// ```
  ///
  /// A plan names the models of all stores. Models of its earlier versions belong to the store of the models that
  /// they became; those that did not last, to the store that has their table. All stores that are behind are migrated
  /// together: the closures of a stage run once, with a context of the models of all stores that are at the stage's
  /// first version, each of which has its own backup. Where a closure uses a model of a store that is further already,
  /// that is an error; `context.container.schema.entity(for:)` tells whether the context has a model. A store that is
  /// missing takes part, as an empty one, in stages with closures. An error in the stages leaves all stores as they
  /// were. The clones are then verified and written back one after the other; where one of them fails, the error's
  /// `state` says which store is at what, and the next opening goes on from there.
  ///
  /// - Parameters:
  ///   - schema: What the stores are read by. With a plan it has the models of the plan's last version.
  ///   - migrationPlan: The versions the stores may be at, and the ways between them.
  ///   - configurations: One for each store; none stands for the default place.
  /// - Throws: `SwiftDataError`, with the cause: `backwardMigration` where a store is newer than the plan,
  ///   `unknownSchema` where it is at no version of it, `duplicateConfiguration` and
  ///   `configurationSchemaNotFoundInContainerSchema` where the models cannot be divided among the configurations,
  ///   `loadIssueModelContainer` in these and all other cases but the first. The stores are then as they were, but for
  ///   what is said of several above.
  public convenience init(
    for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
    configurations: [ModelConfiguration]
  ) throws {
    let opening = try ContainerOpening(
      schema, plan: migrationPlan, configurations: configurations)
    try opening.migrate()
    try self.init(opening: opening.parts, schema: opening.schema, plan: migrationPlan)
  }

  /// The same, with the configurations written without brackets.
  ///
  /// - Throws: as `init(for:migrationPlan:configurations:)`.
  public convenience init(
    for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
    configurations: ModelConfiguration...
  ) throws {
    try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
  }

  /// The same, with a schema of these models and the destinations of their relationships. Its version is the plan's
  /// last one, or 1.0.0 without a plan.
  ///
  /// - Throws: as `init(for:migrationPlan:configurations:)`.
  public convenience init(
    for types: any PersistentModel.Type...,
    migrationPlan: (any SchemaMigrationPlan.Type)? = nil, configurations: ModelConfiguration...
  ) throws {
    try self.init(for: Schema(types), migrationPlan: migrationPlan, configurations: configurations)
  }
}
