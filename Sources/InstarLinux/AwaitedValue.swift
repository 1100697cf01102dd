import Dispatch
import InstarSchema
import Synchronization

/// A value that one thread gives, once, and another thread waits for, once.
package final class AwaitedValue<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  private let isGiven = DispatchSemaphore(value: 0)

  package init() {}

  package func give(_ value: Value) {
    self.value.withLock { $0 = value }
    isGiven.signal()
  }

  /// Waits for the value, however long that takes.
  package func wait() -> Value {
    while true {
      isGiven.wait()
      if let value = value.withLock(\.self) { return value }
    }
  }

  /// - Returns: The value; `nil` where it is not given in time.
  package func wait(within limit: Duration) -> Value? {
    guard isGiven.wait(timeout: .now() + limit.inSeconds) == .success else { return nil }
    return value.withLock(\.self)
  }
}
