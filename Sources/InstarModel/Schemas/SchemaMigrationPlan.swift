public import InstarSchema

/// The versions of an app's store, and the stages between them.
public protocol SchemaMigrationPlan: SendableMetatype {
  /// The schemas of all versions, oldest first.
  static var schemas: [any VersionedSchema.Type] { get }
  /// The stages, in any order. Each goes from one version to a later one, and at most one starts at each version. If no
  /// stage starts at a version, Instar adds a lightweight one to the next version, unless that needs code.
  static var stages: [MigrationStage] { get }
  /// The order of columns after a change, in stores that Apple's frameworks created. The default is `.asNew`.
  static var columnOrder: ColumnOrder { get }
  /// Where plain stores have their version. The default is `PRAGMA user_version`.
  static var versionSource: VersionSource { get }
  /// The versions that entries in another tool's history table stand for, for stores without a version of their own.
  ///
  /// ```swift
  /// static var importedVersions: [ToolVersion: Schema.Version] {
  ///   [.alembic("ae1027a6acf"): Schema.Version(1, 0, 0)]
  /// }
  /// ```
  ///
  /// Instar reads the tool's table and never writes it. After a run the version is in `versionSource`.
  static var importedVersions: [ToolVersion: Schema.Version] { get }
  /// Properties whose values may be lost, and entities whose rows may be: by their names in the version a store is at,
  /// or in the version that the stage starts at: "CompiledTags.flavors".
  ///
  /// ```swift
  /// static var acceptedLosses: [String] { ["CompiledTags.flavors"] }
  /// ```
  ///
  /// Values are lost where a stage changes a property's type and neither Instar nor `didMigrate` converts them, or
  /// where some classes of a hierarchy have a property no longer; rows, where a class joins another hierarchy. Such a
  /// run is refused, unless this list has the name or the operator runs `instarctl migrate --accept-loss`.
  /// The old values stay in the backup.
  static var acceptedLosses: [String] { get }
}

extension SchemaMigrationPlan {
  /// `.asNew`.
  public static var columnOrder: ColumnOrder { .asNew }
  /// `PRAGMA user_version`.
  public static var versionSource: VersionSource { .userVersion }
  /// Empty.
  public static var importedVersions: [ToolVersion: Schema.Version] { [:] }
  /// None.
  public static var acceptedLosses: [String] { [] }
}

/// One step between two versions.
public enum MigrationStage: Sendable {
  /// Instar derives the changes from the two schemas: properties and entities that were added, removed or renamed
  /// (`originalName:`). It refuses a change that needs code.
  case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)

  /// The same change of schema, with code before and after it.
  ///
  /// `willMigrate` runs before the change and sees only models of the old version. `didMigrate` runs after it and
  /// sees only models of the new version. Both also accept the classes of a version other than these two, as far as the
  /// entities of their own version have the same properties. Pending changes are saved when a closure returns. If a
  /// closure throws, the run ends and the store is unchanged.
  @preconcurrency
  case custom(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    willMigrate: (@Sendable (ModelContext) throws -> Void)?,
    didMigrate: (@Sendable (ModelContext) throws -> Void)?)
}

extension MigrationStage {
  /// The version that the stage starts at.
  public var fromVersion: any VersionedSchema.Type {
    switch self {
    case .lightweight(let from, _), .custom(let from, _, _, _): from
    }
  }

  /// The version that the stage ends at.
  public var toVersion: any VersionedSchema.Type {
    switch self {
    case .lightweight(_, let to), .custom(_, let to, _, _): to
    }
  }
}
