import Foundation
public import InstarSchema
import Synchronization

/// What instar-coordinator reports, one line an entry, for the journal.
public final class CoordinatorLog: Sendable {
  /// As of syslog(3).
  public enum Priority: Int, Sendable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
  }

  /// One entry.
  public struct Entry: Sendable, Hashable {
    /// How important it is.
    public var priority: Priority
    /// One line; an error has several.
    public var message: String
    /// The plan that it is about.
    public var plan: String?
    /// The code of the error that it is about.
    public var code: InstarError.Code?
  }

  private let output: @Sendable (Entry) -> Void
  /// The last error of each kind. What repeats each second is reported once, until it is over.
  private let noted = Mutex<[InstarError.Code: InstarError]>([:])

  /// - Parameter output: Writes an entry.
  public init(_ output: @escaping @Sendable (Entry) -> Void) { self.output = output }

  /// Reports an event.
  func write(_ priority: Priority, _ message: String, plan: String? = nil) {
    output(Entry(priority: priority, message: message, plan: plan))
  }

  /// Reports an error, unless the same one was the last of its kind.
  func note(_ error: InstarError) {
    let isNew = noted.withLock { noted in
      // The cause may differ each time: which member of etcd answered how.
      let isNew = noted[error.code]?.what != error.what
      noted[error.code] = error
      return isNew
    }
    guard isNew else { return }
    output(Entry(priority: .error, message: error.description, code: error.code))
  }

  /// Takes in that errors of a kind are over: the next one is reported again.
  func forget(_ code: InstarError.Code) { noted.withLock { $0[code] = nil } }
}
