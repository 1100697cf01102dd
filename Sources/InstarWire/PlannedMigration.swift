public import InstarSchema

/// The stages that bring one store from its version to the last version of its plan, and what each changes: the
/// worker's reply to `plan`.
public struct PlannedMigration: Sendable, Codable, Hashable {
  public var plan: String
  public var from: Schema.Version
  public var to: Schema.Version
  public var stages: [Stage]
  /// The stages that the plan does not have, and why a run may execute other statements than these.
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

  /// One stage of the migration.
  public struct Stage: Sendable, Codable, Hashable {
    public var from: Schema.Version
    public var to: Schema.Version
    public var kind: StageManifest.Kind
    /// The changes between the two schemas, then those that follow from the store's format.
    public var planned: [PlannedChange]

    /// The reasons of all changes, one sentence each.
    public var changes: [String] { planned.map(\.reason) }

    /// The SQL of all changes, in the order in which a run executes it.
    public var statements: [String] {
      planned.flatMap(\.statements).sorted { $0.position < $1.position }.map(\.sql)
    }

    public init(
      from: Schema.Version, to: Schema.Version, kind: StageManifest.Kind, planned: [PlannedChange]
    ) {
      self.from = from
      self.to = to
      self.kind = kind
      self.planned = planned
    }

    private enum CodingKeys: String, CodingKey {
      case from, to, kind, planned, changes, statements
    }

    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      from = try values.decode(Schema.Version.self, forKey: .from)
      to = try values.decode(Schema.Version.self, forKey: .to)
      kind = try values.decode(StageManifest.Kind.self, forKey: .kind)
      planned = try values.decode([PlannedChange].self, forKey: .planned)
    }

    /// Writes `changes` and `statements` too: scripts read them from `instarctl plan --json`.
    public func encode(to encoder: any Encoder) throws {
      var values = encoder.container(keyedBy: CodingKeys.self)
      try values.encode(from, forKey: .from)
      try values.encode(to, forKey: .to)
      try values.encode(kind, forKey: .kind)
      try values.encode(planned, forKey: .planned)
      try values.encode(changes, forKey: .changes)
      try values.encode(statements, forKey: .statements)
    }
  }
}

/// A problem that a check found before the store was changed.
public struct Finding: Sendable, Codable, Hashable {
  public enum Severity: String, Sendable, Codable, Hashable {
    /// Instar refuses the run.
    case error
    /// The run continues; a person should know.
    case warning
    case note
  }

  public var severity: Severity
  public var code: InstarError.Code?
  public var message: String
  /// What to do about it, as an imperative.
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

/// The reply of `instarctl plan` for one store: its state, what a run would change, and why a run would be refused.
public struct PlanReport: Sendable, Codable, Hashable {
  public var store: String
  public var probe: ProbeReport
  /// `nil` where the store is current, or cannot be migrated.
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
