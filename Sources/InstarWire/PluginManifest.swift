public import InstarSchema

/// What a plugin exports: a worker's reply to `describe`.
public struct PluginManifest: Sendable, Codable, Hashable {
  /// The plans, in the order of the plugin.
  public var plans: [PlanManifest]

  /// A manifest.
  public init(plans: [PlanManifest]) {
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

/// One stage of a plan.
public struct StageManifest: Sendable, Codable, Hashable {
  /// What the plan does in the stage, besides the change of schema.
  public enum Kind: String, Sendable, Codable, Hashable {
    /// Nothing: no code of the plan runs.
    case lightweight
    /// Closures run before and after the change.
    case custom
    /// SQL statements run before and after the change.
    case sql
    /// Functions compute properties row by row.
    case transform
    /// A closure has the contexts of both versions.
    case bridge

    /// - Throws: `protocolViolation` for a kind that a later release has.
    public init(from decoder: any Decoder) throws {
      let name = try decoder.singleValueContainer().decode(String.self)
      guard let kind = Kind(rawValue: name) else {
        throw InstarError(
          .protocolViolation, "cannot read a stage",
          cause: "this release of Instar does not know stages of the kind '\(name)'",
          next: "install the release of Instar that wrote this, or a later one")
      }
      self = kind
    }
  }

  /// The version that the stage starts at.
  public var from: Schema.Version
  /// The version that the stage ends at.
  public var to: Schema.Version
  /// What the plan does in the stage.
  public var kind: Kind
  /// Whether the plan does not have the stage: Instar adds a lightweight one where a version has none.
  public var isImplicit: Bool
  /// The name that the plan gives the stage; left out for a stage without one.
  public var label: String?

  /// A stage.
  public init(
    from: Schema.Version, to: Schema.Version, kind: Kind, isImplicit: Bool = false,
    label: String? = nil
  ) {
    self.from = from
    self.to = to
    self.kind = kind
    self.isImplicit = isImplicit
    // A label without a visible character names nothing.
    self.label = label.flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 }
  }

  /// Returns what errors, events and the journal call the stage: "AddTags (2 of 3)", or "1.0.0 → 2.0.0 (2 of 3)" for a
  /// stage without a label.
  ///
  /// - Parameter number: The place of the stage in its run, such as "2 of 3".
  package func title(_ number: String) -> String {
    "\(label ?? "\(from) → \(to)") (\(number))"
  }
}
