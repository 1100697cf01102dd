import Instar
import InstarEngine
import Testing

/// A plan with one stage between two versions, of the kind that the running test says.
enum ScriptedPlan<Old: VersionedSchema, New: VersionedSchema>: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [Old.self, New.self] }
  static var acceptedLosses: [String] { Script.losses }
  static var invariants: [Invariant] { Script.invariants }
  static var versionSource: VersionSource { Script.versionSource }
  static var stages: [MigrationStage] {
    if let stage = Script.stage { return [stage] }
    if Script.isLightweight { return [.lightweight(fromVersion: Old.self, toVersion: New.self)] }
    var willMigrate: (@Sendable (ModelContext) throws -> Void)?
    // A plan without such a closure is previewed otherwise.
    if Script.willMigrate != nil {
      willMigrate = { context in try Script.willMigrate?(context) }
    }
    return [
      .custom(
        fromVersion: Old.self, toVersion: New.self, willMigrate: willMigrate,
        didMigrate: { context in try Script.didMigrate?(context) })
    ]
  }
}

/// What the stage of the running test does. Suites that use it run one after the other (see `packaging/test`).
enum Script {
  nonisolated(unsafe) static var willMigrate: ((ModelContext) throws -> Void)?
  nonisolated(unsafe) static var didMigrate: ((ModelContext) throws -> Void)?
  nonisolated(unsafe) static var losses: [String] = []
  nonisolated(unsafe) static var invariants: [Invariant] = []
  nonisolated(unsafe) static var versionSource = VersionSource.userVersion
  nonisolated(unsafe) static var isLightweight = false
  /// A stage of another kind.
  nonisolated(unsafe) static var stage: MigrationStage?

  static func reset() {
    willMigrate = nil
    didMigrate = nil
    losses = []
    invariants = []
    versionSource = .userVersion
    isLightweight = false
    stage = nil
  }
}
