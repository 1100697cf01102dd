import InstarSchema
import InstarWire

/// What a run is to do with its store.
enum RunRequest: Sendable {
  case migrate(MigrationRequest)
  case restore(RestoreRequest, by: String)

  var run: String {
    switch self {
    case .migrate(let request): request.run
    case .restore(let request, _): request.run
    }
  }

  var store: String {
    switch self {
    case .migrate(let request): request.store
    case .restore(let request, _): request.store
    }
  }

  /// The plugins whose code the run may load.
  var plugins: [String] {
    switch self {
    case .migrate(let request): request.plans.plugins
    case .restore: []
    }
  }

  var busyTimeoutSeconds: Double {
    switch self {
    case .migrate(let request): request.busyTimeoutSeconds
    case .restore(let request, _): request.busyTimeoutSeconds
    }
  }

  /// The bytes of a backup that the run reads.
  var bytesOfBackup: Int64 {
    switch self {
    case .migrate: 0
    case .restore(let request, _): request.backup.bytesToRead
    }
  }

  /// How long a stage of a plan may take.
  var stageTimeLimitSeconds: Double {
    switch self {
    case .migrate(let request): request.stageTimeLimitSeconds
    case .restore: 0
    }
  }

  /// Whether the run leaves the store as it is, and throws its clone away.
  var rehearses: Bool {
    switch self {
    case .migrate(let request): request.rehearses
    case .restore: false
    }
  }

  /// Whether a hold on the store refuses the run. A restore is what a hold waits for.
  var respectsHold: Bool {
    switch self {
    case .migrate(let request): !request.rehearses
    case .restore: false
    }
  }

  /// The start of the run's error: what could not be done.
  var what: String {
    switch self {
    case .migrate(let request): request.what
    case .restore(let request, _): "cannot restore '\(request.store)'"
    }
  }

  /// The command that recovers the run and repeats it.
  var command: String {
    switch self {
    case .migrate(let request): request.command.text
    case .restore(let request, _): request.command
    }
  }

  var message: KeeperRequest {
    switch self {
    case .migrate(let request): .migrate(request)
    case .restore(let request, _): .restore(request)
    }
  }
}
