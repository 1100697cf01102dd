internal import GRDB
internal import InstarStore
internal import Synchronization

/// A clone in memory, with one connection: opening a connection to a small store takes longer than checking the store.
///
/// The verification sees only the pages that the stages left: stages that work out their statements have a connection
/// of their own, and `change` leaves nothing in the cache of this one.
package final class MemoryClone: Sendable {
  let store: MemoryStore
  private let kept = Mutex<DatabaseQueue?>(nil)

  /// Makes an empty clone.
  ///
  /// - Throws: The database's error.
  package init() throws { store = try MemoryStore() }

  /// Calls `body` with the kept connection, which fires no trigger.
  ///
  /// - Precondition: `body` does not use the kept connection again.
  func write<T>(_ body: (Database) throws -> T) throws -> T {
    try connection().inDatabase(body)
  }

  /// Runs statements that change the schema, in one transaction. No trigger fires.
  ///
  /// - Throws: The database's error; the clone is then in any state, and of no use.
  func change(by statements: [String]) throws {
    try write { db in
      try db.runWithoutRows("BEGIN IMMEDIATE")
      for statement in statements { try db.runFirstStatement(of: statement) }
      try db.runWithoutRows("COMMIT")
      db.emptyPageCache()
    }
  }

  /// Calls `body` with the kept connection, which writes nothing meanwhile.
  ///
  /// - Precondition: `body` does not use the kept connection again.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    var result: Result<T, any Error>?
    do {
      try write { db in
        try GuardedConnection.onlyReading(db) { result = Result { try body(db) } }
      }
    } catch {
      guard result != nil else { throw error }
      // `body` may have written back the store, which no error after it undoes. This connection still only reads, so
      // the next call opens another one.
      kept.withLock { $0 = nil }
    }
    // `onlyReading` calls its argument, or throws.
    guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
    return try result.get()
  }

  private func connection() throws -> DatabaseQueue {
    try kept.withLock { kept in
      if let kept { return kept }
      let connection = try GuardedConnection.open(store, access: .readWrite, firesTriggers: false)
      connection.inDatabase { $0.forbidOtherDatabases() }
      kept = connection
      return connection
    }
  }
}
