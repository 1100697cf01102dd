import InstarSchema
import InstarWire

extension MigrationRequest {
  /// A new run of a store, as the options of the command describe it.
  init(
    of store: String, plans: PlanSelection, _ adoption: AdoptionOptions,
    _ limits: StageLimitOptions, _ busy: BusyOptions, _ risks: RiskOptions
  ) {
    self.init(
      run: RunIdentifier.make(), store: store, plans: plans, adopt: adoption.version)
    sqlDebugLevel = LaunchArguments.debug.level
    limits.apply(to: &self)
    busyTimeoutSeconds = busy.timeoutSeconds
    risks.apply(to: &self)
  }
}
