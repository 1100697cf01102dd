public import InstarSchema

/// The stages that bring one store from its version to the last version of its plan, and what each changes: the
/// worker's reply to `plan`.
public struct PlannedMigration: Sendable, Codable, Hashable {
  /// The name of the plan.
  public var plan: String
  /// The store's version.
  public var from: Schema.Version
  /// The last version of the plan.
  public var to: Schema.Version
  /// In the order in which they run; empty for a store at the last version.
  public var stages: [Stage]
  /// The stages that the plan does not have, and why a run may execute other statements than these.
  public var notes: [String]

  package init(
    plan: String, from: Schema.Version, to: Schema.Version, stages: [Stage], notes: [String] = []
  ) {
    self.plan = plan
    self.from = from
    self.to = to
    self.stages = stages
    self.notes = notes
  }

  /// One stage of the migration.
  public struct Stage: Sendable, Codable, Hashable {
    /// The version that the stage starts at.
    public let from: Schema.Version
    /// The version that the stage ends at.
    public let to: Schema.Version
    /// What the plan does in the stage.
    public let kind: StageManifest.Kind
    /// The name that the plan gives the stage; left out for a stage without one.
    public let label: String?
    /// The changes between the two schemas, then those that follow from the store's format.
    public let planned: [PlannedChange]
    /// The reasons of all changes, one sentence each.
    public let changes: [String]
    /// The SQL of all changes, in the order in which a run executes it.
    public let statements: [String]

    /// A stage with these changes, from which the lists of sentences and of SQL follow.
    public init(
      from: Schema.Version, to: Schema.Version, kind: StageManifest.Kind, label: String? = nil,
      planned: [PlannedChange]
    ) {
      self.from = from
      self.to = to
      self.kind = kind
      self.label = label
      self.planned = planned
      changes = planned.map(\.reason)
      statements = planned.flatMap(\.statements).sorted { $0.position < $1.position }.map(\.sql)
    }
  }
}

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

/// The reply of `instarctl plan` for one store: its state, what a run would change, and why a run would be refused.
public struct PlanReport: Sendable, Codable, Hashable {
  /// The path of the store.
  public var store: String
  /// The store as it is now.
  public var probe: ProbeReport
  /// What a run would do; left out if the store is current or cannot be migrated.
  public var migration: PlannedMigration?
  /// What the checks found.
  public var findings: [Finding]
  /// What the run would check before its cutover; left out if the plan has no invariants.
  public var invariants: [Invariant]?
  /// Why the store cannot be migrated.
  public var error: InstarError?

  /// A report on a store; one without a migration says why by its probe or error.
  public init(
    store: String, probe: ProbeReport, migration: PlannedMigration? = nil, findings: [Finding] = [],
    error: InstarError? = nil
  ) {
    self.store = store
    self.probe = probe
    self.migration = migration
    self.findings = findings
    self.error = error
  }
}
