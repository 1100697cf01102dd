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

public typealias DefaultSnapshot = Never
public typealias DataStoreFetchRequest<Model> = Never
public typealias DataStoreFetchResult<Model, Snapshot> = Never
public typealias DataStoreSaveChangesRequest<Snapshot> = Never
public typealias DataStoreSaveChangesResult<Snapshot> = Never
