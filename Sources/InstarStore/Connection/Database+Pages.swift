package import GRDB
internal import GRDBSQLite

extension Database {
  /// Calls `body` with all pages as this connection sees them: also those that its open transaction has changed, which
  /// SQLite has not written to the file. For small stores: the pages are copied to memory.
  ///
  /// - Returns: `nil` where SQLite cannot make the copy. A page that SQLite cannot read has only zeros.
  /// - Throws: The error of `body`.
  package func withAllPages<T>(_ body: (UnsafeRawBufferPointer) throws -> T) throws -> T? {
    var size: sqlite3_int64 = 0
    guard let pages = sqlite3_serialize(sqliteConnection, "main", &size, 0) else { return nil }
    defer { sqlite3_free(pages) }
    return try body(UnsafeRawBufferPointer(start: pages, count: Int(size)))
  }
}
