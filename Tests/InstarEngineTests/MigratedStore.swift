import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

/// A store in a folder of its own, of models or of ordinary tables, and the whole runs of an app's container that
/// migrate it by a scripted plan.
struct MigratedStore {
  private let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
    Script.reset()
  }

  // MARK: Making it

  /// Makes a store with these models.
  func make(
    _ version: any VersionedSchema.Type, _ models: [any PersistentModel]
  ) throws {
    let container = try open(version)
    let context = ModelContext(container)
    for model in models { context.insert(model) }
    try context.save()
    try container.close()
  }

  /// Makes a store with these tables, at version 1.
  func makeTables(_ sql: String) throws {
    try execute("\(sql); PRAGMA user_version = 1")
  }

  // MARK: Migrating it

  /// Opens a container, which migrates the store where a plan is given.
  func open(
    _ version: any VersionedSchema.Type, _ plan: (any SchemaMigrationPlan.Type)? = nil
  ) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: version), migrationPlan: plan,
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  func migrate<Old: VersionedSchema, New: VersionedSchema>(
    _: Old.Type, _ new: New.Type
  ) throws {
    try open(new, ScriptedPlan<Old, New>.self).close()
  }

  /// The error of a run, which must leave the store as it was.
  func refusal(
    _ version: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type
  ) throws -> InstarError {
    let before = try Data(contentsOf: URL(filePath: path))
    let error = #expect(throws: SwiftDataError.self) { try open(version, plan) }
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    return try #require(error?.cause)
  }

  func refusal<Old: VersionedSchema, New: VersionedSchema>(
    _: Old.Type, _ new: New.Type
  ) throws -> InstarError {
    try refusal(new, ScriptedPlan<Old, New>.self)
  }

  /// The plan for the store, on an empty copy of its tables.
  func plan<Old: VersionedSchema, New: VersionedSchema>(
    _: Old.Type, _: New.Type
  ) throws -> PlannedMigration {
    let statements = try read(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return try PlanDefinition(ScriptedPlan<Old, New>.self).migration(
      from: Old.versionIdentifier, of: StoreDDL(statements: statements))
  }

  /// The error of that plan.
  func planError<Old: VersionedSchema, New: VersionedSchema>(
    _ old: Old.Type, _ new: New.Type
  ) throws -> InstarError {
    try #require(#expect(throws: InstarError.self) { try plan(old, new) })
  }

  // MARK: Reading it

  var lastReport: RunReport? {
    get throws { try StateFolder(path: folder.path("state")).history().reports.last }
  }

  var notes: [String] {
    get throws { try lastReport?.notes ?? [] }
  }

  func read(_ sql: String) throws -> [String] {
    try withDatabase { try String.fetchAll($0, sql: sql) }
  }

  func execute(_ sql: String) throws {
    try withDatabase { try $0.execute(sql: sql) }
  }

  private func withDatabase<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction(body)
  }
}
