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
  /// What each migration to the last version must keep or make true.
  ///
  /// ```swift
  /// static var invariants: [Invariant] {
  ///   [
  ///     .rowsKept(of: NotesSchemaV2.Note.self),
  ///     .relationshipsKept,
  ///     .returnsNothing("SELECT Z_PK FROM ZNOTE WHERE ZTITLE = ''", named: "every note has a title"),
  ///   ]
  /// }
  /// ```
  ///
  /// Instar checks them on the migrated clone, without the plan's code. If one is violated, the run ends, and the store
  /// stays as it was.
  static var invariants: [Invariant] { get }
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
  /// None.
  public static var invariants: [Invariant] { [] }
}

extension Invariant {
  /// A model of the plan's last version, with its subclasses, has at least as many rows as before.
  public static func rowsKept(
    of model: any PersistentModel.Type, named name: String? = nil
  ) -> Invariant {
    rowsKept(of: Schema.entityName(for: model), named: name)
  }

  /// Every relationship of a model of the plan's last version has at least as many links as before.
  public static func relationshipsKept(
    of model: any PersistentModel.Type, named name: String? = nil
  ) -> Invariant {
    relationshipsKept(of: Schema.entityName(for: model), named: name)
  }
}

/// One step between two versions.
///
/// A `switch` over the two cases is exhaustive, as with SwiftData. It ends the program at a stage that SwiftData does
/// not have: one with a label, or that `sql`, `transform` or `bridge` made. If a plan has such stages, add `default:`.
@frozen
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

  /// A stage that SwiftData does not have: one with a label, or of another kind.
  // Unavailable cases need not be handled. `AnyStage` makes and reads it.
  @available(
    *, unavailable, message: "labeled(_:), sql, transform and bridge make it; write `default:`"
  )
  case extended(ExtendedStage)
}

/// A stage beyond those of SwiftData. The functions of `MigrationStage` create it.
public final class ExtendedStage: Sendable {
  package let fromVersion: any VersionedSchema.Type
  package let toVersion: any VersionedSchema.Type
  package let label: String?
  package let work: StageWork
  /// Called before each row that the code of the stage inserts, changes or deletes; an error that it throws fails that
  /// write. Only tests of plans set it.
  package let beforeWrite: (@Sendable () throws -> Void)?

  package init(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type, label: String?,
    work: StageWork, beforeWrite: (@Sendable () throws -> Void)? = nil
  ) {
    self.fromVersion = fromVersion
    self.toVersion = toVersion
    self.label = label
    self.work = work
    self.beforeWrite = beforeWrite
  }
}

/// A `MigrationStage` with all its cases available: the same cases with the same values, and so the same bytes.
private enum AnyStage {
  case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)
  case custom(
    fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
    willMigrate: (@Sendable (ModelContext) throws -> Void)?,
    didMigrate: (@Sendable (ModelContext) throws -> Void)?)
  case extended(ExtendedStage)

  init(_ stage: MigrationStage) { self = unsafeBitCast(stage, to: AnyStage.self) }
}

extension MigrationStage {
  init(_ stage: ExtendedStage) {
    self = unsafeBitCast(AnyStage.extended(stage), to: MigrationStage.self)
  }

  private var extended: ExtendedStage? {
    guard case .extended(let stage) = AnyStage(self) else { return nil }
    return stage
  }
}

/// What a stage does besides its change of schema.
package enum StageWork: Sendable {
  case lightweight
  case custom(
    willMigrate: (@Sendable (ModelContext) throws -> Void)?,
    didMigrate: (@Sendable (ModelContext) throws -> Void)?)
  case sql(before: [SQL], after: [SQL])
  case transform([ModelTransform])
  case bridge(@Sendable (ModelContext, ModelContext) throws -> Void)
}

extension MigrationStage {
  /// The version that the stage starts at.
  public var fromVersion: any VersionedSchema.Type {
    switch AnyStage(self) {
    case .lightweight(let from, _), .custom(let from, _, _, _): from
    case .extended(let stage): stage.fromVersion
    }
  }

  /// The version that the stage ends at.
  public var toVersion: any VersionedSchema.Type {
    switch AnyStage(self) {
    case .lightweight(_, let to), .custom(_, let to, _, _): to
    case .extended(let stage): stage.toVersion
    }
  }

  /// Returns the same stage with a name: plans, reports, errors and the journal call it so.
  ///
  /// ```swift
  /// static let addTags = MigrationStage.lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self)
  ///   .labeled("AddTags")
  /// ```
  ///
  /// An error then names "AddTags (2 of 3)" instead of "1.0.0 → 2.0.0 (2 of 3)".
  public func labeled(_ label: String) -> MigrationStage {
    MigrationStage(
      ExtendedStage(fromVersion: fromVersion, toVersion: toVersion, label: label, work: work))
  }

  /// The name of the stage; `nil` without one.
  public var label: String? { extended?.label }

  package var beforeWrite: (@Sendable () throws -> Void)? { extended?.beforeWrite }

  package var work: StageWork {
    switch AnyStage(self) {
    case .lightweight: .lightweight
    case .custom(_, _, let willMigrate, let didMigrate):
      .custom(willMigrate: willMigrate, didMigrate: didMigrate)
    case .extended(let stage): stage.work
    }
  }
}
