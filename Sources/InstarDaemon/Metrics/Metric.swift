/// The closed list of metrics. The raw value is the name.
///
/// Alert rules, dashboards and scripts rely on names, labels and units: never rename one. No label has a value for each
/// store, run or user, so the number of series does not grow with the fleet.
enum Metric: String, Sendable, Hashable, CaseIterable {
  case buildInfo = "instar_build_info"
  case startTime = "instar_start_time_seconds"
  case stores = "instar_stores"
  case storesByActivity = "instar_stores_by_activity"
  case watches = "instar_watches"
  case plugins = "instar_plugins"
  case queueLength = "instar_queue_length"
  case runsInProgress = "instar_runs_in_progress"
  case paused = "instar_paused"
  case runs = "instar_runs_total"
  case runDuration = "instar_run_duration_seconds"
  case rowsMigrated = "instar_rows_migrated_total"
  case bytesMigrated = "instar_bytes_migrated_total"
  case rolloutWave = "instar_rollout_wave"
  case rolloutWaves = "instar_rollout_waves"
  case rolloutStores = "instar_rollout_stores"
  case rolloutUnapproved = "instar_rollout_unapproved_stores"
  case rolloutBudget = "instar_rollout_failure_budget_stores"
  case rolloutFailures = "instar_rollout_counted_failures"
  case rolloutHalted = "instar_rollout_halted"
  case rolloutWaits = "instar_rollout_waits"
  case probes = "instar_probes_total"
  case scanDuration = "instar_scan_duration_seconds"
  case backups = "instar_backups"
  case backupBytes = "instar_backup_bytes"
  case keeperRestarts = "instar_keeper_restarts_total"
  case workerRestarts = "instar_worker_restarts_total"
  case errors = "instar_errors_total"
  case lastError = "instar_last_error_timestamp_seconds"

  /// How the values of a metric relate to each other, as Prometheus names it.
  enum Kind: String, Sendable, Hashable {
    case counter
    case gauge
    case histogram
  }

  /// How its values relate to each other.
  var kind: Kind {
    switch self {
    case .runDuration, .scanDuration: .histogram
    case _ where rawValue.hasSuffix("_total"): .counter
    default: .gauge
    }
  }

  /// The upper bounds of a histogram's buckets, in its unit; empty for other metrics.
  var bounds: [Double] {
    switch self {
    case .runDuration:
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
    case .scanDuration: [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60]
    default: []
    }
  }

  /// What it says, in one line.
  var help: String {
    switch self {
    case .buildInfo: "Always 1; the label has the release of instard."
    case .startTime: "When instard started, in seconds since 1970."
    case .stores:
      "Stores by state at their last probe, and plan; the state is unprobed before the first probe."
    case .storesByActivity: "Stores by what instard does with them now."
    case .watches: "Configured folders, by whether instard can watch them."
    case .plugins: "Plugins in use."
    case .queueLength: "Stores that wait for a probe, or for a run."
    case .runsInProgress: "Runs and recoveries in progress."
    case .paused: "Whether an operator has paused instard."
    case .runs: "Ended runs by result and plan."
    case .runDuration: "How long runs took, by result and plan."
    case .rowsMigrated: "Rows in migrated stores, counted after each run."
    case .bytesMigrated: "Size of migrated stores, measured before each run."
    case .rolloutWave: "The open wave, or the one that ended last; 0 while stores are counted."
    case .rolloutWaves: "How many waves the rollout has."
    case .rolloutStores: "Stores of the rollout by their turn."
    case .rolloutUnapproved: "Stores of the rollout that wait for an approval."
    case .rolloutBudget: "How many stores may fail before the rollout is halted."
    case .rolloutFailures: "Failed stores that count against the failure budget."
    case .rolloutHalted: "Whether the rollout is halted, and by what."
    case .rolloutWaits:
      "Whether no run can start before a window opens or the coordinator permits it."
    case .probes: "Probes of stores."
    case .scanDuration: "How long scans of a watched folder took."
    case .backups: "Backups of watched stores."
    case .backupBytes: "Size of these backups and their copies, with their files of large values."
    case .keeperRestarts:
      "Keepers that ended before they finished their work, or were killed; another one took over."
    case .workerRestarts: "Workers that crashed, ended early or exceeded a limit."
    case .errors: "Journal entries at priority err or above, by event."
    case .lastError: "When the last of these entries was written, in seconds since 1970."
    }
  }

  /// The names of its labels, in order.
  var labels: [String] {
    switch self {
    case .buildInfo: ["version"]
    case .stores: ["state", "plan"]
    case .storesByActivity: ["activity"]
    case .watches: ["state"]
    case .queueLength: ["queue"]
    case .runs, .runDuration: ["result", "plan"]
    case .rowsMigrated, .bytesMigrated, .rolloutWave, .rolloutWaves, .rolloutUnapproved,
      .rolloutBudget, .rolloutFailures:
      ["plan"]
    case .rolloutStores: ["plan", "turn"]
    case .rolloutHalted: ["plan", "by"]
    case .rolloutWaits: ["plan", "for"]
    case .errors: ["event"]
    case .startTime, .plugins, .runsInProgress, .paused, .probes, .scanDuration, .backups,
      .backupBytes, .keeperRestarts, .workerRestarts, .lastError:
      []
    }
  }
}
