public import InstarSchema

/// What a plugin exports: a worker's reply to `describe`.
public struct PluginManifest: Sendable, Codable, Hashable {
  /// The plans, in the order of the plugin.
  public var plans: [PlanManifest]

  package init(plans: [PlanManifest]) {
    self.plans = plans
  }
}

/// One migration plan.
public struct PlanManifest: Sendable, Codable, Hashable {
  /// The name of the `SchemaMigrationPlan` type.
  public var name: String
  /// The versions, oldest first.
  public var versions: [VersionManifest]
  /// The stages, in the order in which they run.
  public var stages: [StageManifest]
  /// Where plain stores of the plan declare their version.
  public var versionSource = VersionSource.userVersion
  /// The order of columns after a change, in stores that Apple's frameworks created.
  public var columnOrder = ColumnOrder.asNew
  /// The version of the plan that each version of another tool means.
  public var importedVersions: [ToolVersion: Schema.Version] = [:]
  /// The properties ("Note.pages") whose values the plan agrees to lose when a stage changes their type.
  public var acceptedLosses: [String] = []
  /// What each migration must keep or make true.
  public var invariants: [Invariant] = []
  /// What Instar ignores in the plan, or uses otherwise than it is written, one sentence each.
  public var notes: [String] = []

  /// A plan for stores with `PRAGMA user_version`, without imported versions.
  public init(name: String, versions: [VersionManifest], stages: [StageManifest]) {
    self.name = name
    self.versions = versions
    self.stages = stages
  }
}
