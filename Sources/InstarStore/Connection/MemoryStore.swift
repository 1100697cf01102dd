internal import CDatabase
internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// A store in this process's memory, which several connections open one after the other or at once.
///
/// Its content exists as long as this object or a connection. The rollback journal of its connections is in memory too.
package final class MemoryStore: Sendable {
  /// What connections open.
  let uniformResourceIdentifier: String
  /// Keeps the content, and runs no statement. SQLite itself makes its calls wait for each other.
  private nonisolated(unsafe) let anchor: OpaquePointer?

  /// Makes an empty store.
  ///
  /// - Throws: The database's error.
  package init() throws {
    // Connections of equal name share a store.
    uniformResourceIdentifier = "file:/\(UUID().uuidString)?vfs=memdb"
    var anchor: OpaquePointer?
    let code = instar_memory_open(uniformResourceIdentifier, &anchor)
    guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    self.anchor = anchor
  }

  deinit { instar_memory_close(anchor) }

  /// The bytes of the store.
  package var size: Int64 { instar_memory_size(anchor) }

  /// Fills the empty store with the bytes of a database file whose mode is a rollback journal, and which has none.
  ///
  /// - Precondition: No connection has read the store.
  /// - Throws: An error of the file system or of SQLite. The store is then in any state.
  package func fill(fromFile path: String) throws {
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    guard let count = Int32(exactly: content.count) else {
      throw DatabaseError(resultCode: .SQLITE_TOOBIG)
    }
    let code = content.withUnsafeBytes { instar_memory_write(anchor, $0.baseAddress, count, 0) }
    guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }
}
