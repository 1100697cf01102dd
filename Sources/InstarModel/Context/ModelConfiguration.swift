public import Foundation
public import InstarSchema
package import InstarStore
import Synchronization

/// Where a container keeps one store, and, where it has several, which models are in it.
///
/// A configuration of a store in memory and its copies share that store; it lives as long as one of them or a container
/// of it.
public struct ModelConfiguration: Identifiable, Hashable, Sendable {
  /// Equal in copies, and in nothing else.
  public let id: ID
  /// "default" where none was given.
  public let name: String
  /// Whether a name was given.
  package let isNamed: Bool
  /// The models that the store is for. The only configuration of a container has all of the container's models.
  public let schema: Schema?
  /// The store's file; `/dev/null` for a store in memory.
  public let url: URL
  /// Whether the store is in memory and in no file.
  public let isStoredInMemoryOnly: Bool
  /// Whether contexts may save; where not, the file is opened for reading only.
  public let allowsSave: Bool
  /// What was asked for; it has no effect on Linux.
  public let cloudKitDatabase: CloudKitDatabase
  /// What was asked for; it has no effect on Linux.
  public let groupContainer: GroupContainer
  private let identity: Identity

  /// Which configuration it is.
  public struct ID: Hashable, Sendable {
    fileprivate let identity: ObjectIdentifier
  }

  /// A store in a file.
  public init(
    _ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true,
    cloudKitDatabase: CloudKitDatabase = .automatic
  ) {
    self.init(name, schema, url, isInMemory: false, allowsSave, .automatic, cloudKitDatabase)
  }

  /// A store in memory, or in the default place: `default.store` in the user's data folder.
  public init(
    _ name: String? = nil, schema: Schema? = nil, isStoredInMemoryOnly: Bool = false,
    allowsSave: Bool = true, groupContainer: GroupContainer = .automatic,
    cloudKitDatabase: CloudKitDatabase = .automatic
  ) {
    let folder =
      FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
      .first ?? URL(filePath: FileManager.default.currentDirectoryPath)
    self.init(
      name, schema,
      isStoredInMemoryOnly
        ? URL(filePath: "/dev/null") : folder.appending(path: "\(name ?? "default").store"),
      isInMemory: isStoredInMemoryOnly, allowsSave, groupContainer, cloudKitDatabase)
  }

  /// The same, for a schema of these models, of which there must be at least one.
  @_disfavoredOverload
  public init(for types: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
    self.init(schema: Schema(types), isStoredInMemoryOnly: isStoredInMemoryOnly)
  }

  private init(
    _ name: String?, _ schema: Schema?, _ url: URL, isInMemory: Bool, _ allowsSave: Bool,
    _ groupContainer: GroupContainer, _ cloudKitDatabase: CloudKitDatabase
  ) {
    // What a store is for is what was named; a container brings the rest along.
    let schema = schema?.withNamedModelsOnly
    Self.report(cloudKitDatabase, groupContainer)
    self.groupContainer = groupContainer
    self.cloudKitDatabase = cloudKitDatabase
    let identity = Identity()
    id = ID(identity: ObjectIdentifier(identity))
    self.identity = identity
    self.name = name ?? "default"
    isNamed = name != nil
    self.schema = schema
    self.url = url
    isStoredInMemoryOnly = isInMemory
    self.allowsSave = allowsSave
  }

  /// Whether one is a copy of the other.
  public static func == (left: ModelConfiguration, right: ModelConfiguration) -> Bool {
    left.identity === right.identity
  }

  /// By identity, as `==` compares.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }

  /// How errors call the store: by its path, where it has one.
  package var place: String {
    guard isStoredInMemoryOnly else { return "'\(url.path)'" }
    return isNamed ? "the store '\(name)' in memory" : "a store in memory"
  }

  /// The order in which stores that are written together are written, in whatever order a container was given them: two
  /// containers of the same stores so never wait for each other in a circle.
  package static func isWrittenFirst(_ left: ModelConfiguration, _ right: ModelConfiguration)
    -> Bool
  {
    left.url.path == right.url.path
      ? ObjectIdentifier(left.identity) < ObjectIdentifier(right.identity)
      : left.url.path < right.url.path
  }

  /// The one connection of a store in memory.
  package func memoryConnection() throws(InstarError) -> StoreConnection {
    try identity.connection()
  }

  private final class Identity: Sendable {
    private let made = Mutex<StoreConnection?>(nil)

    func connection() throws(InstarError) -> StoreConnection {
      let result: Result<StoreConnection, InstarError> = made.withLock { made in
        if let made { return .success(made) }
        do throws(InstarError) {
          let connection = try StoreConnection(inMemory: SQLLog.ofThisProcess())
          made = connection
          return .success(connection)
        } catch {
          return .failure(error)
        }
      }
      return try result.get()
    }
  }
}
