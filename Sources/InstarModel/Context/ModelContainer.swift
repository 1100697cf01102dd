import Foundation
public import InstarSchema
import InstarStore
import Synchronization

/// One or several open stores, and the schema they are read by.
///
/// Each of its configurations stands for one store. All its contexts work with the models of all stores.
/// A container can be handed between threads; each of its contexts belongs to one thread.
public final class ModelContainer: Sendable {
  /// What the stores are read by, with the models of all of them.
  public let schema: Schema
  /// Those it was opened with, one for each store.
  public let configurations: Set<ModelConfiguration>
  /// The plan it was opened with, by which its stores were migrated where they were behind; `nil` without one.
  public let migrationPlan: (any SchemaMigrationPlan.Type)?
  let stores: ModelStores
  private let main = Mutex<MainContext?>(nil)

  /// A configuration, and the part of a container's schema that is in its store.
  package struct Part: Sendable {
    package let configuration: ModelConfiguration
    package var schema: Schema

    package init(_ configuration: ModelConfiguration, _ schema: Schema) {
      self.configuration = configuration
      self.schema = schema
    }
  }

  /// Opens the stores of configurations as they are, and makes those that are missing: what the
  /// initializers of the library end in, after they have migrated the stores that need that.
  ///
  /// - Parameters:
  ///   - parts: At least one, in the order in which the stores are written. Every entity of `schema` is in one of them.
  /// - Throws: `SwiftDataError.loadIssueModelContainer` with the cause, when the models cannot be stored, or a store is
  ///   no store of exactly its part of the schema. Stores that exist are then as they were.
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

  /// Makes the folder that a store is to be in, as Core Data does: on a new machine the default one is missing.
  private static func makeFolder(of store: URL) throws(InstarError) {
    let folder = store.deletingLastPathComponent()
    guard !FileManager.default.fileExists(atPath: folder.path) else { return }
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    } catch {
      throw InstarError(
        .unreadableStore, "cannot make the folder '\(folder.path)'", cause: "\(error)",
        next: "make it, or keep the store elsewhere")
    }
  }

  /// A container over stores that are open already.
  init(stores: ModelStores, configurations: Set<ModelConfiguration>) {
    migrationPlan = nil
    schema = stores.schema
    self.stores = stores
    self.configurations = configurations
  }

  /// The context of the main actor; the same one each time.
  ///
  /// Synchronous code that is not isolated may use it too, as tests do, from one thread at a time. It lives as long as the
  /// container.
  @preconcurrency @MainActor
  public var mainContext: ModelContext {
    main.withLock { main in
      if let main { return main }
      let context = ModelContext(self, phase: nil, isMain: true)
      context.autosaveEnabled = true
      let made = MainContext(context: context)
      main = made
      return made
    }.context
  }

  /// Deletes every model of all stores, those of other contexts included, and the history that Apple's frameworks kept of
  /// them. The stores stay open and empty; what the rows held is overwritten in the file. No delete rules run.
  ///
  /// - Throws: `storeChanged` where a store was migrated since; `busyStore`; `unreadableStore` where a configuration
  ///   does not allow to save. All stores are then as they were.
  public func erase() throws {
    try stores.erase()
  }

  /// The same as `erase()`, under SwiftData's earlier name.
  ///
  /// It cannot throw, as SwiftData's cannot: the next fetch or save of a context of this container throws what went wrong.
  /// All stores are then as they were.
  public func deleteAllData() {
    do {
      try stores.erase()
    } catch {
      stores.note(error)
    }
  }

  /// Closes the stores' files. Contexts of this container can no longer fetch or save.
  ///
  /// - Throws: `InstarError` where SQLite cannot close one; the others are closed, and what was saved is saved.
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

/// A main context on its way to the main actor, or to the one thread of a test.
private struct MainContext: @unchecked Sendable {
  let context: ModelContext
}
