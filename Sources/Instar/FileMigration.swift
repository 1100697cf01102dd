internal import InstarChange
internal import InstarEngine
internal import InstarKeeper
internal import InstarLinux
internal import InstarModel
internal import InstarStore
internal import InstarSupervisor
internal import InstarWire

/// Migrates a store to the last version of its plan, in the process that opens its container.
///
/// The process is supervisor, keeper and worker in one: it writes the phase journal and the ledger, does what
/// `MigrationRun` does to a store, and runs the stages on the clone. Nothing confines the plan, which is the app's own
/// code. The invariants are those of `MigrationRun`; also, only SQLite opens a descriptor of the store
/// (`OpenPolicy.shared`), because other containers of the process may have it open.
struct FileMigration {
  /// Absolute, without symbolic links.
  let path: String
  let plan: PlanDefinition
  let isReadOnly: Bool
  let stateFolder: String
  /// Called with the report of each run.
  var onReport: (RunReport) -> Void = { _ in }

  /// How often a run is retried after another process changed the store.
  private static let attempts = 3
  /// How long to wait for a writer, in seconds: as long as an open container waits.
  private static let busyTimeoutSeconds = 5.0

  /// - Parameter stages: Runs the stages on the clone. Called again if another process wrote the store meanwhile.
  /// - Returns: Whether the store was migrated; `false` if it was at the last version.
  func run(_ stages: @escaping StoreMigration.Stages) throws(InstarError) -> Bool {
    try recover()
    var attempt = 1
    while case .behind(_, let adopted) = try state() {
      guard let failure = try migrate(adopting: adopted, stages) else { return true }
      guard failure.code == .storeChanged, attempt < Self.attempts else { throw failure }
      attempt += 1
    }
    return false
  }

  // MARK: The store's state

  /// The names of the store's tables, as written in SQL.
  func tables() throws(InstarError) -> Set<String> {
    let probe = try StoreProbe.readShared(path, busyTimeout: Self.busyTimeoutSeconds)
    return Set(probe.identity.structure.tables.map { SQLIdentifier.sql($0.name) })
  }

  /// - Throws: Why the store cannot be migrated, as far as a probe shows it.
  func state() throws(InstarError) -> StoreMigration.State {
    let manifest = plan.manifest
    let probe = try StoreProbe.readShared(
      path, versionSources: [manifest.versionSource], busyTimeout: Self.busyTimeoutSeconds)
    if probe.identity.isEmpty { return .missing }
    let identity = probe.identity.seen(
      from: manifest.versionSource, importing: manifest.importedVersions)
    let match = SchemaMatch(of: identity, among: manifest.versions)
    let version = try plan.startingVersion(of: match, store: path)
    if match.state == .current { return .current }
    // Reasons against the stages are reported before a folder is created or a lock is taken.
    _ = try plan.migration(from: version)
    guard !isReadOnly else {
      // One that is only not stamped can be read all the same.
      if version == plan.versions.last?.schema.version { return .current }
      throw InstarError(
        .unreadableStore, "cannot migrate the store",
        cause: "the store is at \(version), and its configuration does not allow saving",
        next: "open the store once with allowsSave: true")
    }
    return .behind(from: version, adopting: match.state == .unversioned ? version : nil)
  }

  // MARK: The run

  /// - Returns: Why the run failed; `nil` if the store is at the last version now.
  private func migrate(
    adopting version: Schema.Version?, _ stages: @escaping StoreMigration.Stages
  ) throws(InstarError) -> InstarError? {
    let state = try openStateFolder()
    let backups = state.path + "/backups"
    guard mkdir(backups, 0o700) == 0 || errno == EEXIST else {
      throw InstarError(
        .stateFolderFailed, "cannot create the folder '\(backups)'",
        cause: String(cString: strerror(errno)), next: Self.otherStateFolder)
    }
    let program = CommandLine.arguments.first ?? ""
    var request = MigrationRequest(
      run: RunIdentifier.make(), store: path, plans: [program], adopt: version,
      busyTimeoutSeconds: Self.busyTimeoutSeconds)
    request.backupFolder = backups
    let journal = try RunJournal.start(run: request.run, store: path, in: state)
    defer { journal.unlock() }
    let manifest = plan.manifest
    var run = MigrationRun(
      request, conversation: InProcessConversation(journal),
      host: InProcessPluginHost(plan: plan, stages: stages),
      openPolicy: .shared
    ) { [PluginCatalog.Plan(plugin: program, manifest: manifest)] }
    var report = run.perform()
    if let error = report.error, error.isInDoubt, let phase = journal.phase {
      do {
        let recovered = try Recovery(record: phase, openPolicy: .shared).perform()
        report = RunReport(of: recovered, phase: phase, cause: error)
      } catch {
        throw error.about(state: report.error?.state)
      }
    }
    if report.leftovers != nil, let phase = journal.phase {
      // If it fails again, the files stay: they are of no harm to the app.
      _ = try? Recovery(record: phase, openPolicy: .shared).perform()
    }
    try journal.finish(report, recordedAs: StorePath(path))
    onReport(report)
    return report.error
  }

  // MARK: After a crash

  /// Recovers runs on this store that earlier processes did not finish.
  private func recover() throws(InstarError) {
    guard access(stateFolder + "/phases", F_OK) == 0 else { return }
    let state = try openStateFolder()
    let (records, unreadable) = try state.openPhases()
    // One of them may be of this store. Its lock protects a live run; what a dead run left stays until a person removes
    // it.
    for error in unreadable { ModelConfiguration.reportOnce("warning: \(error)") }
    for record in records where record.store == path {
      _ = try RunJournal.recover(record, in: state, recordedAs: StorePath(path)) {
        phase throws(InstarError) in
        do throws(InstarError) {
          return try Recovery(record: phase, openPolicy: .shared).perform()
        } catch  where phase.isInLedger == true {
          // The run has ended, and files that stay are of no harm to the app.
          return RecoveryReport(run: phase.run, store: phase.store, outcome: .discarded)
        }
      }
    }
  }

  private func openStateFolder() throws(InstarError) -> StateFolder {
    do {
      return try StateFolder(path: stateFolder)
    } catch {
      var known = error
      known.next = Self.otherStateFolder
      throw known
    }
  }

  private static let otherStateFolder = "choose another folder with INSTAR_STATE_DIR"
}

/// The supervisor's side of a run in this process: each phase goes to disk before the run may enter it.
private final class InProcessConversation: KeeperConversation {
  private let journal: RunJournal
  private var answer: KeeperRequest?

  init(_ journal: RunJournal) { self.journal = journal }

  func next() throws(InstarError) -> KeeperRequest? {
    defer { answer = nil }
    return answer
  }

  func send(_ event: KeeperEvent) throws(InstarError) {
    guard case .ask(let record) = event else { return }
    try journal.enter(record)
    answer = .proceed
  }
}

/// The worker's side of a run in this process: the app's own plan.
///
/// Sendable because a run uses it on the one thread that opens the container.
private struct InProcessPluginHost: PluginHost, @unchecked Sendable {
  let plan: PlanDefinition
  let stages: StoreMigration.Stages

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    PluginManifest(plans: [plan.manifest])
  }

  func plan(
    _ name: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    try plan.migration(from: version, of: store)
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    let connection = try StoreConnection(
      path: work.clone, durability: .clone, externalFolder: work.externalFolder,
      log: SQLLog.ofThisProcess())
    var failure: InstarError?
    do throws(InstarError) {
      let path = try plan.path(from: work.from)
      try withoutActuallyEscaping(onEvent) { onEvent throws(InstarError) in
        try stages(
          StageExecutor.Clone(connection: connection, store: work.store, path: path) { event in
            do throws(InstarError) {
              switch event {
              case .stageStarted(let stage): try onEvent(.stageStarted(stage))
              case .stageFinished(let stage): try onEvent(.stageFinished(stage))
              case .valuesLost(let values): try onEvent(.valuesLost(values))
              case .ready, .described, .planned, .progress, .fetchedWhole, .sql, .migrated, .failed:
                break
              }
            } catch {
              failure = error
            }
          })
      }
    } catch {
      failure = error
    }
    try connection.close()
    if let failure { throw failure }
  }
}
