internal import Foundation
internal import GRDBSQLite
internal import Synchronization

/// The thread that interrupts connections: one for all limits of the process, because to start a thread for each takes
/// longer than to read a small schema. It checks them at short intervals, so that no limit has to wake it. It ends when
/// it has found nothing to watch for two seconds.
enum WorkWatch {
  private struct State {
    var limits: [ObjectIdentifier: WorkLimit.Limited] = [:]
    var hasThread = false
    /// How often in a row the thread found nothing.
    var emptyLooks = 0
  }

  private static let state = Mutex(State())

  private static let intervalMicroseconds: UInt32 = 50_000
  /// The pause before a connection is interrupted again: an interrupt between two statements has no effect.
  private static let repetitionMicroseconds: UInt32 = 5000
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
      var pause: UInt32? = intervalMicroseconds
      while let microseconds = pause {
        usleep(microseconds)
        pause = look()
      }
    }
    thread.stackSize = 64 << 10
    thread.start()
  }

  /// Interrupts the connections whose time is over.
  ///
  /// - Returns: When to do it again; `nil` where the thread is to end.
  private static func look() -> UInt32? {
    state.withLock { state in
      // Under the lock: a connection is not closed before its limit has ended.
      let over = state.limits.values.filter(\.isOver)
      for limit in over { sqlite3_interrupt(OpaquePointer(bitPattern: limit.connection)) }
      state.emptyLooks = state.limits.isEmpty ? state.emptyLooks + 1 : 0
      if state.emptyLooks < emptyLookLimit {
        return over.isEmpty ? intervalMicroseconds : repetitionMicroseconds
      }
      state.emptyLooks = 0
      state.hasThread = false
      return nil
    }
  }

  static func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
