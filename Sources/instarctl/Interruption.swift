import Dispatch
import InstarLinux
import InstarSchema

/// Handles Ctrl-C, `kill` and the end of the terminal while work is going on that must end in order.
///
/// Once it exists, the signals of `Cancellation` no longer end the process; each calls the action, also one that comes
/// at once.
final class Interruption: Sendable {
  /// Set once, in `init`, and only kept alive: a source stops when it is released.
  nonisolated(unsafe) private let source: any DispatchSourceRead

  /// - Throws: `internalError` where the process has no descriptor left.
  init(action: @escaping @Sendable () -> Void) throws(InstarError) {
    // A signal source of Dispatch misses signals until its own thread has registered it.
    source = DispatchSource.makeReadSource(
      fileDescriptor: try Cancellation.descriptor(), queue: .global())
    source.setEventHandler {
      Cancellation.acknowledge()
      action()
    }
    Cancellation.observe()
    source.resume()
  }

  var hasHappened: Bool { Cancellation.isRequested }
}
