internal import GRDB
internal import InstarStore

/// The private copy of a store that a run works on.
package enum Clone: Sendable {
  /// A file in the run's folder, which a worker may open.
  case file(String)
  /// A store in the keeper's memory, for a short run that writes no value of the app: where many small stores are
  /// migrated, making and removing a folder with a file takes a tenth of the time. A write-back copies it page by page
  /// like a file, and a recovery needs no clone.
  case memory(MemoryClone)

  /// A clone in memory.
  var memory: MemoryClone? {
    if case .memory(let clone) = self { clone } else { nil }
  }

  /// Calls `body` with a connection that only reads. Nobody may write the clone meanwhile.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    let schema = UnchangedSchema()
    func read(_ db: Database) throws -> T { try schema.use(db) { try body(db) } }
    switch self {
    case .file(let path): return try GuardedConnection.use(path, access: .immutable, read)
    case .memory(let clone): return try clone.read(read)
    }
  }

  /// Opens the clone, calls `body`, and closes the connection again, also where `body` throws. No trigger fires.
  func change<T>(_ body: (Database) throws -> T) throws -> T {
    switch self {
    case .file(let path):
      try GuardedConnection.use(path, access: .readWrite, firesTriggers: false, body)
    case .memory(let clone):
      try GuardedConnection.use(clone.store, access: .readWrite, firesTriggers: false, body)
    }
  }

  /// Calls `body` with a connection that writes the verified clone. No trigger fires.
  ///
  /// - Throws: The error of `body`; else that of closing the connection.
  func stamp<T>(_ body: (Database) throws -> T) throws -> T {
    switch self {
    case .file(let path):
      try useRollbackJournal()
      let connection = try GuardedConnection.open(path, access: .readWrite, firesTriggers: false)
      do {
        let result = try connection.inDatabase(body)
        try connection.close()
        return result
      } catch {
        // The clone is of no use. After an error of `close` this does nothing.
        try? connection.close()
        throw error
      }
    case .memory(let clone):
      return try clone.write(body)
    }
  }

  /// The bytes of the clone.
  func size() throws -> Int64 {
    switch self {
    case .file(let path): try FileCopy.size(of: path)
    case .memory(let clone): clone.store.size
    }
  }

  /// Sets the journal mode of a clone that nobody has open to a rollback journal, so that it has no side file.
  func useRollbackJournal() throws {
    // One in memory has it from the start.
    if case .file(let path) = self { try FileCopy.useRollbackJournal(path) }
  }
}
