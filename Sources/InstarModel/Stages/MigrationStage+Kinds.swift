/// Stages that SwiftData does not have.
extension MigrationStage {
  /// A stage with SQL statements before and after its change of schema.
  ///
  /// ```swift
  /// MigrationStage.sql(
  ///   fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "TrimTitles",
  ///   before: ["DELETE FROM note WHERE title IS NULL"],
  ///   after: ["UPDATE note SET title = trim(title) WHERE pages > \(10)"])
  /// ```
  ///
  /// `instarctl plan` shows the statements, and the run executes them in this order. They change rows of the app's
  /// tables: a statement that changes the schema, uses PRAGMA or ATTACH, controls transactions, or writes the tables
  /// of SQLite or Core Data, or the columns Z_PK, Z_ENT and Z_OPT, is refused. The app's triggers fire. A value that a
  /// statement writes after the change of schema counts as written by the plan.
  ///
  /// If a statement fails, the run ends, and the store is unchanged. The error names the statement. So it does if a
  /// statement leaves a value that its property's type does not read; that error names the property and the rows.
  public static func sql(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    label: String? = nil, before: [SQL] = [], after: [SQL] = []
  ) -> MigrationStage {
    MigrationStage(
      ExtendedStage(
        fromVersion: fromVersion, toVersion: toVersion, label: label,
        work: .sql(before: before, after: after)))
  }

  /// A stage that computes properties of the new version from those of the version before, row by row.
  ///
  /// ```swift
  /// MigrationStage.transform(
  ///   fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "CountWords"
  /// ) {
  ///   Transform(NotesV1.Note.self, NotesV2.Note.self)
  ///     .set(\.words, from: \.body) { body in body.split(separator: " ").count }
  /// }
  /// ```
  ///
  /// See `Transform`. `instarctl plan` shows the statements that call the functions. If a function throws, the run
  /// ends, and the store is unchanged.
  public static func transform(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    label: String? = nil, @TransformBuilder _ transforms: () -> [ModelTransform]
  ) -> MigrationStage {
    MigrationStage(
      ExtendedStage(
        fromVersion: fromVersion, toVersion: toVersion, label: label,
        work: .transform(transforms())))
  }

  /// A stage whose code has the models of both versions at once.
  ///
  /// ```swift
  /// MigrationStage.bridge(fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "SplitNames") { old, new in
  ///   try new.enumerate(FetchDescriptor<NotesV2.Person>()) { person in
  ///     guard let before = try old.counterpart(of: person, as: NotesV1.Person.self) else { return }
  ///     person.givenName = String(before.name.prefix { $0 != " " })
  ///   }
  /// }
  /// ```
  ///
  /// The code runs after the change of schema. `old` reads a copy of the store from before this stage, and refuses to
  /// save. The copy is removed when the stage ends, and needs as much space as the store. `new` writes the store that
  /// is migrated, and Instar saves its pending changes when the code returns. If the code throws, the run ends, and
  /// the store is unchanged.
  public static func bridge(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    label: String? = nil,
    _ migrate: @escaping @Sendable (_ old: ModelContext, _ new: ModelContext) throws -> Void
  ) -> MigrationStage {
    MigrationStage(
      ExtendedStage(
        fromVersion: fromVersion, toVersion: toVersion, label: label, work: .bridge(migrate)))
  }
}
