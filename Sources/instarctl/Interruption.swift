import Dispatch
import Foundation
import Synchronization

/// Handles Ctrl-C and `kill` while work is going on that must end in order.
///
/// Once it exists, SIGINT and SIGTERM no longer end the process; each calls the action.
final class Interruption: Sendable {
  private let happened = Mutex(false)
  /// Set once, in `init`, and only kept alive: a source stops when it is released.
  nonisolated(unsafe) private let sources: [any DispatchSourceSignal]

  init(action: @escaping @Sendable () -> Void) {
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      return DispatchSource.makeSignalSource(signal: number, queue: .global())
    }
    for source in sources {
      source.setEventHandler { [weak self] in
        guard let self else { return }
        self.happened.withLock { $0 = true }
        action()
      }
      source.resume()
    }
  }

  var hasHappened: Bool { happened.withLock { $0 } }
}
