public import InstarSchema

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
