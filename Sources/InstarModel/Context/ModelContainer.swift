import Foundation
public import InstarSchema
import InstarStore
import Synchronization

/// One or several open stores with a schema.
///
/// Each configuration describes one store. Every context of the container has the models of all stores. Several threads
/// can use a container; use each of its contexts from one thread at a time.
public final class ModelContainer: Sendable {
  /// The schema of the models in all stores.
  public let schema: Schema
  /// The configurations that it was opened with, one for each store.
  public let configurations: Set<ModelConfiguration>
  /// The plan that it was opened with, which migrated the stores that were behind; `nil` without one.
  public let migrationPlan: (any SchemaMigrationPlan.Type)?
  let stores: ModelStores
  private let main = Mutex<MainContext?>(nil)

  /// A configuration with the part of the container's schema that is in its store.
  package struct Part: Sendable {
    package let configuration: ModelConfiguration
    package var schema: Schema

    package init(_ configuration: ModelConfiguration, _ schema: Schema) {
      self.configuration = configuration
      self.schema = schema
    }
  }

  /// Opens stores without migrating them, and creates missing ones. The public initializers call it after they have
  /// migrated the stores that are behind.
  ///
  /// - Parameters:
  ///   - parts: At least one, in the order in which the stores are written. Together they have every entity of
  ///     `schema`.
  /// - Throws: `SwiftDataError.loadIssueModelContainer` with the cause if the models cannot be stored, or the
  ///   structure of a store does not match its part of the schema. Existing stores are then unchanged.
  package init(
    opening parts: [Part], schema: Schema, plan: (any SchemaMigrationPlan.Type)? = nil
  ) throws {
    migrationPlan = plan
    stores = try ModelStores(parts.map(Self.open), schema: schema)
    self.schema = schema
    configurations = Set(parts.map(\.configuration))
  }

  private static func open(_ part: Part) throws -> ModelStore {
    let configuration = part.configuration
    do {
      if configuration.allowsSave, !configuration.isStoredInMemoryOnly {
        try makeFolder(of: configuration.url)
      }
      let connection =
        try configuration.isStoredInMemoryOnly
        ? configuration.memoryConnection()
        : StoreConnection(
          path: configuration.url.path, isReadOnly: !configuration.allowsSave,
          durability: .durable, log: SQLLog.ofThisProcess())
      return try ModelStore(
        schema: part.schema, connection: connection, place: configuration.place,
        allowsSave: configuration.allowsSave, creatingWhereEmpty: true)
    } catch let error as InstarError {
      throw SwiftDataError.opening(
        error.about(
          "cannot open \(configuration.place) with schema \(part.schema.version)",
          store: configuration.url.path, state: "unchanged"))
    }
  }

  /// Creates the folder of a store, as Core Data does. On a new machine the default folder is missing.
  private static func makeFolder(of store: URL) throws(InstarError) {
    let folder = store.deletingLastPathComponent()
    guard !FileManager.default.fileExists(atPath: folder.path) else { return }
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    } catch {
      throw InstarError(
        .unreadableStore, "cannot create the folder '\(folder.path)'", cause: "\(error)",
        next: "create the folder, or choose another URL for the store")
    }
  }

  /// Creates a container for stores that are already open.
  init(stores: ModelStores, configurations: Set<ModelConfiguration>) {
    migrationPlan = nil
    schema = stores.schema
    self.stores = stores
    self.configurations = configurations
  }

  /// The context of the main actor, always the same object.
  ///
  /// Synchronous code without isolation, such as tests, may use it too, from one thread at a time. The container
  /// retains it.
  @preconcurrency @MainActor
  public var mainContext: ModelContext {
    main.withLock { main in
      if let main { return main }
      let context = ModelContext(self, closure: nil, isMain: true)
      context.autosaveEnabled = true
      let made = MainContext(context: context)
      main = made
      return made
    }.context
  }

  /// Deletes all models of all stores, the files of their large values, and the history that Apple's frameworks wrote.
  /// The stores stay open and empty, and SQLite overwrites the deleted content in the files. Delete rules are not
  /// applied.
  ///
  /// - Throws: `storeChanged` if a store was migrated after the container was opened; `busyStore`; `unreadableStore`
  ///   if a configuration does not allow saving. All stores are then unchanged.
  public func erase() throws {
    try stores.erase()
  }

  /// Does the same as `erase()`, under SwiftData's earlier name.
  ///
  /// Like SwiftData's it cannot throw. If it fails, all stores are unchanged, and the next fetch or save of a context
  /// of this container throws the error.
  public func deleteAllData() {
    do {
      try stores.erase()
    } catch {
      stores.note(error)
    }
  }

  /// Closes the files of the stores. Contexts of this container can then no longer fetch or save.
  ///
  /// - Throws: `InstarError` if SQLite cannot close a file. The others are closed, and all saved changes are kept.
  public func close() throws {
    var failure: (any Error)?
    for store in stores.all {
      do {
        try store.connection.close()
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }
}

/// Passes the main context to the main actor, or to the only thread of a test.
private struct MainContext: @unchecked Sendable {
  let context: ModelContext
}
