internal import GRDB
internal import InstarStore

/// The transaction of a locked store in which a short run makes its change and verifies it, and which its cutover
/// commits. Nobody else sees the change before, so the run needs no copy of the store to work on.
///
/// It is open from `StoreLock.beginChange` until `StoreLock.commitChange`. If the lock is released before, SQLite rolls
/// it back.
///
/// Invariants:
/// - Until the commit SQLite writes no page of the store: the changed ones stay in the connection's cache
///   (https://www.sqlite.org/pragma.html#pragma_cache_spill).
/// - In rollback-journal mode, a journal exists from the first change on. Until the commit the start of its header is
///   zero, and SQLite ignores it. If the keeper dies, `Recovery` removes it.
package struct StoreTransaction: Sendable {
  private let connection: DatabaseQueue
  /// For each stage the statements that make it.
  let statements: [[String]]

  init(of connection: DatabaseQueue, making statements: [[String]]) {
    self.connection = connection
    self.statements = statements
  }

  /// Calls `body`, which changes the store. No trigger fires.
  ///
  /// - Throws: The error of `body`; the database's, where the transaction is not open. SQLite ends it after some
  ///   errors, and each later statement would be a transaction of its own.
  func change<T>(_ body: (Database) throws -> T) throws -> T {
    try connection.inDatabase { db in
      guard db.isInsideTransaction else {
        throw DatabaseError(
          resultCode: .SQLITE_MISUSE, message: "the transaction of the store has ended")
      }
      return try body(db)
    }
  }

  /// Calls `body`, which only reads what the transaction has made of the store.
  ///
  /// - Throws: as `change`.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    try change { db in try GuardedConnection.onlyReading(db) { try body(db) } }
  }

  /// The bytes that the store has after the commit.
  func size() throws -> Int64 {
    try change { db in
      try Int64(db.integer("PRAGMA page_count") ?? 0) * Int64(db.integer("PRAGMA page_size") ?? 0)
    }
  }
}
