public import Foundation
public import InstarSchema
package import InstarStore
import Synchronization

/// Describes one store of a container: its file, and which models are in it if the container has several stores.
///
/// Copies of a configuration for a store in memory share that store. It exists as long as one of them, or a container
/// that uses it.
public struct ModelConfiguration: Identifiable, Hashable, Sendable {
  /// The identity of the configuration. Only copies have the same one.
  public let id: ID
  /// The name; "default" if none was given.
  public let name: String
  /// Whether a name was given.
  package let isNamed: Bool
  /// The models in the store. `nil` for all models of the container that no other configuration names.
  public let schema: Schema?
  /// The store's file; `/dev/null` for a store in memory. In the closures of a stage it names the store that is being
  /// migrated; a worker cannot read or write that file.
  public let url: URL
  /// Whether the store is in memory only.
  public let isStoredInMemoryOnly: Bool
  /// Whether contexts may save. If not, the file is opened for reading only.
  public let allowsSave: Bool
  /// Has no effect on Linux.
  public let cloudKitDatabase: CloudKitDatabase
  /// Has no effect on Linux.
  public let groupContainer: GroupContainer
  private let identity: Identity

  /// The identity of a configuration.
  public struct ID: Hashable, Sendable {
    fileprivate let identity: ObjectIdentifier
  }

  /// Describes a store in a file. Opening a container creates the file and its folder if they are missing.
  public init(
    _ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true,
    cloudKitDatabase: CloudKitDatabase = .automatic
  ) {
    self.init(name, schema, url, isInMemory: false, allowsSave, .automatic, cloudKitDatabase)
  }

  /// Describes a store in memory, or the file `default.store` (`NAME.store` with a name) in the user's data folder.
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

  /// Describes a store for these models; name at least one.
  @_disfavoredOverload
  public init(for types: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
    self.init(schema: Schema(types), isStoredInMemoryOnly: isStoredInMemoryOnly)
  }

  private init(
    _ name: String?, _ schema: Schema?, _ url: URL, isInMemory: Bool, _ allowsSave: Bool,
    _ groupContainer: GroupContainer, _ cloudKitDatabase: CloudKitDatabase
  ) {
    // Only the named models are the configuration's; the container adds related ones.
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

  /// Returns whether one configuration is a copy of the other.
  public static func == (left: ModelConfiguration, right: ModelConfiguration) -> Bool {
    left.identity === right.identity
  }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }

  /// The store's name in errors: its path, or that it is in memory.
  package var place: String {
    guard isStoredInMemoryOnly else { return "'\(url.path)'" }
    return isNamed ? "the store '\(name)' in memory" : "a store in memory"
  }

  /// Returns whether the left store is written before the right one. All containers use this order, so two containers
  /// with the same stores never wait for each other in a circle.
  package static func isWrittenFirst(_ left: ModelConfiguration, _ right: ModelConfiguration)
    -> Bool
  {
    left.url.path == right.url.path
      ? ObjectIdentifier(left.identity) < ObjectIdentifier(right.identity)
      : left.url.path < right.url.path
  }

  /// Returns the connection of a store in memory, which all copies share.
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
