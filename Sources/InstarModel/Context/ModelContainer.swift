import Foundation
public import InstarSchema
import InstarStore

/// An open store, and the schema it is read by.
///
/// A container can be handed between threads; each of its contexts belongs to one thread.
public final class ModelContainer: Sendable {
  /// What the store is read by.
  public let schema: Schema
  /// The one configuration it was opened with.
  public let configurations: Set<ModelConfiguration>
  let store: ModelStore

  /// Opens the store of a configuration, and makes it where there is none.
  ///
  /// - Parameter configurations: One; none stands for the default place.
  /// - Throws: `SwiftDataError.loadIssueModelContainer` with the cause, when the models cannot be stored, or the store is
  ///   no store of exactly this schema. The store is then as it was.
  public init(for schema: Schema, configurations: [ModelConfiguration]) throws {
    guard configurations.count <= 1 else {
      throw SwiftDataError.configuration(
        InstarError(
          .unsupported, "cannot open a container",
          cause: "\(configurations.count) configurations were given; a container has one store"))
    }
    let configuration = configurations.first ?? ModelConfiguration(schema: schema)
    do {
      let connection =
        try configuration.isStoredInMemoryOnly
        ? configuration.memoryConnection()
        : StoreConnection(
          path: configuration.url.path, isReadOnly: !configuration.allowsSave,
          durability: .durable)
      store = try ModelStore(schema: schema, connection: connection, creatingWhereEmpty: true)
    } catch let error as InstarError {
      throw SwiftDataError.loadIssue(
        error.about(
          "cannot open '\(configuration.url.path)' with schema \(schema.version)",
          store: configuration.url.path, state: "unchanged"))
    }
    self.schema = schema
    self.configurations = [configuration]
  }

  /// The same, with the configuration written without brackets.
  ///
  /// - Throws: as `init(for:configurations:)`.
  public convenience init(
    for schema: Schema, configurations: ModelConfiguration...
  ) throws {
    try self.init(for: schema, configurations: configurations)
  }

  /// The same, with a schema of these models at version 1.0.0. A model that a relationship leads to must be among them.
  ///
  /// - Throws: as `init(for:configurations:)`.
  public convenience init(
    for types: any PersistentModel.Type..., configurations: ModelConfiguration...
  ) throws {
    try self.init(for: Schema(types), configurations: configurations)
  }

  /// A container over a connection that is open already, for the engine's stages.
  init(schema: Schema, store: ModelStore, configuration: ModelConfiguration) {
    self.schema = schema
    self.store = store
    configurations = [configuration]
  }

  /// The context of the main actor.
  @preconcurrency @MainActor
  public var mainContext: ModelContext {
    if let made = MainContexts.shared[ObjectIdentifier(self)] { return made }
    let context = ModelContext(self)
    context.autosaveEnabled = true
    MainContexts.shared[ObjectIdentifier(self)] = context
    return context
  }

  /// Closes the store's file. Contexts of this container can no longer fetch or save.
  ///
  /// - Throws: `InstarError` where SQLite cannot close it; what was saved is saved.
  public func close() throws {
    try store.connection.close()
  }
}

/// The main contexts by container. They live on the main actor, so a container, which does not, cannot hold its own.
@MainActor
private enum MainContexts {
  static var shared: [ObjectIdentifier: ModelContext] = [:]
}
