internal import InstarEngine
internal import InstarKeeper
internal import InstarLinux
internal import InstarStore
internal import InstarSupervisor
internal import InstarWire

/// Brings the store of a container that is being opened to the last version of its plan, in this process.
///
/// The process is supervisor, keeper and worker in one: it writes the phase journal and the ledger, does what
/// `MigrationRun` does to a store, and runs the stages on the clone. What it gives up by that is the worker's confinement:
/// the plan is the app's own code. Invariants are those of `MigrationRun`; besides, no descriptor of the store is opened
/// but by SQLite (`StoreOpening.shared`), because other containers of the process may have it open.
struct FileMigration {
  /// Absolute, without symbolic links.
  let path: String
  let plan: PlanDefinition
  let isReadOnly: Bool
  let stateFolder: String

  /// How often a store is looked at again that another process migrated meanwhile.
  private static let attempts = 3
  /// How long to wait for others that write the store, as an open container waits too.
  private static let busyTimeoutSeconds = 5.0

  func run() throws(InstarError) {
    try recover()
    for attempt in 1... {
      guard let adopted = try versionToAdopt() else { return }
      let failure = try migrate(adopting: adopted.version)
      guard let failure else { return }
      guard failure.code == .storeChanged, attempt < Self.attempts else { throw failure }
    }
  }

  // MARK: Where the store stands

  /// What a store that is to be migrated has to be adopted as.
  private struct Adoption {
    /// `nil` where the store declares its version itself.
    var version: Schema.Version?
  }

  /// - Returns: `nil` where there is nothing to do.
  private func versionToAdopt() throws(InstarError) -> Adoption? {
    let manifest = plan.manifest
    let probe = try StoreProbe.readShared(
      path, versionSources: [manifest.versionSource], busyTimeout: Self.busyTimeoutSeconds)
    // A database without any tables: the container fills it.
    if probe.identity.format == .plain, probe.identity.structure.tables.isEmpty { return nil }
    let identity = probe.identity.seen(
      from: manifest.versionSource, importing: manifest.importedVersions)
    let match = SchemaMatch(of: identity, among: manifest.candidates)
    let version = try plan.startingVersion(of: match)
    if match.state == .current { return nil }
    // What speaks against the stages themselves is said before a folder is made or a lock is taken.
    _ = try plan.migration(from: version)
    guard !isReadOnly else {
      // One that is only not stamped can be read all the same.
      if version == plan.versions.last?.schema.version { return nil }
      throw InstarError(
        .unreadableStore, "cannot migrate the store",
        cause: "it is at \(version), and its configuration does not allow to save",
        next: "open it once with allowsSave: true")
    }
    return Adoption(version: match.state == .unversioned ? version : nil)
  }

  // MARK: The run

  /// - Returns: Why the run failed; `nil` where the store is at the last version now.
  private func migrate(adopting version: Schema.Version?) throws(InstarError) -> InstarError? {
    let state = try openStateFolder()
    let backups = state.path + "/backups"
    guard mkdir(backups, 0o700) == 0 || errno == EEXIST else {
      throw InstarError(
        .stateFolderFailed, "cannot make the folder '\(backups)'",
        cause: String(cString: strerror(errno)), next: Self.otherStateFolder)
    }
    let program = CommandLine.arguments.first ?? ""
    var request = MigrationRequest(
      run: RunIdentifier.make(), store: path, plugins: [program], adopt: version,
      busyTimeoutSeconds: Self.busyTimeoutSeconds)
    request.backupFolder = backups
    guard let lock = try state.tryLock(run: request.run) else {
      throw InstarError(
        .stateFolderFailed, "cannot begin run \(request.run)", cause: "there is a run of that name")
    }
    defer { state.unlock(run: request.run, lock) }
    let conversation = OwnConversation(state)
    let manifest = plan.manifest
    var run = MigrationRun(
      request, conversation: conversation, host: OwnPluginHost(plan: plan), opening: .shared
    ) { [PluginCatalog.Plan(plugin: program, manifest: manifest)] }
    let report = run.perform()
    if report.result != .current {
      // Where this fails the phase record stays: the next opening finds what became of the store, and notes it.
      try state.append(report)
    }
    if conversation.hasRecord { try state.close(run: request.run) }
    return report.error
  }

  // MARK: After a crash

  /// Finishes or clears away what earlier processes began on this store and did not end.
  private func recover() throws(InstarError) {
    guard access(stateFolder + "/phases", F_OK) == 0 else { return }
    let state = try openStateFolder()
    for record in try state.openPhases().records where record.store == path {
      // A run that is going on is met as a lock.
      guard let lock = try state.tryLock(run: record.run) else { continue }
      defer { state.unlock(run: record.run, lock) }
      guard let phase = try state.phase(of: record.run) else { continue }
      let recovered = try Recovery(record: phase, opening: .shared).perform()
      try state.append(RunReport(of: recovered, phase: phase))
      try state.close(run: record.run)
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

  private static let otherStateFolder = "name another one with INSTAR_STATE_DIR"
}

/// The supervisor's side of a run in this process: each phase goes to disk before the run may enter it.
private final class OwnConversation: KeeperConversation {
  private let state: StateFolder
  private var answer: KeeperRequest?
  /// Whether a phase of the run is on disk.
  private(set) var hasRecord = false

  init(_ state: StateFolder) { self.state = state }

  func next() throws(InstarError) -> KeeperRequest? {
    defer { answer = nil }
    return answer
  }

  func send(_ event: KeeperEvent) throws(InstarError) {
    guard case .ask(let record) = event else { return }
    try state.record(record)
    hasRecord = true
    answer = .proceed
  }
}

/// The worker's side of a run in this process: the app's own plan.
private struct OwnPluginHost: PluginHost {
  let plan: PlanDefinition

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    PluginManifest(plans: [plan.manifest])
  }

  func plan(
    _ name: String, from version: Schema.Version, plugin: String, store: StoreSketch?
  ) throws(InstarError) -> MigrationPlan {
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
        try StageExecutor(connection: connection) { event in
          do throws(InstarError) {
            switch event {
            case .stageStarted(_, _, let stage): try onEvent(.stageStarted(stage))
            case .stageFinished(_, _, let stage, _): try onEvent(.stageFinished(stage))
            case .ready, .described, .planned, .sql, .migrated, .failed: break
            }
          } catch {
            failure = error
          }
        }
        .run(path, plan: plan.name)
      }
    } catch {
      failure = error
    }
    try connection.close()
    if let failure { throw failure }
  }
}
