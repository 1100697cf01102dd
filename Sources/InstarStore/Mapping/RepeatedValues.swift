internal import CDatabase
internal import GRDB
internal import GRDBSQLite

/// Finds out by hashes whether values may repeat.
enum RepeatedValues {
  /// The most rows whose hashes are kept: they take at most 48 MiB. SQL sorts more rows in files.
  private static let rowLimit = 3 << 20

  /// Whether two rows of a query may have equal values in all columns. `false` is certain under any collation of
  /// SQLite; NULL counts as equal to NULL.
  ///
  /// - Throws: The database's error.
  static func mayRepeat(_ db: Database, _ query: String) throws -> Bool {
    guard try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8" else { return true }
    var mayRepeat: Int32 = 0
    let keys = (0..<2).map { _ in UInt64.random(in: 1 ... .max) | 1 }
    let statement = try db.makeStatement(sql: query)
    let code = withExtendedLifetime(statement) {
      instar_may_repeat(statement.sqliteStatement, rowLimit, keys, &mayRepeat)
    }
    guard code == SQLITE_DONE else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage, sql: query)
    }
    return mayRepeat != 0
  }
}
