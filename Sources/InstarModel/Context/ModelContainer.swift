import Foundation
public import InstarSchema
import InstarStore
import Synchronization

/// An open store, and the schema it is read by.
///
/// A container can be handed between threads; each of its contexts belongs to one thread.
public final class ModelContainer: Sendable {
  /// What the store is read by.
  public let schema: Schema
  /// The one configuration it was opened with.
  public let configurations: Set<ModelConfiguration>
  let store: ModelStore
  private let main = Mutex<MainContext?>(nil)

  /// Opens the store of a configuration as it is, and makes it where there is none: what the
  /// initializers of the library end in, after they have migrated the store where it needs that.
  ///
  /// - Throws: `SwiftDataError.loadIssueModelContainer` with the cause, when the models cannot be stored, or the store is
  ///   no store of exactly this schema. The store is then as it was.
  package init(opening configuration: ModelConfiguration, schema: Schema) throws {
    do {
      if configuration.allowsSave, !configuration.isStoredInMemoryOnly {
        try Self.makeFolder(of: configuration.url)
      }
      let connection =
        try configuration.isStoredInMemoryOnly
        ? configuration.memoryConnection()
        : StoreConnection(
          path: configuration.url.path, isReadOnly: !configuration.allowsSave,
          durability: .durable, log: SQLLog.ofThisProcess())
      store = try ModelStore(schema: schema, connection: connection, creatingWhereEmpty: true)
    } catch let error as InstarError {
      throw SwiftDataError.opening(
        error.about(
          "cannot open \(configuration.place) with schema \(schema.version)",
          store: configuration.url.path, state: "unchanged"))
    }
    self.schema = schema
    configurations = [configuration]
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

  /// A container over a store that is open already.
  init(schema: Schema, store: ModelStore, configurations: Set<ModelConfiguration>) {
    self.schema = schema
    self.store = store
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

  /// Deletes every model of the store, those of other contexts included, and the history that Apple's frameworks kept of
  /// them. The store stays open and empty; what the rows held is overwritten in the file. No delete rules run.
  ///
  /// - Throws: `storeChanged` where the store was migrated since; `busyStore`; `unreadableStore` where the configuration
  ///   does not allow to save. The store is then as it was.
  public func erase() throws {
    try store.erase()
  }

  /// The same as `erase()`, under SwiftData's earlier name.
  ///
  /// It cannot throw, as SwiftData's cannot: the next fetch or save of a context of this container throws what went wrong.
  /// The store is then as it was.
  public func deleteAllData() {
    do {
      try store.erase()
    } catch {
      store.note(error)
    }
  }

  /// Closes the store's file. Contexts of this container can no longer fetch or save.
  ///
  /// - Throws: `InstarError` where SQLite cannot close it; what was saved is saved.
  public func close() throws {
    try store.connection.close()
  }
}

/// A main context on its way to the main actor, or to the one thread of a test.
private struct MainContext: @unchecked Sendable {
  let context: ModelContext
}
