internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Ends what a connection does once the thread that uses it has spent a certain processor time.
///
/// A store can be made so that reading it takes practically for ever: a view or an expression that
/// does not end, a tree whose pages lead to each other. Processor time, not time on the clock: a
/// slow disk or a busy machine is no fault of the store's.
///
/// What SQLite does then ends with `SQLITE_INTERRUPT`. Invariant: after `end()` the connection is not
/// touched any more.
final class WorkLimit: Sendable {
  private let isOver = Mutex(false)
  private let ended = DispatchSemaphore(value: 0)

  /// How long to wait before the connection is stopped once more: what is begun between two
  /// statements is not met by the first time.
  private static let repetitionSeconds = 0.005

  /// Begins to count for the calling thread.
  ///
  /// - Parameter connection: Stays open until `end()` has been called.
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

  /// What reading the schema of a store may take: some tenths of a second, and more for one that is
  /// really large. A schema of 10,000 tables, which is a file of 40 MB, takes a part of it.
  static func seconds(for file: StoreFile) -> Double {
    0.4 + min(Double(file.allocatedBytes) / (20 * 1024 * 1024), 3)
  }

  /// Runs `body`, and what it has the connection do, within so much processor time.
  static func within<T>(
    _ processorSeconds: Double, _ db: Database, _ body: () throws -> T
  ) rethrows -> T {
    let limit = WorkLimit(of: db.sqliteConnection, processorSeconds: processorSeconds)
    defer { limit.end() }
    return try body()
  }

  /// Ends the counting.
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
