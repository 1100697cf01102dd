public import Foundation
internal import CDatabase
internal import GRDB
internal import GRDBSQLite
public import InstarSchema

/// A prepared statement, stepped by hand.
///
/// GRDB opens the connection. Rows are read and bound through SQLite's own functions, because a row of a stage must
/// cost no more than its values. Belongs to the connection that prepared it, and to the thread that holds it.
///
/// For contexts and the code of plans, which work through an `SQLSession`: a statement has parameters, copies the
/// values that it reads, announces each step to the limit of steps (`WorkBudget`), and throws an `InstarError` with its
/// SQL. Probes and checks of a store, which have none of that, read with `StatementReader`.
public final class SQLStatement {
  private let statement: OpaquePointer
  private let connection: OpaquePointer
  /// The text that was compiled.
  public let sql: String

  init(_ sql: String, connection: OpaquePointer) throws(InstarError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else {
      throw Self.error(of: connection, sql: sql)
    }
    statement = prepared
    self.connection = connection
    self.sql = sql
  }

  deinit { sqlite3_finalize(statement) }

  /// Resets the statement, with all parameters NULL.
  public func reset() {
    sqlite3_reset(statement)
    sqlite3_clear_bindings(statement)
  }

  /// Steps to the next row. Returns `false` after the last one; the statement is then reset and holds no lock.
  public func step() throws(InstarError) -> Bool {
    instar_step_begin()
    let code = sqlite3_step(statement)
    instar_step_end()
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      sqlite3_reset(statement)
      return false
    default:
      let error = Self.error(of: connection, sql: sql)
      sqlite3_reset(statement)
      throw error
    }
  }

  /// Calls a function of C that steps through some rows: one step for the limit of steps (see `WorkBudget`). At the end
  /// of the rows, and after an error, the statement is reset.
  ///
  /// - Returns: Whether there may be more rows.
  func step(_ function: (OpaquePointer) -> Int32) throws(InstarError) -> Bool {
    instar_step_begin()
    let code = function(statement)
    instar_step_end()
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      sqlite3_reset(statement)
      return false
    case SQLITE_NOMEM:
      sqlite3_reset(statement)
      throw InstarError(
        .sqlFailed, "cannot run a statement",
        cause: "out of memory - while executing `\(sql)`")
    default:
      let error = Self.error(of: connection, sql: sql)
      sqlite3_reset(statement)
      throw error
    }
  }

  /// Runs a statement without results and resets it.
  public func run() throws(InstarError) {
    while try step() {}
    reset()
  }

  // MARK: Parameters, counted from 1

  /// Binds a number to a parameter. Parameters count from 1.
  public func bind(_ value: Int64, at index: Int32) { sqlite3_bind_int64(statement, index, value) }
  /// Binds a number with a fraction to a parameter.
  public func bind(_ value: Double, at index: Int32) {
    sqlite3_bind_double(statement, index, value)
  }
  /// Binds NULL to a parameter.
  public func bindNull(at index: Int32) { sqlite3_bind_null(statement, index) }

  /// Binds a text to a parameter. SQLite copies it.
  public func bind(_ value: String, at index: Int32) {
    var value = value
    value.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        _ = sqlite3_bind_text64(
          statement, index, characters.baseAddress ?? UnsafePointer(bitPattern: 1),
          UInt64(characters.count), Self.transient, UInt8(SQLITE_UTF8))
      }
    }
  }

  /// Binds bytes to a parameter, also none: an empty blob is not NULL. SQLite copies them.
  public func bind(_ value: Data, at index: Int32) {
    guard !value.isEmpty else {
      sqlite3_bind_zeroblob(statement, index, 0)
      return
    }
    value.withUnsafeBytes { bytes in
      _ = sqlite3_bind_blob64(
        statement, index, bytes.baseAddress, UInt64(bytes.count), Self.transient)
    }
  }

  /// The number of parameters.
  package var parameterCount: Int { Int(sqlite3_bind_parameter_count(statement)) }

  /// The number of columns of each row; 0 for a statement without results.
  package var columnCount: Int32 { sqlite3_column_count(statement) }

  // MARK: Columns of the current row, counted from 0

  /// How SQLite stores a value.
  @frozen
  public enum StorageClass {
    case null, integer, real, text, blob
  }

  /// Returns how the value of a column is stored in the current row. Columns count from 0.
  public func storageClass(at index: Int32) -> StorageClass {
    switch sqlite3_column_type(statement, index) {
    case SQLITE_INTEGER: .integer
    case SQLITE_FLOAT: .real
    case SQLITE_TEXT: .text
    case SQLITE_BLOB: .blob
    default: .null
    }
  }

  /// A value as SQLite stores it.
  @frozen
  public enum Value {
    case null, integer(Int64), real(Double), text(String), blob(Data)
  }

  /// Returns the value of a column in the current row. Invalid UTF-8 is repaired.
  ///
  /// Each of SQLite's functions for a column looks the value up, so this one does that once. SQLite allows it where no
  /// other thread uses the connection.
  public func value(at index: Int32) -> Value {
    let value = sqlite3_column_value(statement, index)
    switch sqlite3_value_type(value) {
    case SQLITE_INTEGER: return .integer(sqlite3_value_int64(value))
    case SQLITE_FLOAT: return .real(sqlite3_value_double(value))
    case SQLITE_TEXT:
      return .text(Self.text(sqlite3_value_text(value), sqlite3_value_bytes(value)))
    case SQLITE_BLOB:
      return .blob(Self.data(sqlite3_value_blob(value), sqlite3_value_bytes(value)))
    default: return .null
    }
  }

  private static func text(_ start: UnsafePointer<UInt8>?, _ count: Int32) -> String {
    guard let start else { return "" }
    return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
  }

  private static func data(_ start: UnsafeRawPointer?, _ count: Int32) -> Data {
    guard let start else { return Data() }
    return Data(bytes: start, count: Int(count))
  }

  /// Returns a column of the current row as a number; 0 for NULL and for what is not a number.
  public func integer(at index: Int32) -> Int64 { sqlite3_column_int64(statement, index) }
  /// Returns a column of the current row as a number with a fraction; 0 for NULL and for what is not a number.
  public func real(at index: Int32) -> Double { sqlite3_column_double(statement, index) }

  /// Returns a column of the current row as text; empty for NULL. Invalid UTF-8 is repaired.
  public func text(at index: Int32) -> String {
    Self.text(sqlite3_column_text(statement, index), sqlite3_column_bytes(statement, index))
  }

  /// Returns a copy of a column's bytes in the current row; empty for NULL.
  public func data(at index: Int32) -> Data {
    Self.data(sqlite3_column_blob(statement, index), sqlite3_column_bytes(statement, index))
  }

  /// SQLite copies the value before the call returns.
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  static func error(of connection: OpaquePointer, sql: String) -> InstarError {
    let code = sqlite3_extended_errcode(connection)
    let message = String(cString: sqlite3_errmsg(connection))
    if code & 0xFF == SQLITE_READONLY {
      return InstarError(
        .unreadableStore, "cannot write the store", cause: "\(message) (SQLite error \(code))",
        next: "open it with a configuration that allows saving, as a user who may write the file")
    }
    if code & 0xFF == SQLITE_INTERRUPT {
      return .overBudget("cannot run a statement", statement: sql)
    }
    if code & 0xFF == SQLITE_FULL {
      return InstarError(
        .noSpace, "cannot run a statement",
        cause: "SQLite error \(code): \(message) - while executing `\(sql)`",
        next: InstarError.adviceOnSpaceForSQLite())
    }
    if code & 0xFF == SQLITE_IOERR {
      return InstarError(
        .unreadableStore, "cannot run a statement",
        cause: "SQLite error \(code): \(message) - while executing `\(sql)`",
        next: InstarError.adviceOnDisk)
    }
    return InstarError(
      code & 0xFF == SQLITE_BUSY || code & 0xFF == SQLITE_LOCKED ? .busyStore : .sqlFailed,
      "cannot run a statement",
      cause: "\(InstarError.resultCodePrefix)\(code): \(message) - while executing `\(sql)`")
  }
}

extension InstarError {
  /// Whether SQLite refused a value that repeats in a unique index or a primary key.
  package var isUniqueViolation: Bool {
    let code = resultCode
    return code == .SQLITE_CONSTRAINT_UNIQUE || code == .SQLITE_CONSTRAINT_PRIMARYKEY
  }

  /// Whether a constraint of a table refused a value.
  package var isConstraintViolation: Bool {
    resultCode.map { $0.rawValue & 0xFF == SQLITE_CONSTRAINT } ?? false
  }

  /// SQLite's code of a failed statement, which its cause begins with.
  private var resultCode: ResultCode? {
    guard code == .sqlFailed, cause.hasPrefix(Self.resultCodePrefix) else { return nil }
    let digits = cause.dropFirst(Self.resultCodePrefix.count).prefix { $0 != ":" }
    return Int32(digits).map { ResultCode(rawValue: $0) }
  }

  fileprivate static let resultCodePrefix = "SQLite error "
}
