internal import GRDB
internal import InstarStore

/// What a run works on, which nobody else sees.
package enum Clone: Sendable {
  /// A copy of the store in the run's folder, which a worker may open.
  case file(String)
  /// The store itself, in a transaction that the cutover commits: for a short run whose stages write no value of the
  /// app. Then nothing is copied but the backup, and SQLite writes only the pages that the stages change.
  case transaction(StoreTransaction)

  var transaction: StoreTransaction? {
    if case .transaction(let transaction) = self { transaction } else { nil }
  }

  /// Calls `body` with a connection that only reads. Nobody may write the clone meanwhile.
  func read<T>(_ body: (Database) throws -> T) throws -> T {
    let schema = UnchangedSchema()
    func read(_ db: Database) throws -> T { try schema.use(db) { try body(db) } }
    switch self {
    case .file(let path): return try GuardedConnection.use(path, access: .immutable, read)
    case .transaction(let transaction): return try transaction.read(read)
    }
  }

  /// Calls `body` with a connection that writes. No trigger fires.
  func change<T>(_ body: (Database) throws -> T) throws -> T {
    switch self {
    case .file(let path):
      try GuardedConnection.use(path, access: .readWrite, firesTriggers: false, body)
    case .transaction(let transaction): try transaction.change(body)
    }
  }

  /// Calls `body` in a transaction that writes the verified clone. No trigger fires.
  ///
  /// - Throws: The error of `body`; else that of the commit, or of closing the connection. The clone is of no use then.
  func stamp<T>(_ body: (Database) throws -> T) throws -> T {
    switch self {
    case .file(let path):
      try FileCopy.useRollbackJournal(path)
      let connection = try GuardedConnection.open(path, access: .readWrite, firesTriggers: false)
      do {
        let result = try connection.inDatabase { db in
          // A private file, which is synchronized where it becomes the store itself: by an exchange.
          try db.runWithoutRows(
            """
            PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
            BEGIN IMMEDIATE
            """)
          let result = try body(db)
          try db.runWithoutRows("COMMIT")
          return result
        }
        try connection.close()
        return result
      } catch {
        // After an error of `close` this does nothing.
        try? connection.close()
        throw error
      }
    case .transaction(let transaction): return try transaction.change(body)
    }
  }

  /// The bytes of the clone.
  func size() throws -> Int64 {
    switch self {
    case .file(let path): try FileCopy.size(of: path)
    case .transaction(let transaction): try transaction.size()
    }
  }
}
