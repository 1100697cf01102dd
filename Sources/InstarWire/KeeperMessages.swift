public import InstarSchema

/// What a supervisor (instarctl or instard) asks of a keeper: lines on the keeper's descriptor 3. Requests are
/// answered one after the other, in order.
public enum KeeperRequest: Sendable, Codable, Hashable {
  /// The manifests of plugins. Answered by one `.described` or `.failed` each.
  case describe(plugins: [String])
  /// Answered by one `.probed` a store, each as soon as it is known, then `.done`.
  case probe(stores: [String], plugins: [String], rows: RowCounting)
  /// The schemas of stores. Answered by one `.schema` or `.failed` each.
  case readSchema(stores: [String])
  /// Answered by one `.planned` a store, then `.done`.
  case plan(stores: [String], plugins: [String], adopt: Schema.Version?)
  /// One run. Answered by `.run` events and questions (`.ask`), ends in `.finished`.
  case migrate(MigrationRequest)
  /// Finishes or clears away a run that was cut off. Answered by `.recovered` or `.failed`.
  case recover(PhaseRecord)
  /// The answer to `.ask`: the phase is on disk, go on.
  case proceed
  /// The answer to `.ask`: do not go on. The run ends as interrupted, with the store as it was.
  case refrain
}

public struct MigrationRequest: Sendable, Codable, Hashable {
  public var run: String
  public var store: String
  /// Plugins that may carry the plan; the one whose plan knows the store is used.
  public var plugins: [String]
  /// The version an unversioned store shall be taken for.
  public var adopt: Schema.Version?
  /// Whether it may also be adopted where it differs from that version in what does no harm.
  public var adoptsDifferences = false
  /// A stage that takes longer is ended.
  public var stageTimeLimitSeconds: Double
  /// How long to wait for others to let go of the store.
  public var busyTimeoutSeconds: Double
  public var sqlDebugLevel: Int
  /// The folder, which exists, where the backup is kept; `nil` for `.instar/` beside the store.
  public var backupFolder: String?

  public init(
    run: String, store: String, plugins: [String], adopt: Schema.Version? = nil,
    stageTimeLimitSeconds: Double = 3600, busyTimeoutSeconds: Double = 5, sqlDebugLevel: Int = 0
  ) {
    self.run = run
    self.store = store
    self.plugins = plugins
    self.adopt = adopt
    self.stageTimeLimitSeconds = stageTimeLimitSeconds
    self.busyTimeoutSeconds = busyTimeoutSeconds
    self.sqlDebugLevel = sqlDebugLevel
  }
}

/// How far a run is. Each phase is on disk, in the state folder, before the keeper does what follows it.
public enum Phase: String, Sendable, Codable, Hashable, CaseIterable {
  /// `.instar/run-RUN/` may exist. The store is untouched.
  case cloning
  /// The backup is verified and in its place, the clone is verified at the new version. The next step writes the
  /// store: after this the store is at the old or at the new version, and only a probe tells which.
  case cutover
}

/// One entry of the phase journal: what a recovery needs to know of a run that was cut off.
public struct PhaseRecord: Sendable, Codable, Hashable {
  public var run: String
  public var store: String
  public var phase: Phase
  public var plugin: String?
  public var plan: String?
  public var from: Schema.Version?
  public var to: Schema.Version?
  /// Set from `cutover` on; before that only where it is not kept beside the store.
  public var backup: String?
  /// Where a plain store says its version; `nil` for the Core Data format.
  public var versionSource: VersionSource?
  /// The fingerprint of what a plain store becomes. Set from `cutover` on.
  public var fingerprint: String?
  /// Seconds since 1970.
  public var startedAt: Double

  public init(run: String, store: String, phase: Phase, startedAt: Double) {
    self.run = run
    self.store = store
    self.phase = phase
    self.startedAt = startedAt
  }
}

/// What a recovery found and did.
public struct RecoveryReport: Sendable, Codable, Hashable {
  public enum Outcome: String, Sendable, Codable, Hashable {
    /// The run had not written the store: its clone and backup are gone, the store is at its old version.
    case clearedAway
    /// The run had written the store: it is at the new version, and the backup is kept.
    case finished
    /// The store itself is gone.
    case storeMissing
  }

  public var run: String
  public var store: String
  public var outcome: Outcome
  public var version: Schema.Version?
  public var backup: String?

  public init(run: String, store: String, outcome: Outcome) {
    self.run = run
    self.store = store
    self.outcome = outcome
  }
}

/// What a keeper answers: lines on its descriptor 3.
public enum KeeperEvent: Sendable, Codable, Hashable {
  case described(PluginManifest)
  case probed(ProbeReport)
  case schema(SchemaReport)
  case planned(PlanReport)
  /// Something that happened in a run, for people to see.
  case run(RunEvent)
  /// May the run enter this phase? The keeper waits for `.proceed` or `.refrain`.
  case ask(PhaseRecord)
  case finished(RunReport)
  case recovered(RecoveryReport)
  case failed(InstarError)
  case done
}

/// A step of a run.
public struct RunEvent: Sendable, Codable, Hashable {
  public enum Step: String, Sendable, Codable, Hashable {
    case started, locked, backedUp, stageStarted, stageFinished, verified, writtenBack
    /// `text` is what the plugin printed, or the SQL statement.
    case output, sql
  }

  public var run: String
  public var store: String
  public var step: Step
  public var plan: String?
  public var plugin: String?
  public var from: Schema.Version?
  public var to: Schema.Version?
  /// "1.0.0 → 1.1.0 (1 of 2)".
  public var stage: String?
  public var rows: Int?
  public var bytes: Int64?
  public var durationMicroseconds: Int64?
  public var backup: String?
  public var text: String?

  public init(run: String, store: String, step: Step) {
    self.run = run
    self.store = store
    self.step = step
  }
}
