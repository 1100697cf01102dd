internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The rows of one statement, read without copying: a check reads every row of a store.
///
/// For probes and checks, which work on a GRDB `Database`: a reader has no parameters, and throws the database's error,
/// whose result code decides what is known of the store. Contexts and the code of plans use `SQLStatement`.
final class StatementReader {
  private let statement: OpaquePointer
  private let connection: OpaquePointer
  /// Where the connection keeps the statement for its next reader.
  private var kept: Statement?

  init(_ db: Database, _ sql: String) throws {
    var prepared: OpaquePointer?
    guard let connection = db.sqliteConnection,
      sqlite3_prepare_v2(connection, sql, -1, &prepared, nil) == SQLITE_OK, let prepared
    else { throw Self.error(of: db.sqliteConnection) }
    statement = prepared
    self.connection = connection
  }

  /// Reads a statement that the connection keeps prepared, for SQL that is read often. One reader at a time.
  init(keptBy db: Database, _ sql: String) throws {
    let kept = try db.cachedStatement(sql: sql)
    guard let connection = db.sqliteConnection else { throw Self.error(of: nil) }
    statement = kept.sqliteStatement
    self.connection = connection
    self.kept = kept
  }

  /// Takes over a statement that was prepared on this connection.
  init(_ statement: OpaquePointer, of connection: OpaquePointer) {
    self.statement = statement
    self.connection = connection
  }

  deinit {
    if kept == nil { sqlite3_finalize(statement) } else { sqlite3_reset(statement) }
  }

  /// Has C code step through all rows.
  ///
  /// - Parameter scan: Returns SQLite's result code.
  /// - Throws: The database's error.
  func scan(_ scan: (OpaquePointer) -> Int32) throws {
    let code = scan(statement)
    guard code != SQLITE_DONE else { return }
    throw code == SQLITE_NOMEM
      ? DatabaseError(resultCode: .SQLITE_NOMEM) : Self.error(of: connection)
  }

  /// Steps to the next row. Returns `false` after the last one.
  func next() throws -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: true
    case SQLITE_DONE: false
    default: throw Self.error(of: connection)
    }
  }

  var columnCount: Int { Int(sqlite3_column_count(statement)) }

  func integer(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

  /// `nil` where the value is not a text.
  func text(_ column: Int) -> String? {
    withValue(column) { value in
      guard case .text(let bytes) = value else { return nil }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// The bytes of a blob or a text; `nil` for another value.
  func data(_ column: Int) -> Data? {
    withValue(column) { value in
      switch value {
      case .text(let bytes), .blob(let bytes): Data(bytes)
      default: nil
      }
    }
  }

  /// Calls `body` with a value of the current row. Bytes are valid until it returns.
  func withValue<T>(_ column: Int, _ body: (RowValue) -> T) -> T {
    let index = Int32(column)
    switch sqlite3_column_type(statement, index) {
    case SQLITE_INTEGER: return body(.integer(sqlite3_column_int64(statement, index)))
    case SQLITE_FLOAT: return body(RowValue(sqlite3_column_double(statement, index)))
    case SQLITE_TEXT:
      // The text first: SQLite then counts the bytes of what it returned.
      let start = sqlite3_column_text(statement, index)
      return body(.text(bytes(start, index)))
    case SQLITE_BLOB: return body(.blob(bytes(sqlite3_column_blob(statement, index), index)))
    default: return body(.null)
    }
  }

  private func bytes(_ start: UnsafeRawPointer?, _ index: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, index)))
  }

  static func error(of connection: OpaquePointer?) -> DatabaseError {
    DatabaseError(
      resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
      message: String(cString: sqlite3_errmsg(connection)))
  }
}

/// A value of a row.
enum RowValue {
  case null
  case integer(Int64)
  /// Not a whole number: SQLite stores a whole one as an integer where it can, and indexes and tables may differ in
  /// that.
  case real(Double)
  case text(UnsafeRawBufferPointer)
  case blob(UnsafeRawBufferPointer)

  init(_ number: Double) {
    self = Int64(exactly: number).map { .integer($0) } ?? .real(number)
  }
}
