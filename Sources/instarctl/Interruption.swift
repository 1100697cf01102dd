import Dispatch
import Foundation
import Synchronization

/// Ctrl-C and `kill` while something runs that has to be ended in order.
///
/// From its making on the process is no longer ended by SIGINT and SIGTERM; each of them calls the
/// action.
final class Interruption: Sendable {
  private let happened = Mutex(false)
  /// Set once, in `init`, and only kept alive: a source that nobody holds stops.
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
