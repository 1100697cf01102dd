package import InstarSchema
import Synchronization

/// Ends the process when a getter has neither a value nor a placeholder. Only a class, or an enum with associated
/// values, whose decoding refuses everything empty has no placeholder.
///
/// A getter can neither throw nor return without a value, so the calling code cannot continue. This is the only fatal
/// error that a store's content can cause. A worker reports it to its keeper first.
package enum UnansweredRead {
  private static let reporter = Mutex<(@Sendable (InstarError) -> Void)?>(nil)

  /// Sets the function that is called with the error, which names model and property, before the process ends.
  package static func reporting(to report: @escaping @Sendable (InstarError) -> Void) {
    reporter.withLock { $0 = report }
  }

  static func end(with error: InstarError) -> Never {
    reporter.withLock { $0 }?(error)
    fatalError(error.description)
  }
}
