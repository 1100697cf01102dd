import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

@testable import InstarDaemon

/// A queue with stores of one plan, and runs that end when a test says so.
struct Fleet {
  static let plan = "NotesPlan"
  var queue: StoreQueue
  var now = ContinuousClock.now
  var configuration = Configuration()
  /// Stores whose run has begun, in order.
  var begun: [String] = []
  var rehearsed: [String] = []
  var changes: [Rollout.Change] = []
  var reported: [Manager.Rollout] = []
  /// Stores of which a failure to probe them was reported, all of them and those before the last change.
  var failedProbes: [String] = []
  var failedProbesAtChange: [String] = []
  var versions: [String: Int64] = [:]
  /// The last version of the plan in each plugin that is not at 2.0.0.
  var lastVersions: [String: Schema.Version] = [:]
  /// The plugin that knows a store, by its path, where it is not `pluginPath`.
  var plugins: [String: String] = [:]
  var pluginPath = "/p/Notes.so"
  /// Stores with a hold.
  var held: Set<String> = []
  /// The quarantined stores that are on disk.
  var quarantined: [String: QuarantineRecord] = [:]
  /// Stores that keepers cannot read.
  var unreadable: Set<String> = []
  /// Stores that end the keeper that probes them.
  var endingKeepers: Set<String> = []
  /// Stores that are locked when they are probed.
  var busy: Set<String> = []
  /// The stores that were migrated.
  var current: Set<String> = []
  private var isChanging = false
  /// Stores whose probe is out.
  private var probed: [String] = []

  /// - Parameter stores: How many stores a scan has found already.
  init(_ settings: RolloutSettings?, policy: MigrationPolicy = .automatic, stores: Int = 0) {
    configuration.debounce = .milliseconds(500)
    configuration.retry = Configuration.Retry(first: .seconds(10), most: .seconds(60))
    configuration.parallelRuns = 64
    configuration.rollout = settings
    configuration.watches = [
      Configuration.Watch(folder: "/srv", policy: policy),
      Configuration.Watch(folder: "/late", policy: policy, wave: 2),
    ]
    queue = StoreQueue(settings: StoreQueue.Settings(configuration))
    _ = queue.handle(.pluginsKnown([Self.plugin(1)]), at: now)
    _ = queue.handle(.released, at: now)
    if stores > 0 { find(Self.stores(stores)) }
  }

  static func plugin(
    _ modified: Int64, path: String = "/p/Notes.so"
  ) -> RolloutRecord.PluginFile {
    RolloutRecord.PluginFile(path: path, bytes: 1, modified: modified)
  }

  static func hold(_ store: String) -> Hold {
    Hold(
      id: "H", store: store, device: 1, inode: 1, createdNanoseconds: 0, by: "anna", since: 1,
      why: "a test")
  }

  static func stores(_ count: Int, in folder: String = "/srv") -> [String] {
    (0..<count).map { "\(folder)/\($0).store" }
  }

  mutating func send(_ event: StoreQueue.Event) {
    for action in queue.handle(event, at: now) { perform(action) }
    // The daemon sends more events after it, and only these begin work.
    if case .settingsChanged = event { send(.tick) }
  }

  private mutating func perform(_ action: StoreQueue.Action) {
    switch action {
    case .run(let store, _, let rehearses):
      if rehearses { rehearsed.append(store) } else { begun.append(store) }
    case .rolloutChanged(let rollout, let change):
      changes.append(change)
      reported.append(rollout)
      failedProbesAtChange = failedProbes
    case .reportProbeFailure(let store, _, _): failedProbes.append(store)
    case .probe(let stores):
      probed += stores
    case .keepQuarantine(let record): quarantined[record.store] = record
    case .endQuarantine(let stores): for store in stores { quarantined[store] = nil }
    case .readVersion(let store): send(.versionRead(store, version(of: store)))
    default: break
    }
  }

  /// Has a scan find stores, and answers their probes.
  mutating func find(_ stores: [String], thenScanned: Bool = true) {
    for store in stores { send(.versionRead(store, version(of: store))) }
    answerProbes()
    if thenScanned { send(.scanned) }
  }

  mutating func answerProbes() {
    while !probed.isEmpty {
      let batch = probed
      probed = []
      for store in batch {
        var report = ProbeReport(
          store: store, format: .plain, state: current.contains(store) ? .current : .behind)
        report.plan = Self.plan
        report.plugin = plugins[store] ?? pluginPath
        report.planVersion =
          lastVersions[report.plugin ?? ""] ?? Schema.Version(2, 0, 0)
        if held.contains(store) { report.hold = Self.hold(store) }
        if busy.contains(store) {
          (report.state, report.plan, report.planVersion) = (.busy, nil, nil)
        }
        if unreadable.contains(store) { report = ProbeReport(store: store, state: .unreadable) }
        if endingKeepers.contains(store) {
          report = ProbeReport(store: store, state: .unknown)
          report.error = InstarError(
            .keeperDied, "cannot continue without the keeper", cause: "the keeper crashed")
        }
        send(.probed(report, before: version(of: store), after: version(of: store)))
      }
      send(.probesEnded(nil))
    }
  }

  func version(of store: String) -> WatchedVersion {
    WatchedVersion(
      FileVersion(
        identity: FileIdentity(device: 1, inode: 1), sizeBytes: 4096,
        modifiedNanoseconds: versions[store] ?? 1))
  }

  /// Ends a run, and lets the probe after it find what the run left.
  mutating func end(
    _ store: String, _ result: RunReport.Result = .migrated, _ error: InstarError? = nil
  ) {
    let before = version(of: store)
    if result == .migrated { current.insert(store) }
    if result == .migrated || isChanging { versions[store, default: 1] += 1 }
    var report = RunReport(run: "R\(store)", store: store, result: result, startedAt: 1000)
    report.error = error
    send(.runEnded(report, before: before, after: version(of: store)))
    wait(.seconds(1))
  }

  mutating func endAll(_ stores: some Sequence<String>) {
    for store in stores { end(store) }
  }

  mutating func failAll(_ stores: some Sequence<String>) {
    for store in stores { fail(store) }
  }

  /// Ends runs, also those that begin meanwhile, until none is in progress.
  mutating func endAllRuns() {
    while let store = begun.first(where: { activity($0) == .running }) { end(store) }
  }

  mutating func configure(_ change: (inout Configuration) throws -> Void) rethrows {
    try change(&configuration)
    send(.settingsChanged(StoreQueue.Settings(configuration)))
  }

  /// Has the daemon find these plugins in place of the former ones, and probe the stores again.
  mutating func install(_ plugins: RolloutRecord.PluginFile...) {
    send(.pluginsKnown(plugins))
    send(.verdictsInDoubt)
    answerProbes()
  }

  mutating func order(_ order: StoreQueue.RolloutOrder) {
    send(.rolloutOrder(plan: Self.plan, order))
  }

  mutating func halt(why: String? = nil) {
    order(.halt(Manager.Pause(by: "anna (1000)", since: 1000, why: why)))
  }

  /// Has an operator retry a store.
  mutating func retry(_ store: String) {
    send(.retryWanted([store], byOperator: true))
    answerProbes()
  }

  /// Has the daemon read its configuration again.
  mutating func reload(policy: MigrationPolicy) {
    for index in configuration.watches.indices { configuration.watches[index].policy = policy }
    reload()
  }

  mutating func reload() {
    send(.settingsChanged(StoreQueue.Settings(configuration)))
    send(.verdictsInDoubt)
    answerProbes()
  }

  /// Ends the recovery of a run that was past its cutover.
  mutating func finishRecovery(of store: String) {
    current.insert(store)
    send(.recovered(store, nil))
    wait(.seconds(1))
  }

  /// - Parameter changing: An app writes the store meanwhile.
  mutating func fail(
    _ store: String, _ code: InstarError.Code = .stageFailed, changing: Bool = false
  ) {
    isChanging = changing
    defer { isChanging = false }
    let error = InstarError(code, "cannot migrate", store: store, cause: "a note has no title")
    end(store, code == .busyStore ? .busy : .failed, error)
  }

  mutating func wait(_ duration: Duration) {
    now += duration
    send(.tick)
    answerProbes()
  }

  /// Has an app write a store.
  mutating func write(_ store: String) {
    versions[store, default: 1] += 1
    send(.touched(store))
    wait(.seconds(1))
  }

  /// Takes from keepers the right to read a store, until it is quarantined.
  mutating func makeUnreadable(_ store: String) {
    unreadable.insert(store)
    write(store)
    for _ in 1...2 { wait(.seconds(60)) }
  }

  /// The stores whose run begins during `act`.
  mutating func begins(_ act: (inout Fleet) -> Void) -> [String] {
    let before = begun.count
    act(&self)
    return Array(begun[before...])
  }

  var statuses: [Manager.Rollout] { queue.rolloutStatuses(at: now) }
  var status: Manager.Rollout? { statuses.first }
  func status(of store: String, isAdmin: Bool = true) -> Manager.Store? {
    queue.status(of: store, at: now, isAdmin: isAdmin)
  }
  func activity(_ store: String) -> Manager.Activity? { status(of: store)?.activity }
}

extension RolloutSettings {
  static func waves(
    canary: Int? = nil, _ waves: [String] = [], soak: Duration = .zero, budget: String? = nil
  ) -> RolloutSettings {
    var settings = RolloutSettings()
    settings.canary = canary.map { .count($0) }
    settings.waves = waves.compactMap(RolloutSettings.Share.init)
    settings.soak = soak
    settings.budget = budget.flatMap(RolloutSettings.Share.init)
    return settings
  }
}
