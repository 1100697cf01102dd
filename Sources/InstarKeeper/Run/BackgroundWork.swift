internal import Dispatch
internal import InstarLinux
internal import Synchronization

/// Work on a thread of its own, whose result another thread waits for.
///
/// Small work is done by whoever first waits for it: a thread takes longer to start, and the processors have other runs
/// to work on. So is work for which no thread can be started.
final class BackgroundWork<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)
  /// What is left for whoever waits first.
  private let rest = Mutex<(@Sendable () throws -> Value)?>(nil)

  /// Starts the work, unless it is small.
  ///
  /// - Parameter stackBytes: The size of the thread's stack. SQLite's parser recurses.
  init(
    isSmall: Bool = false, stackBytes: Int = 8 << 20, _ body: @escaping @Sendable () throws -> Value
  ) {
    if !isSmall {
      let reason = startThread(named: "instar-work", stackBytes: stackBytes) { [self] in
        perform(body)
      }
      if reason == 0 { return }
    }
    rest.withLock { $0 = body }
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
