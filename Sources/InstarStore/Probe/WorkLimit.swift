internal import Foundation
internal import GRDB

/// Interrupts a connection once its thread has used a certain processor time.
///
/// A store can be built so that reading it practically never ends: by a view or expression that does not end, or a tree
/// whose pages form a cycle. The limit is processor time, not elapsed time, because a slow disk or a busy machine is
/// not the store's fault.
///
/// SQLite then fails with `SQLITE_INTERRUPT`. Invariant: after `end()` the connection is not used any more.
final class WorkLimit: Sendable {
  /// What the watch needs to know of a limit.
  struct Limited {
    /// The address of the connection, which stays open until `end()` has been called.
    var connection: UInt
    /// The processor clock of the limited thread.
    var clock: clockid_t
    /// The time of that clock at which the connection is interrupted.
    var end: Double

    /// Whether the time is used up.
    var isOver: Bool { WorkWatch.seconds(of: clock) >= end }
  }

  /// `nil` where the thread has no clock.
  private let limited: Limited?

  /// Starts counting for the calling thread.
  ///
  /// - Parameter connection: Must stay open until `end()` has been called.
  init(of connection: OpaquePointer?, processorSeconds: Double) {
    var clock = clockid_t()
    guard let connection, pthread_getcpuclockid(pthread_self(), &clock) == 0 else {
      limited = nil
      return
    }
    let limited = Limited(
      connection: UInt(bitPattern: connection), clock: clock,
      end: WorkWatch.seconds(of: clock) + processorSeconds)
    self.limited = limited
    WorkWatch.add(limited, of: ObjectIdentifier(self))
  }

  /// Whether the time is used up. SQLite 3.40 compiles a statement to its end, and forgets an interrupt of that time.
  var isOver: Bool { limited?.isOver ?? false }

  /// The time limit for reading a store's schema: some tenths of a second, and more for a large store. 10,000 tables, a
  /// file of 40 MB, need a part of it.
  static func seconds(for file: StoreFile) -> Double {
    0.4 + min(Double(file.allocatedBytes) / (20 * 1024 * 1024), 3)
  }

  /// Runs `body` and its statements within a processor time.
  static func within<T>(
    _ processorSeconds: Double, _ db: Database, _ body: () throws -> T
  ) rethrows -> T {
    let limit = WorkLimit(of: db.sqliteConnection, processorSeconds: processorSeconds)
    defer { limit.end() }
    return try body()
  }

  deinit { end() }

  /// Stops counting. May be called again.
  func end() { WorkWatch.remove(ObjectIdentifier(self)) }
}
