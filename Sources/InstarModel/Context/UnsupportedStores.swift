// Names of SwiftData's custom data stores (documentation of `DataStore`, macOS 15). Code that uses them gets one clear
// error, not one for each unknown name.

/// Unavailable. Instar keeps models in SQLite files in the layouts of Core Data and of ordinary tables.
@available(
  *, unavailable,
  message: "Instar keeps models in SQLite stores only; describe the store with a ModelConfiguration"
)
public protocol DataStore: AnyObject {
  associatedtype Configuration
  associatedtype Snapshot
}

/// Unavailable, as `DataStore` is.
@available(
  *, unavailable,
  message: "Instar keeps models in SQLite stores only; describe the store with a ModelConfiguration"
)
public protocol DataStoreConfiguration {
  associatedtype Store
}

/// Unavailable, as `DataStore` is; so are all names below.
public typealias DefaultSnapshot = Never
/// A name of a custom store's requests.
public typealias DataStoreFetchRequest<Model> = Never
/// A name of a custom store's results.
public typealias DataStoreFetchResult<Model, Snapshot> = Never
/// A name of a custom store's requests.
public typealias DataStoreSaveChangesRequest<Snapshot> = Never
/// A name of a custom store's results.
public typealias DataStoreSaveChangesResult<Snapshot> = Never
