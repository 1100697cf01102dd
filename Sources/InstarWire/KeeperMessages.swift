public import InstarSchema

/// A request of a supervisor (instarctl or instard) to a keeper: one line on the keeper's descriptor 3. The keeper
/// answers requests one after the other, in order.
public enum KeeperRequest: Sendable, Codable, Hashable {
  /// Asks for the manifests of plugins. Answered by one `.described` or `.failed` per plugin.
  case describe(plugins: [String])
  /// Asks for probes of stores, matched with plans. With `findsHolders` also for the processes that have each store
  /// open, which searches all processes. Answered by one `.probed` per store, then `.done`.
  case probe(stores: [String], plans: PlanSelection, rows: RowCounting, findsHolders: Bool)
  /// Asks for the schemas of stores. Answered by one `.schema` or `.failed` per store.
  case readSchema(stores: [String])
  /// Asks what a run would do, with the version to adopt unversioned stores as. Answered by one `.planned` per store,
  /// then `.done`.
  case plan(stores: [String], plans: PlanSelection, adopt: Schema.Version?)
  /// Asks whether stores are sound, and fit the plans that know them. Answered by one `.verified` per store, then
  /// `.done`.
  case verify(stores: [String], plans: PlanSelection, busyTimeoutSeconds: Double)
  /// Starts a run. Answered by `.run` events and questions (`.ask`), then `.finished`.
  case migrate(MigrationRequest)
  /// Starts a run that brings a store back to a backup. Answered as `.migrate` is.
  case restore(RestoreRequest)
  /// Asks for work on one backup. Answered by `.done` or `.failed`, and a copy that is kept by `.copied`.
  case backup(BackupReference, BackupWork)
  /// Recovers a run that was cut off. Answered by `.recovered` or `.failed`.
  case recover(PhaseRecord)
  /// The answer to `.ask`: the phase is on disk; the run continues.
  case proceed
  /// The answer to `.ask`: the run ends as interrupted, with the store unchanged.
  case refrain
}

extension KeeperRequest {
  /// `.proceed` as JSON. A run gets it for each phase, so it is not encoded and decoded each time.
  public static let encodedProceed = #"{"proceed":{}}"#
}

/// The parameters of one run.
public struct MigrationRequest: Sendable, Codable, Hashable {
  /// The run identifier, see `RunIdentifier`.
  public var run: String
  /// The path of the store, absolute.
  public var store: String
  /// The plans that may be the store's; the run uses the one that matches it.
  public var plans: PlanSelection
  /// The version to adopt an unversioned store as; left out if none was given.
  public var adopt: Schema.Version?
  /// Whether the adoption is confirmed although the store differs from the version in ways that do not prevent it.
  public var adoptsDifferences = false
  /// Whether values may be lost where a stage changes the type of a property and no code of the plan writes them.
  public var acceptsLoss = false
  /// The time limit of one stage, in seconds; the worker is killed after it.
  public var stageTimeLimitSeconds: Double
  /// The most memory that the worker may use, in bytes.
  public var workerMemoryBytes: Int64 = MigrationRequest.defaultWorkerMemoryBytes
  /// What to do with a store that other processes use.
  public var whenBusy = BusyPolicy.wait
  /// How long to wait for other processes to release the store, in seconds.
  public var busyTimeoutSeconds: Double
  /// How much of each SQL statement is reported: 0 (nothing) to 4, as `SQLDebug.level`.
  public var sqlDebugLevel: Int
  /// An existing folder for the backup; left out for `.instar/` beside the store.
  public var backupFolder: String?
  /// Which way of the cutover to take.
  public var cutover = CutoverPolicy.automatic
  /// How much is read before the cutover.
  public var verification = VerificationPolicy.standard
  /// Whether the run ends before the cutover: a rehearsal, whose clone is removed.
  public var rehearses = false
  /// Whether somebody sees the steps of the run. If not, a short run sends none.
  public var reportsSteps = true

  /// 4 GiB.
  public static let defaultWorkerMemoryBytes: Int64 = 4 << 30

  /// A request with the default limits.
  public init(
    run: String, store: String, plans: PlanSelection, adopt: Schema.Version? = nil,
    stageTimeLimitSeconds: Double = 3600, busyTimeoutSeconds: Double = 5, sqlDebugLevel: Int = 0
  ) {
    self.run = run
    self.store = store
    self.plans = plans
    self.adopt = adopt
    self.stageTimeLimitSeconds = stageTimeLimitSeconds
    self.busyTimeoutSeconds = busyTimeoutSeconds
    self.sqlDebugLevel = sqlDebugLevel
  }
}

extension MigrationRequest {
  /// The start of the run's error: what could not be done.
  package var what: String {
    "cannot \(rehearses ? "rehearse the migration of" : "migrate") '\(store)'"
  }

  /// The command that makes the run again.
  package var command: MigrationCommand {
    var command = MigrationCommand(store: store, plugins: plans.plugins)
    if rehearses { command.name = .rehearse }
    command.adoptedVersion = adopt?.description
    command.adoptsDifferences = adoptsDifferences
    command.acceptsLoss = acceptsLoss
    command.options = options
    return command
  }

  /// The options for what differs from the defaults of `instarctl`.
  private var options: [String] {
    let defaults = MigrationRequest(run: run, store: store, plans: plans)
    var options = plans.names.map { "--plan \(CommandText.quoted($0))" }
    if stageTimeLimitSeconds != defaults.stageTimeLimitSeconds {
      options.append("--stage-time-limit \(DurationText.argument(.seconds(stageTimeLimitSeconds)))")
    }
    if workerMemoryBytes != defaults.workerMemoryBytes {
      options.append("--worker-memory \(workerMemoryBytes >> 20)MiB")
    }
    if busyTimeoutSeconds != defaults.busyTimeoutSeconds {
      options.append("--busy-timeout \(DurationText.argument(.seconds(busyTimeoutSeconds)))")
    }
    if whenBusy != defaults.whenBusy { options.append("--when-busy \(whenBusy.rawValue)") }
    if cutover != defaults.cutover { options.append("--cutover \(cutover.rawValue)") }
    if verification != defaults.verification {
      options.append("--verify \(verification.rawValue)")
    }
    return options
  }
}

/// The parameters of one restore.
public struct RestoreRequest: Sendable, Codable, Hashable {
  /// The run identifier, see `RunIdentifier`.
  public var run: String
  /// The path of the store, absolute.
  public var store: String
  /// The backup to bring the store back to.
  public var backup: BackupReference
  /// How long to wait for other processes to release the store, in seconds.
  public var busyTimeoutSeconds: Double

  /// A restore of a store to one of its backups.
  public init(run: String, store: String, backup: BackupReference, busyTimeoutSeconds: Double = 5) {
    self.run = run
    self.store = store
    self.backup = backup
    self.busyTimeoutSeconds = busyTimeoutSeconds
  }

  /// The command that makes the restore again.
  package var command: String { CommandText.restore(store, run: backup.run) }
}

/// What a keeper does with a backup and its copy in another folder. The store is not opened.
public enum BackupWork: Sendable, Codable, Hashable {
  /// Checks the backup and its copy against its manifest, and with SQLite's `quick_check`. A compressed copy is
  /// decompressed and compared with the manifest.
  case verify
  /// Makes the copy that is kept in another folder, and reads it back. Only reads it if it exists.
  case keepCopy(at: String)
  /// Checks the backup and copies it to a path that does not exist, with the files of its external values.
  case copy(to: String)
  /// Removes the backup, its copy, its manifest and the files of its external values.
  case remove
  /// Removes the manifest and the files of external values of a backup whose file is missing, and those of its copy if
  /// that is missing. Does nothing to one that exists.
  case removeRemains
}

/// A step of a run that a crash must not hide. A phase is on disk in the state folder before the keeper enters it.
public enum Phase: String, Sendable, Codable, Hashable, CaseIterable {
  /// The folder `.instar/run-RUN/`, or the file `.instar/NAME.RUN.copy`, may exist. With that file there may be a
  /// rollback journal of the store, with a cleared header. The store is unchanged.
  case cloning
  /// Backup and clone are verified. The store is at the old or the new version; a recovery probes which.
  case cutover
}

/// How a store's content is replaced by its clone's.
public enum CutoverKind: String, Sendable, Codable, Hashable, CaseIterable {
  /// The clone took the place of the store's file.
  case exchange
  /// SQLite wrote the store's file, in one transaction.
  case writeBack
}

/// The result of a recovery.
public struct RecoveryReport: Sendable, Codable, Hashable {
  /// What the recovery found and did.
  public enum Outcome: String, Sendable, Codable, Hashable {
    /// The run's clone is removed. If the store is as before the run, its backup is removed too.
    case discarded
    /// The store is at the new version; the backup is kept.
    case finished
    /// The store is missing; the backup is kept.
    case storeMissing
  }

  /// The run identifier.
  public var run: String
  /// The path of the store.
  public var store: String
  /// The result.
  public var outcome: Outcome
  /// The store's version now; left out if the store is missing.
  public var version: Schema.Version?
  /// The path of the backup; left out if there is none.
  public var backup: String?
  /// How the store got its new content; left out if it did not.
  public var cutover: CutoverKind?
  /// The manifest of the backup as it is now, if the backup changed after the run was cut off.
  public var manifest: BackupManifest?
  /// What the operator must know about the backup.
  public var notes: [String]?
  /// The run whose backup the run was to restore; set by the supervisor, and left out of other runs.
  public var restoredRun: String?
  /// The files of a run in the ledger that could not be removed; left out if there are none, and for other runs.
  public var leftovers: [String]?

  /// A report without optional fields.
  public init(run: String, store: String, outcome: Outcome) {
    self.run = run
    self.store = store
    self.outcome = outcome
  }

  /// What to do about the files that could not be removed; `nil` if there are none.
  package var leftoversInWords: String? {
    leftovers.map { files in
      "could not remove all files of run \(run) of '\(store)', which has ended; run: rm -r "
        + files.map(CommandText.quoted).joined(separator: " ")
    }
  }
}

/// A reply or event of a keeper: one line on its descriptor 3.
public enum KeeperEvent: Sendable, Codable, Hashable {
  /// A plugin's manifest.
  case described(PluginManifest)
  /// The probe of a store.
  case probed(EncodedProbeReport)
  /// The schema of a store.
  case schema(SchemaReport)
  /// What a run would do on a store.
  case planned(PlanReport)
  /// What the checks of a store found.
  case verified(VerificationReport)
  /// A step of a run, for display.
  case run(RunEvent)
  /// Asks whether the run may enter this phase. The keeper waits for `.proceed` or `.refrain`.
  case ask(PhaseRecord)
  /// The end of a run.
  case finished(RunReport)
  /// The end of a recovery.
  case recovered(RecoveryReport)
  /// A copy of a backup was made, or was there, and was read back.
  case copied(BackupCopy)
  /// The request, or its part about one plugin or store, failed.
  case failed(InstarError)
  /// The end of a request about several stores.
  case done
}

extension KeeperEvent {
  /// The exit status of a keeper that could not interrupt a statement on a store.
  public static let exitStatusOverBudget: Int32 = 75
}

/// One step of a run, for display. Fields that do not apply to the step are left out.
public struct RunEvent: Sendable, Codable, Hashable {
  /// The kind of step.
  public enum Step: String, Sendable, Codable, Hashable {
    /// The store is behind: the run starts. `plan`, `plugin`, `from` and `to` are set from here on.
    case started
    /// Other processes can no longer write the store.
    case locked
    /// The backup is complete; `bytes` is set. It is verified before the cutover.
    case backedUp
    /// A stage started or finished; `stage` is set, and `durationMicroseconds` at its end.
    case stageStarted, stageFinished
    /// A long stage goes on; `stage` and `progress` are set.
    case progress
    /// The clone is verified; `rows` is set.
    case verified
    /// The cutover is complete; `backup` and `cutover` are set.
    case cutOver
    /// The plugin printed `text`.
    case output
    /// A SQL statement ran; `text` is the statement in Core Data's form.
    case sql
  }

  /// The run identifier.
  public var run: String
  /// The path of the store.
  public var store: String
  /// The kind of step.
  public var step: Step
  /// The name of the plan.
  public var plan: String?
  /// The path of the plugin.
  public var plugin: String?
  /// The store's version before the run.
  public var from: Schema.Version?
  /// The last version of the plan.
  public var to: Schema.Version?
  /// The stage, such as "1.0.0 → 1.1.0 (1 of 2)".
  public var stage: String?
  /// How far the stage's present piece of work is.
  public var progress: WorkProgress?
  /// The number of rows in the verified clone.
  public var rows: Int?
  /// The size of the backup, in bytes.
  public var bytes: Int64?
  /// The time that the step took, in microseconds.
  public var durationMicroseconds: Int64?
  /// The path of the backup.
  public var backup: String?
  /// How the store's content was replaced.
  public var cutover: CutoverKind?
  /// The output of the plugin, or the SQL statement.
  public var text: String?

  /// An event without optional fields.
  public init(run: String, store: String, step: Step) {
    self.run = run
    self.store = store
    self.step = step
  }
}
