public import InstarSchema

/// A problem that a check found before the store was changed.
public struct Finding: Sendable, Codable, Hashable {
  /// What the problem means for a run.
  public enum Severity: String, Sendable, Codable, Hashable {
    /// Instar refuses the run.
    case error
    /// The run continues; a person should know.
    case warning
    /// The run continues as usual.
    case note
  }

  /// What the problem means for a run.
  public var severity: Severity
  /// The code of the error that the run would end with; left out if it would not end.
  public var code: InstarError.Code?
  /// The problem, as a sentence without a full stop.
  public var message: String
  /// What to do about it, as an imperative.
  public var fix: String?
  /// The rows that have the problem; left out if it is not about rows. `message` names them too.
  public var rows: AffectedRows?

  /// A problem; without `fix` there is nothing to do.
  public init(
    severity: Severity, code: InstarError.Code? = nil, message: String, fix: String? = nil,
    rows: AffectedRows? = nil
  ) {
    self.severity = severity
    self.code = code
    self.message = message
    self.fix = fix
    self.rows = rows
  }
}
