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
