internal import Dispatch
internal import Foundation
internal import Synchronization

/// Work on a thread of its own, whose result another thread waits for.
///
/// Small work is done by whoever first waits for it: a thread takes longer to start, and the processors have other runs
/// to work on.
final class BackgroundWork<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)
  /// What is left for whoever waits first.
  private let rest = Mutex<(@Sendable () throws -> Value)?>(nil)
  /// SQLite's parser recurses.
  private static var stackBytes: Int { 8 << 20 }

  /// Starts the work, unless it is small.
  init(isSmall: Bool = false, _ body: @escaping @Sendable () throws -> Value) {
    if isSmall {
      rest.withLock { $0 = body }
      return
    }
    let thread = Thread { [self] in perform(body) }
    thread.stackSize = Self.stackBytes
    thread.start()
  }

  private func perform(_ body: () throws -> Value) {
    let made = Result { try body() }
    result.withLock { $0 = made }
    isDone.signal()
  }

  /// Waits for the end of the work. May be called again.
  ///
  /// - Throws: The error of the work.
  func wait() throws -> Value {
    let rest = rest.withLock { rest in
      defer { rest = nil }
      return rest
    }
    if let rest { perform(rest) }
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
