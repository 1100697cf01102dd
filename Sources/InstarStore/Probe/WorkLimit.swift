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
  private let isOver = Mutex(false)
  private let ended = DispatchSemaphore(value: 0)

  /// The pause before the connection is interrupted again: an interrupt between two statements has no effect.
  private static let repetitionSeconds = 0.005

  /// Starts counting for the calling thread.
  ///
  /// - Parameter connection: Must stay open until `end()` has been called.
  init(of connection: OpaquePointer?, processorSeconds: Double) {
    var clock = clockid_t()
    guard let connection, pthread_getcpuclockid(pthread_self(), &clock) == 0 else { return }
    let ownClock = clock
    let end = Self.seconds(of: ownClock) + processorSeconds
    nonisolated(unsafe) let target = connection
    let watch = Thread { [self] in
      var pause = processorSeconds
      while ended.wait(timeout: .now() + pause) == .timedOut {
        let left = end - Self.seconds(of: ownClock)
        if left <= 0 {
          isOver.withLock { if !$0 { sqlite3_interrupt(target) } }
        }
        pause = max(left, Self.repetitionSeconds)
      }
    }
    watch.stackSize = 64 << 10
    watch.start()
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

  /// Stops counting.
  func end() {
    isOver.withLock { $0 = true }
    ended.signal()
  }

  private static func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    guard clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
