package import GRDB
internal import GRDBSQLite

/// Copies all pages of one database into another, in one transaction of the target, with SQLite's backup API.
package final class PageCopy {
  private var handle: OpaquePointer?
  private let target: Database

  package init(from source: Database, to target: Database) throws {
    self.target = target
    guard let from = source.sqliteConnection, let to = target.sqliteConnection,
      let handle = sqlite3_backup_init(to, "main", from, "main")
    else {
      throw DatabaseError(resultCode: target.lastErrorCode, message: target.lastErrorMessage)
    }
    self.handle = handle
  }

  deinit { abandon() }

  /// Takes the write lock of the target, and copies one page.
  package func copyFirstPage() throws {
    try step(1)
  }

  /// Copies all pages but the last one, so that `finish` has little left to do before it commits.
  package func copyAllButLastPage() throws {
    let pages = sqlite3_backup_remaining(handle) - 1
    if pages > 0 { try step(pages) }
  }

  /// Copies the remaining pages, and commits.
  package func finish() throws {
    try step(-1)
    let code = sqlite3_backup_finish(handle)
    handle = nil
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// Rolls the copy back, unless it is finished.
  package func abandon() {
    guard let handle else { return }
    sqlite3_backup_finish(handle)
    self.handle = nil
  }

  private func step(_ pages: Int32) throws {
    let code = sqlite3_backup_step(handle, pages)
    guard code == SQLITE_OK || code == SQLITE_DONE else {
      let failure = error(code)
      abandon()
      throw failure
    }
  }

  private func error(_ code: Int32) -> DatabaseError {
    DatabaseError(
      resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errstr(code)))
  }
}
