/// The one error value: what went wrong, where, what state the store is in now, and what to do next.
///
/// Created where the cause is known, completed by callers with `about`, and shown as text, as JSON and in the journal.
public struct InstarError: Error, Sendable, Codable, Hashable {
  /// What kind of error it is, for programs.
  public var code: Code
  /// What could not be done, with its subject: "cannot migrate '/srv/a.store' from 1.0.0 to 2.0.0".
  public var what: String
  /// The path of the store; left out if the error is not about a store.
  public var store: String?
  /// The stage that was running, such as "1.0.0 → 1.1.0 (1 of 2), willMigrate".
  public var stage: String?
  /// Why: the fact, in lower case without a full stop.
  public var cause: String
  /// The state of the store now, such as "unchanged".
  public var state: String?
  /// What to do next: an imperative, with the command if there is one.
  public var next: String?
  /// The rows that are the cause; left out if the cause is not rows. `cause` names them too.
  public var rows: AffectedRows?
  /// Whether the store itself is proven to be damaged: its pages, its indexes or its length. Left out where it is not.
  ///
  /// The code does not tell: `corruptStore` is also that of rows that violate CHECK constraints, of a collation that
  /// only the app has, and of reading that takes too long. Such a store may be healthy. Errors about a clone or a
  /// backup have no proof.
  public var provesDamage: Bool?

  /// Creates an error. Callers complete it with `about(_:store:stage:state:next:)`.
  public init(
    _ code: Code, _ what: String, store: String? = nil, stage: String? = nil, cause: String,
    state: String? = nil, next: String? = nil, rows: AffectedRows? = nil
  ) {
    self.code = code
    self.what = what
    self.store = store
    self.stage = stage
    self.cause = cause
    self.state = state
    self.next = next
    self.rows = rows
  }
}

extension InstarError {
  /// The state of a store that may be at the old version or at the new one, until a recovery has read it.
  package static let inDoubt = "in doubt: at the old version or at the new one"

  /// The cause where SQLite did not get its lock.
  package static let lockedCause = "another process has locked the store"

  /// What to do then, where nobody knows which process it is.
  package static let adviceOnLock = "stop that process or wait until it closes the store"

  /// Whether only a recovery can find out what content the store has.
  package var isInDoubt: Bool { state?.hasPrefix(Self.inDoubt) == true }
}

extension InstarError {
  /// The error for statements that do not end: SQLite interrupted them, or their process was ended.
  ///
  /// - Parameter statement: The statement that ran; `nil` where nobody knows it.
  package static func overBudget(
    _ what: String, store: String? = nil, statement: String? = nil
  ) -> InstarError {
    let cause = "exceeded its limit of processor time"
    return InstarError(
      .timeLimit, what, store: store,
      cause: statement.map { "the statement \(cause) - while executing `\($0)`" }
        ?? "the SQL on the store \(cause)",
      next: (statement == nil
        ? "" : "let the statement read fewer rows, and end a recursive query with LIMIT; or ")
        + "look for a slow generated column, trigger, view, CHECK constraint or index: "
        + CommandText.schemaListing(of: store))
  }

  /// What to do where another process sent what this one cannot use.
  package static let adviceOnOtherVersion =
    "install the same version of all Instar packages, and run: systemctl restart instard"

  /// What to do where Instar's own work gave a wrong result, which it noticed.
  package static let adviceOnDefect =
    "report this message and the plan as a defect of Instar"
}

extension InstarError {
  /// Returns the error as the proof that the store itself is damaged.
  package func provingDamage() -> InstarError {
    var copy = self
    copy.provesDamage = true
    return copy
  }
}

extension InstarError: CustomStringConvertible {
  /// The error on several lines, for the terminal and the journal.
  ///
  /// ```text
  /// error: cannot migrate '/srv/app/a.store' from 1.2.0 to 2.0.0
  ///   stage:  AddTags (2 of 3), plugin 'notes' 0.4.1
  ///   cause:  14 rows of Note have no value for required attribute 'uid'
  ///   store:  unchanged
  ///   next:   give 'uid' a default, or fill it in willMigrate   [I204]
  /// ```
  public var description: String {
    // A text of a plugin may end its lines as it likes: none of them may look like a line of this error.
    func indented(_ text: String) -> String {
      text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        .joined(separator: "\n          ")
    }
    var lines = ["error: \(indented(what))"]
    func add(_ label: String, _ text: String?) {
      guard let text, !text.isEmpty else { return }
      let space = String(repeating: " ", count: max(1, 8 - label.utf8.count))
      lines.append("  \(label)\(space)\(indented(text))")
    }
    add("stage:", stage)
    add("cause:", cause)
    add("store:", state)
    add("next:", next)
    lines[lines.count - 1] += "   [\(code.rawValue)]"
    return lines.joined(separator: "\n")
  }
}

extension InstarError {
  /// Returns the error with the fields that a caller knows and that are still missing. `what` is replaced: the caller
  /// names the whole operation. If the old one names something in quotes that the new one does not, it becomes a part
  /// of the cause.
  public func about(
    _ what: String? = nil, store: String? = nil, stage: String? = nil, state: String? = nil,
    next: String? = nil
  ) -> InstarError {
    var copy = self
    if let what {
      let names = self.what.split(separator: "'", omittingEmptySubsequences: false)
      let isNew = names.enumerated().contains { offset, name in
        offset % 2 == 1 && !what.contains(name) && !cause.contains(name)
      }
      if isNew { copy.cause = "\(self.what): \(cause)" }
      copy.what = what
    }
    // What noticed it, such as a single statement, may not know the store that the command is to name.
    if let store, copy.store == nil { copy.completeNext(.store(store)) }
    copy.store = copy.store ?? store
    copy.stage = copy.stage ?? stage
    copy.state = copy.state ?? state
    copy.next = copy.next ?? next
    return copy
  }
}
