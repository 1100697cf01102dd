internal import InstarSchema
internal import CDatabase
internal import Foundation
internal import Synchronization

/// The processor time that the statements of this process may use for one request about one store.
///
/// `WorkLimit` ends reading a schema after tenths of a second. The budget covers everything else that a keeper does
/// with a store: counting rows, checks, verification, recovery. When it is used up, SQLite fails with
/// `SQLITE_INTERRUPT`. One SQL function that does not end cannot be interrupted; then the process exits with the status
/// given to `enforce`.
///
/// Without `enforce`, as in an app, nothing is limited.
package enum WorkBudget {
  private static let baseSeconds = 10.0
  private static let secondsPerMiB = 1.0
  private static let graceSeconds = 2.0

  /// The status to exit with; `nil` without `enforce`.
  private static let exitStatus = Mutex<Int32?>(nil)

  /// Limits this process from now on. For a process that works on one store at a time and may end itself.
  package static func enforce(exitStatus status: Int32) {
    exitStatus.withLock { $0 = status }
  }

  /// Calls `body` with a budget for the size of the store and its log.
  ///
  /// - Parameter others: The bytes that the work reads besides.
  package static func within<T, Failure: Error>(
    store: String, others: Int64 = 0, _ body: () throws(Failure) -> T
  ) throws(Failure) -> T {
    try within(mebibytes: mebibytes(of: store) + Double(others >> 20), body)
  }

  /// Calls `body` with a budget for reading this number of bytes.
  package static func within<T, Failure: Error>(
    bytes: Int64, _ body: () throws(Failure) -> T
  ) throws(Failure) -> T {
    try within(mebibytes: Double(bytes >> 20), body)
  }

  private static func within<T, Failure: Error>(
    mebibytes: Double, _ body: () throws(Failure) -> T
  ) throws(Failure) -> T {
    begin(baseSeconds + secondsPerMiB * mebibytes)
    defer { _ = instar_budget_end() }
    return try body()
  }

  /// Calls `body`, which works on no store, without using up the budget.
  package static func paused<T, Failure: Error>(
    _ body: () throws(Failure) -> T
  ) throws(Failure) -> T {
    let left = instar_budget_end()
    defer { if left != 0 { begin(max(left, 0)) } }
    return try body()
  }

  /// Limits each step of a statement on the clone in a process that also runs a plugin. The plugin's own code may take
  /// as long as its stage.
  package static func limitSteps(clone: String, exitStatus status: Int32) {
    // If it fails, the time limit of the stage remains.
    _ = instar_step_limit(
      Int32(baseSeconds + secondsPerMiB * mebibytes(of: clone)), Int32(graceSeconds), status)
  }

  private static func begin(_ seconds: Double) {
    guard let status = exitStatus.withLock({ $0 }) else { return }
    instar_budget_begin(seconds, graceSeconds, status)
  }

  private static func mebibytes(of store: String) -> Double {
    [store, SideFile.log.path(of: store)].reduce(0) { sum, file in
      sum + Double((stat(of: file)?.st_size ?? 0) >> 20)
    }
  }
}
