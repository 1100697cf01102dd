import InstarSchema
import Synchronization

/// What instar-coordinator reports: entries for the journal, and one line for `systemctl status`.
public final class CoordinatorLog: Sendable {
  /// One entry.
  public struct Entry: Sendable, Hashable {
    /// What happened.
    public var event: CoordinatorEvent
    /// One line; an error has several.
    public var message: String
    /// The other fields of the journal, such as `INSTAR_PLAN`.
    public var fields: [String: String]

    /// All fields of the journal.
    public var allFields: [String: String] {
      fields.merging([
        "MESSAGE": message, "MESSAGE_ID": event.messageID, "INSTAR_EVENT": event.rawValue,
        "PRIORITY": "\(event.priority.rawValue)",
      ]) { $1 }
    }
  }

  private struct State {
    /// What the errors that are not over are about, by event. An error that repeats each second is reported once.
    var lasting: [CoordinatorEvent: Set<String>] = [:]
    var status: String?
  }

  private let writeEntry: @Sendable (Entry) -> Void
  private let writeStatus: @Sendable (String) -> Void
  private let state = Mutex(State())
  /// How many errors of one event are reported until they are over. So somebody who writes documents cannot fill the
  /// journal.
  private static let errorLimit = 20

  /// - Parameters:
  ///   - writeEntry: Writes an entry.
  ///   - writeStatus: Takes the new line for `systemctl status`.
  public init(
    _ writeEntry: @escaping @Sendable (Entry) -> Void,
    status writeStatus: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.writeEntry = writeEntry
    self.writeStatus = writeStatus
  }

  /// Reports an event.
  func write(
    _ event: CoordinatorEvent, _ message: String, plan: String? = nil, wave: Int? = nil
  ) {
    var fields: [String: String] = [:]
    fields["INSTAR_PLAN"] = plan
    fields["INSTAR_WAVE"] = wave.map { "\($0)" }
    writeEntry(Entry(event: event, message: message, fields: fields))
  }

  /// Reports an error, unless it was reported and is not over.
  func note(_ event: CoordinatorEvent, _ error: InstarError, plan: String? = nil) {
    let isNew = state.withLock { state in
      let others = state.lasting[event] ?? []
      guard others.count < Self.errorLimit else { return false }
      // The cause may differ each time: which member of etcd answered how.
      return state.lasting[event, default: []].insert(error.what).inserted
    }
    guard isNew else { return }
    var fields = ["INSTAR_CODE": error.code.rawValue, "INSTAR_ERROR": error.description]
    fields["INSTAR_PLAN"] = plan
    writeEntry(Entry(event: event, message: error.description, fields: fields))
  }

  /// Forgets the errors of an event that are over: all but these. If one comes back, it is reported again.
  ///
  /// - Returns: whether there were others.
  @discardableResult
  func forget(_ event: CoordinatorEvent, but lasting: [InstarError] = []) -> Bool {
    let lasting = Set(lasting.map(\.what))
    return state.withLock { state in
      let others = state.lasting[event]?.subtracting(lasting).isEmpty == false
      state.lasting[event]?.formIntersection(lasting)
      return others
    }
  }

  /// Shows what the coordinator does now.
  func show(_ status: String) {
    let isNew = state.withLock { state in
      defer { state.status = status }
      return state.status != status
    }
    if isNew { writeStatus(status) }
  }
}
