internal import Dispatch
internal import Foundation
internal import Synchronization

/// Work on a thread of its own, whose result another thread waits for.
final class BackgroundWork<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)
  /// SQLite's parser recurses.
  private static var stackBytes: Int { 8 << 20 }

  /// Starts the work.
  init(_ body: @escaping @Sendable () throws -> Value) {
    let thread = Thread { [self] in
      let made = Result { try body() }
      result.withLock { $0 = made }
      isDone.signal()
    }
    thread.stackSize = Self.stackBytes
    thread.start()
  }

  /// Waits for the end of the work. May be called again.
  ///
  /// - Throws: The error of the work.
  func wait() throws -> Value {
    isDone.wait()
    // For whoever waits next.
    isDone.signal()
    return try result.withLock { result in
      guard let result else { throw CancellationError() }
      return try result.get()
    }
  }

  /// Waits for the end of the work, and returns its error; `nil` where it succeeded.
  func failure() -> (any Error)? {
    do {
      _ = try wait()
      return nil
    } catch {
      return error
    }
  }
}
