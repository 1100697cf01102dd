/// The state of a store in relation to a plan.
@frozen
public enum StoreState: String, Sendable, Codable, Hashable, CaseIterable {
  /// At the plan's last version.
  case current
  /// At an earlier version of the plan.
  case behind
  /// At a later version than the last one of the plan.
  case ahead
  /// Declares no version of the plan, and has the structure of one or more of them.
  case unversioned
  /// At no version of the plan, or no plan was given.
  case unknown
  /// Not a SQLite database: empty, or a file of another kind.
  case notAStore
  /// Damaged: cut short, or refused by SQLite's check.
  case corrupt
  /// Looks like an encrypted database.
  case encrypted
  /// Locked by another process, or with a transaction that only its app can undo.
  case busy
  /// Reading it is not permitted, failed, or did not end within its time limit.
  case unreadable

  /// Whether no plugin can make anything of the store: its content, or a person, must change first.
  public var isUnusable: Bool {
    switch self {
    case .notAStore, .corrupt, .encrypted, .unreadable: true
    case .current, .behind, .ahead, .unversioned, .unknown, .busy: false
    }
  }
}
