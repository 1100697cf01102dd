internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Interrupts a connection once its thread has used a certain processor time.
///
/// A store can be built so that reading it practically never ends: by a view or expression that does not end, or a tree
/// whose pages form a cycle. The limit is processor time, not elapsed time, because a slow disk or a busy machine is
/// not the store's fault.
///
/// SQLite then fails with `SQLITE_INTERRUPT`. Invariant: after `end()` the connection is not used any more.
final class WorkLimit: Sendable {
  /// What the watch needs to know of a limit.
  fileprivate struct Limited {
    /// The address of the connection, which stays open until `end()` has been called.
    var connection: UInt
    /// The processor clock of the limited thread.
    var clock: clockid_t
    /// The time of that clock at which the connection is interrupted.
    var end: Double
  }

  /// Starts counting for the calling thread.
  ///
  /// - Parameter connection: Must stay open until `end()` has been called.
  init(of connection: OpaquePointer?, processorSeconds: Double) {
    var clock = clockid_t()
    guard let connection, pthread_getcpuclockid(pthread_self(), &clock) == 0 else { return }
    WorkWatch.add(
      Limited(
        connection: UInt(bitPattern: connection), clock: clock,
        end: WorkWatch.seconds(of: clock) + processorSeconds),
      of: ObjectIdentifier(self))
  }

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

/// The thread that interrupts connections: one for all limits of the process, because to start a thread for each takes
/// longer than to read a small schema. It checks them at short intervals, so that no limit has to wake it. It ends when
/// it has found nothing to watch for two seconds.
private enum WorkWatch {
  private struct State {
    var limits: [ObjectIdentifier: WorkLimit.Limited] = [:]
    var hasThread = false
    /// How often in a row the thread found nothing.
    var emptyLooks = 0
  }

  private static let state = Mutex(State())

  /// Also the pause before a connection is interrupted again: an interrupt between two statements has no effect.
  private static let intervalMicroseconds: UInt32 = 50_000
  private static let emptyLookLimit = 40

  static func add(_ limit: WorkLimit.Limited, of key: ObjectIdentifier) {
    let hadThread = state.withLock { state in
      state.limits[key] = limit
      defer { state.hasThread = true }
      return state.hasThread
    }
    if !hadThread { startThread() }
  }

  static func remove(_ key: ObjectIdentifier) {
    state.withLock { $0.limits[key] = nil }
  }

  private static func startThread() {
    let thread = Thread {
      repeat { usleep(intervalMicroseconds) } while look()
    }
    thread.stackSize = 64 << 10
    thread.start()
  }

  /// Interrupts the connections whose time is over.
  ///
  /// - Returns: Whether to look again.
  private static func look() -> Bool {
    state.withLock { state in
      // Under the lock: a connection is not closed before its limit has ended.
      for limit in state.limits.values where seconds(of: limit.clock) >= limit.end {
        sqlite3_interrupt(OpaquePointer(bitPattern: limit.connection))
      }
      state.emptyLooks = state.limits.isEmpty ? state.emptyLooks + 1 : 0
      if state.emptyLooks < emptyLookLimit { return true }
      state.emptyLooks = 0
      state.hasThread = false
      return false
    }
  }

  static func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
