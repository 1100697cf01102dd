package import Foundation
internal import CDatabase
internal import GRDB
internal import GRDBSQLite
package import InstarSchema
import Synchronization

/// A function of a plan's code that a statement calls for each row, such as `instar_set_Note_words(Z_PK, ZBODY)`.
///
/// Its result follows from its arguments alone. No view, trigger or index may use it. The first error that it throws is
/// kept, because SQLite passes only texts on.
package final class RowFunction: Sendable {
  package let name: String
  private let argumentCount: Int32
  private let body: @Sendable (FunctionContext) throws -> Void
  private let error = Mutex<(any Error)?>(nil)

  /// - Parameter body: Reads the arguments and sets the result. Without one it is NULL.
  package init(
    _ name: String, argumentCount: Int, body: @escaping @Sendable (FunctionContext) throws -> Void
  ) {
    self.name = name
    self.argumentCount = Int32(argumentCount)
    self.body = body
  }

  /// The first error that the function threw.
  package var firstError: (any Error)? { error.withLock { $0 } }

  fileprivate func call(_ call: FunctionContext) {
    // The limit of time for a step is SQLite's. The function has that of the stage.
    instar_step_end()
    defer { instar_step_begin() }
    do {
      try body(call)
    } catch {
      fail(call, error)
    }
  }

  fileprivate func fail(_ call: FunctionContext, _ error: any Error) {
    self.error.withLock { first in if first == nil { first = error } }
    sqlite3_result_error(call.context, "\(name) threw", -1)
  }

  fileprivate func register(on connection: OpaquePointer, _ meter: WorkMeter?) -> Int32 {
    sqlite3_create_function_v2(
      connection, name, argumentCount, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
      Unmanaged.passRetained(RegisteredFunction(self, meter)).toOpaque(),
      { context, _, values in
        guard let context, let values, let function = sqlite3_user_data(context) else { return }
        Unmanaged<RegisteredFunction>.fromOpaque(function).takeUnretainedValue()
          .call(FunctionContext(context: context, values: values))
      }, nil, nil,
      { function in
        if let function { Unmanaged<RegisteredFunction>.fromOpaque(function).release() }
      })
  }
}

/// A function of one connection, which ends its statement when the run is canceled.
private final class RegisteredFunction {
  private let function: RowFunction
  /// The function stays registered after the stage, whose closures the meter has.
  private weak var meter: WorkMeter?
  private var callCount = 0
  /// The question costs as much as a short function.
  private static let callsPerQuestion = 64

  init(_ function: RowFunction, _ meter: WorkMeter?) {
    self.function = function
    self.meter = meter
  }

  func call(_ call: FunctionContext) {
    callCount &+= 1
    if callCount.isMultiple(of: Self.callsPerQuestion), meter?.isCanceled == true {
      return function.fail(call, CancellationError())
    }
    function.call(call)
  }
}

extension SQLSession {
  /// Lets the statements of this connection call a function, in place of an earlier one of the same name. It throws
  /// `CancellationError` after the run is canceled.
  package func register(_ function: RowFunction) throws(InstarError) {
    let code = database.sqliteConnection.map { function.register(on: $0, meter) } ?? SQLITE_MISUSE
    guard code == SQLITE_OK else {
      throw InstarError(
        .sqlFailed, "cannot register function '\(function.name)'", cause: "SQLite error \(code)",
        next: "give the transform fewer sources")
    }
  }
}

/// One call of a `RowFunction`: its arguments, counted from 0, and its result. Valid until the function returns.
package struct FunctionContext {
  fileprivate let context: OpaquePointer
  fileprivate let values: UnsafeMutablePointer<OpaquePointer?>

  package func storageClass(at index: Int) -> SQLStatement.StorageClass {
    switch sqlite3_value_type(values[index]) {
    case SQLITE_INTEGER: .integer
    case SQLITE_FLOAT: .real
    case SQLITE_TEXT: .text
    case SQLITE_BLOB: .blob
    default: .null
    }
  }

  package func integer(at index: Int) -> Int64 { sqlite3_value_int64(values[index]) }
  package func real(at index: Int) -> Double { sqlite3_value_double(values[index]) }

  /// Returns a text without a copy: the bytes are valid until the function returns.
  package func utf8(at index: Int) -> UnsafeBufferPointer<UInt8> {
    let start = sqlite3_value_text(values[index])
    return UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(values[index])))
  }

  /// Returns a text. Invalid UTF-8 is repaired.
  package func text(at index: Int) -> String { String(decoding: utf8(at: index), as: UTF8.self) }

  package func data(at index: Int) -> Data {
    guard let start = sqlite3_value_blob(values[index]) else { return Data() }
    return Data(bytes: start, count: Int(sqlite3_value_bytes(values[index])))
  }

  package func set(_ value: Int64) { sqlite3_result_int64(context, value) }
  package func set(_ value: Double) { sqlite3_result_double(context, value) }

  package func set(_ value: String) {
    var value = value
    value.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        sqlite3_result_text64(
          context, characters.baseAddress ?? UnsafePointer(bitPattern: 1),
          UInt64(characters.count), Self.transient, UInt8(SQLITE_UTF8))
      }
    }
  }

  package func set(_ value: Data) {
    guard !value.isEmpty else {
      _ = sqlite3_result_zeroblob64(context, 0)
      return
    }
    value.withUnsafeBytes { bytes in
      sqlite3_result_blob64(context, bytes.baseAddress, UInt64(bytes.count), Self.transient)
    }
  }

  /// SQLite copies the value before the call returns.
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
