internal import GRDB
package import InstarStore

/// The private copy of a store that a run works on.
package enum Clone: Sendable {
  /// A file in the run's folder, which a worker may open.
  case file(String)
  /// A store in the keeper's memory, for a short run that only writes the schema: where many small stores are migrated,
  /// making and removing a folder with a file takes a tenth of the time. A write-back copies it page by page like a
  /// file, and a recovery needs no clone.
  case memory(MemoryStore)

  /// A clone in memory.
  var memory: MemoryStore? {
    if case .memory(let store) = self { store } else { nil }
  }

  /// Opens the clone, calls `body`, and closes the connection again, also where `body` throws.
  ///
  /// - Parameter access: `immutable` for a clone that nobody writes any more.
  func use<T>(
    _ access: GuardedConnection.Access, firesTriggers: Bool = true, _ body: (Database) throws -> T
  ) throws -> T {
    switch self {
    case .file(let path):
      try GuardedConnection.use(path, access: access, firesTriggers: firesTriggers, body)
    case .memory(let store):
      try GuardedConnection.use(store, access: access, firesTriggers: firesTriggers, body)
    }
  }

  /// Opens the clone to write it.
  func open() throws -> DatabaseQueue {
    switch self {
    case .file(let path):
      try GuardedConnection.open(path, access: .readWrite, firesTriggers: false)
    case .memory(let store):
      try GuardedConnection.open(store, access: .readWrite, firesTriggers: false)
    }
  }

  /// The bytes of the clone.
  func size() throws -> Int64 {
    switch self {
    case .file(let path): try FileCopy.size(of: path)
    case .memory(let store): store.size
    }
  }

  /// Sets the journal mode of a clone that nobody has open to a rollback journal, so that it has no side file.
  func useRollbackJournal() throws {
    // One in memory has it from the start.
    if case .file(let path) = self { try FileCopy.useRollbackJournal(path) }
  }
}
