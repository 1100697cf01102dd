public import InstarSchema

/// The versions an app's store had, and the stages between them.
public protocol SchemaMigrationPlan: SendableMetatype {
  /// All versions, oldest first.
  static var schemas: [any VersionedSchema.Type] { get }
  /// In any order; each leads from one version to a later one.
  static var stages: [MigrationStage] { get }
  /// In which order a table of a store that Apple's frameworks made has its columns after a change; `.asNew` where the
  /// plan does not say.
  static var columnOrder: ColumnOrder { get }
  /// Where plain stores say which version they are at; `PRAGMA user_version` without one.
  static var versionSource: VersionSource { get }
  /// Which version it is that another tool's history table names, for stores that declare none themselves.
  ///
  /// ```swift
  /// static var importedVersions: [ToolVersion: Schema.Version] {
  ///   [.alembic("ae1027a6acf"): Schema.Version(1, 0, 0)]
  /// }
  /// ```
  ///
  /// The tool's table is read and never written: after a run the version stands at `versionSource`.
  static var importedVersions: [ToolVersion: Schema.Version] { get }
}

extension SchemaMigrationPlan {
  /// That of a new store.
  public static var columnOrder: ColumnOrder { .asNew }
  /// `PRAGMA user_version`.
  public static var versionSource: VersionSource { .userVersion }
  /// None.
  public static var importedVersions: [ToolVersion: Schema.Version] { [:] }
}

/// What a change of schema may do to the order of a table's columns. Stores that Instar made are altered in any case.
@frozen
public enum ColumnOrder: Sendable, Hashable {
  /// As Core Data's own migration leaves it: a table with other columns is made anew, in the order of a new store. Takes
  /// time in proportion to its rows.
  case asNew
  /// Columns that are added stand last: adding and renaming take no time, however many rows there are. Apps that read by
  /// name, as Core Data does, see no difference.
  case asAdded
}

/// One step between two versions.
public enum MigrationStage: Sendable {
  /// Instar derives what to do from the two schemas: properties and entities that were added, removed or renamed
  /// (`originalName:`).
  case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)

  /// The same change of schema with code around it.
  ///
  /// `willMigrate` runs before it and sees only models of the old version, `didMigrate` runs after it and sees only
  /// models of the new one. What a closure leaves unsaved is saved when it returns; when it throws, the run ends and the
  /// store stays as it was.
  @preconcurrency
  case custom(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    willMigrate: (@Sendable (ModelContext) throws -> Void)?,
    didMigrate: (@Sendable (ModelContext) throws -> Void)?)
}

extension MigrationStage {
  public var fromVersion: any VersionedSchema.Type {
    switch self {
    case .lightweight(let from, _), .custom(let from, _, _, _): from
    }
  }

  public var toVersion: any VersionedSchema.Type {
    switch self {
    case .lightweight(_, let to), .custom(_, let to, _, _): to
    }
  }
}
