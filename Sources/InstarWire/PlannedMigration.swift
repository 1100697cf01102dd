public import InstarSchema

/// The way of one store from its version to its plan's last one: the answer to the worker's verb `plan`.
public struct PlannedMigration: Sendable, Codable, Hashable {
  public var plan: String
  public var from: Schema.Version
  public var to: Schema.Version
  public var stages: [Stage]
  /// Where a run may execute other statements than are shown, and why.
  public var notes: [String]

  public init(
    plan: String, from: Schema.Version, to: Schema.Version, stages: [Stage], notes: [String] = []
  ) {
    self.plan = plan
    self.from = from
    self.to = to
    self.stages = stages
    self.notes = notes
  }

  public struct Stage: Sendable, Codable, Hashable {
    public var from: Schema.Version
    public var to: Schema.Version
    public var kind: StageManifest.Kind
    /// What changes between the two schemas, one sentence each.
    public var changes: [String]
    /// Every SQL statement of the change of schema, in order.
    public var statements: [String]

    public init(
      from: Schema.Version, to: Schema.Version, kind: StageManifest.Kind, changes: [String],
      statements: [String]
    ) {
      self.from = from
      self.to = to
      self.kind = kind
      self.changes = changes
      self.statements = statements
    }
  }
}

/// Something found before anything was touched.
public struct Finding: Sendable, Codable, Hashable {
  public enum Severity: String, Sendable, Codable, Hashable {
    /// The run is refused.
    case error
    /// The run goes on; a person should know.
    case warning
    case note
  }

  public var severity: Severity
  public var code: InstarError.Code?
  public var message: String
  /// What to do about it.
  public var fix: String?

  public init(
    severity: Severity, code: InstarError.Code? = nil, message: String, fix: String? = nil
  ) {
    self.severity = severity
    self.code = code
    self.message = message
    self.fix = fix
  }
}

/// What `instarctl plan` shows for one store: where it stands, what a run would do, and what speaks against it.
public struct PlanReport: Sendable, Codable, Hashable {
  public var store: String
  public var probe: ProbeReport
  /// `nil` where there is nothing to do, or nothing that can be done.
  public var migration: PlannedMigration?
  public var findings: [Finding]
  public var error: InstarError?

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
