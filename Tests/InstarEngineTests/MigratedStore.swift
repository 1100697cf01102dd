import Foundation
import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Synchronization
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

  /// Makes the store one that Apple's frameworks created: its tables get the column order of a new store.
  func passForApples() throws {
    try withDatabase { db in
      let data = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      var plist = try #require(
        PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
      plist["InstarMadeStore"] = nil
      try db.execute(
        sql: "UPDATE Z_METADATA SET Z_PLIST = ?",
        arguments: [
          PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
        ])
    }
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

  /// The statements that change something, as the plan shows them for the store, and as a run on the store executes
  /// them.
  func statements<Old: VersionedSchema, New: VersionedSchema>(
    _ old: Old.Type, _ new: New.Type
  ) throws -> (planned: [String], executed: [String]) {
    let definition = try PlanDefinition(ScriptedPlan<Old, New>.self)
    let isPlain = Schema(versionedSchema: old).format == .plain
    let migration =
      try isPlain ? plan(old, new) : definition.migration(from: Old.versionIdentifier)
    let planned = migration.stages.flatMap(\.statements)
    let lines = Mutex<[String]>([])
    let log = SQLLog(SQLDebug(level: 1)) { line in lines.withLock { $0.append(line) } }
    let connection = try StoreConnection(path: path, durability: .clone, log: log)
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: Old.versionIdentifier)
        ) { _ in }
      ], plan: definition.name)
    try connection.close()
    // The executors read, and use pragmas, besides the steps.
    let verbs = ["CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE"]
    func isChange(_ sql: String) -> Bool {
      // What is kept aside for the count of lost values changes no table of the store. The plan is made without the
      // store, so it does not know that this one has a history.
      !sql.contains("instar_carried") && !sql.hasPrefix("UPDATE ACHANGE ")
        && !sql.hasPrefix("DELETE FROM ACHANGE ")
        && verbs.contains(where: sql.hasPrefix)
    }
    let mark = "CoreData: sql: "
    let executed = lines.withLock { $0 }.filter { $0.hasPrefix(mark) }
      .map { String($0.dropFirst(mark.count)) }
    return (planned.filter(isChange), executed.filter(isChange))
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
