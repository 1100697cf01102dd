package import InstarSchema
import Synchronization

/// A getter that was asked for a value where there is none, of a type of which no placeholder can be made: a class, or an
/// enum with associated values, whose decoding accepts nothing that is empty.
///
/// A getter can neither throw nor return without a value, so that the code which reads cannot go on. Who runs code of others
/// in a process of its own says here how it gives the error on before that process ends.
package enum UnansweredRead {
  private static let reporter = Mutex<(@Sendable (InstarError) -> Void)?>(nil)

  /// Has `report` called with the error, which names model and property, before the process ends.
  package static func reporting(to report: @escaping @Sendable (InstarError) -> Void) {
    reporter.withLock { $0 = report }
  }

  static func end(with error: InstarError) -> Never {
    reporter.withLock { $0 }?(error)
    fatalError(error.description)
  }
}
