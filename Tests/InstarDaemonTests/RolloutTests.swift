import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

/// A queue with stores of one plan, and runs that end when a test says so.
private struct Fleet {
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

  init(_ settings: RolloutSettings?, policy: MigrationPolicy = .automatic) {
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
  }

  /// The last version of the plan in each plugin that is not at 2.0.0.
  var lastVersions: [String: Schema.Version] = [:]
  /// The plugin that knows a store, by its path, where it is not `pluginPath`.
  var plugins: [String: String] = [:]
  /// Stores with a hold.
  var held: Set<String> = []

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

  /// The quarantined stores that are on disk.
  var quarantined: [String: QuarantineRecord] = [:]
  /// Stores that keepers cannot read.
  var unreadable: Set<String> = []
  /// Stores that end the keeper that probes them.
  var endingKeepers: Set<String> = []
  /// Stores that are locked when they are probed.
  var busy: Set<String> = []
  var pluginPath = "/p/Notes.so"
  private var isChanging = false
  /// Stores whose probe is out.
  private var probed: [String] = []
  /// The stores that were migrated.
  fileprivate var current: Set<String> = []

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

  func version(of store: String) -> FileVersion {
    FileVersion(
      identity: FileIdentity(device: 1, inode: 1), sizeBytes: 4096,
      modifiedNanoseconds: versions[store] ?? 1)
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

  var status: Manager.Rollout? { queue.rolloutStatuses(at: now).first }
  func activity(_ store: String) -> Manager.Activity? {
    queue.status(of: store, at: now)?.activity
  }
}

private func waves(
  canary: Int? = nil, _ waves: [String] = [], soak: Duration = .zero, budget: String? = nil
) -> RolloutSettings {
  var settings = RolloutSettings()
  settings.canary = canary.map { .count($0) }
  settings.waves = waves.compactMap(RolloutSettings.Share.init)
  settings.soak = soak
  settings.budget = budget.flatMap(RolloutSettings.Share.init)
  return settings
}

@Suite("Rollout: waves")
struct RolloutWaveTests {
  @Test("the budget of a watch halts the rollout that the budget of all stores would permit")
  func watchBudget() {
    var fleet = Fleet(nil)
    fleet.configuration.watches[1].budget = .count(1)
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    let (many, late) = (Fleet.stores(8), Fleet.stores(4, in: "/late"))
    fleet.find(many + late)
    let broken = InstarError(.stageFailed, "cannot migrate", cause: "broken")
    for store in many.prefix(3) { fleet.end(store, .failed, broken) }
    fleet.end(late[0], .failed, broken)
    #expect(!fleet.changes.contains(.halted))
    fleet.end(late[1], .failed, broken)
    #expect(fleet.changes.last == .halted)
    #expect(
      fleet.reported.last?.halt?.why
        == "2 of 4 stores of '/late' failed, and the budget is 1")
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    fleet.end(late[2], .failed, broken)
    #expect(fleet.changes.last == .resumed)
  }

  @Test("the canary is migrated first, then shares of all stores, then the rest")
  func canaryFirst() {
    var fleet = Fleet(waves(canary: 1, ["10%", "50%"]))
    fleet.find(Fleet.stores(20))
    #expect(fleet.begun.count == 1)
    #expect(fleet.begins { $0.end($0.begun[0]) }.count == 1)
    #expect(fleet.begins { $0.end($0.begun[1]) }.count == 8)
    let third = fleet.begins { fleet in for store in fleet.begun[2..<10] { fleet.end(store) } }
    #expect(third.count == 10)
    for store in third { fleet.end(store) }
    #expect(Set(fleet.begun) == Set(Fleet.stores(20)) && fleet.begun.count == 20)
    #expect(fleet.status?.migrated == 20 && fleet.status?.wave == 4)
    #expect(
      fleet.changes == [
        .waveOpened, .waveDone, .waveOpened, .waveDone, .waveOpened, .waveDone, .waveOpened,
        .finished,
      ])
  }

  @Test("no store has its turn before all stores are counted")
  func countsFirst() {
    var fleet = Fleet(waves(["50%"]))
    fleet.find(Fleet.stores(10), thenScanned: false)
    #expect(fleet.begun.isEmpty && fleet.activity("/srv/0.store") == .pending)
    #expect(
      fleet.queue.status(of: "/srv/0.store", at: fleet.now)?.reason
        == "waits until all stores are probed")
    fleet.send(.scanned)
    #expect(fleet.begun.count == 5)
  }

  @Test(
    "the next wave waits until each store of the last one is found current, and then for the soak")
  func soak() {
    var fleet = Fleet(waves(canary: 1, soak: .seconds(600)))
    fleet.find(Fleet.stores(3))
    fleet.end(fleet.begun[0])
    #expect(fleet.begun.count == 1)
    #expect(fleet.status?.secondsToNextWave.map { $0 > 590 } == true)
    fleet.wait(.seconds(500))
    #expect(fleet.begun.count == 1)
    fleet.wait(.seconds(100))
    #expect(fleet.begun.count == 3)
  }

  @Test("a rollout whose stores leave for a while goes on in waves when they come back")
  func storesLeave() {
    var fleet = Fleet(waves(canary: 1, ["50%"], soak: .seconds(600)))
    let stores = Fleet.stores(10)
    fleet.find(stores)
    let canary = fleet.begun[0]
    fleet.end(canary)
    for store in stores { fleet.send(.forgotten(store)) }
    fleet.wait(.seconds(700))
    #expect(!fleet.changes.contains(.finished))
    fleet.find(stores)
    #expect(fleet.begun.count > 1 && fleet.begun.count < 10)

    // The others leave after the canary: later ones still have their turn in waves.
    var half = Fleet(waves(canary: 1, ["50%"]))
    half.find(Array(stores.prefix(1)))
    half.end(half.begun[0])
    #expect(half.changes.last == .finished)
    half.find(stores)
    #expect(half.begun.count > 1 && half.begun.count < 10)
  }

  @Test(
    "other waves in the configuration skip none: each store has its turn in the first that is larger"
  )
  func wavesChange() {
    var fleet = Fleet(waves(canary: 1, ["10%", "50%"], soak: .seconds(600)))
    fleet.find(Fleet.stores(20))
    fleet.end(fleet.begun[0])
    fleet.wait(.seconds(600))
    fleet.end(fleet.begun[1])
    #expect(fleet.begun.count == 2 && fleet.changes.last == .waveDone)
    fleet.configuration.rollout = waves(canary: 1, ["50%"], soak: .seconds(600))
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 10)
  }

  @Test("stores of a watch with a later wave wait for that wave")
  func waveOfWatch() {
    var fleet = Fleet(waves(canary: 2))
    fleet.find(Fleet.stores(4, in: "/late") + Fleet.stores(1))
    #expect(fleet.begun == ["/srv/0.store"])
    fleet.end("/srv/0.store")
    #expect(fleet.begun.count == 5)
  }

  @Test("another store takes the place of a canary that others use")
  func busyIsDeferred() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    let busy = fleet.begun[0]
    fleet.fail(busy, .busyStore)
    #expect(fleet.begun.count == 2 && fleet.status?.wave == 1 && fleet.status?.deferred == 1)
    // It is no longer behind alone: its turn comes with the next wave.
    #expect(fleet.begins { $0.wait(.seconds(30)) }.isEmpty)
    let canary = fleet.begun[1]
    #expect(
      Set(fleet.begins { $0.end(canary) }) == Set(Fleet.stores(3)).subtracting([canary]))
  }

  @Test("a wave in which all stores are in use does not end")
  func allBusy() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    for _ in 0..<3 { if let last = fleet.begun.last { fleet.fail(last, .busyStore) } }
    #expect(fleet.status?.deferred == 3 && fleet.status?.wave == 1)
    let retried = fleet.begins { $0.wait(.seconds(30)) }
    #expect(retried.count == 1)
    fleet.end(retried[0])
    #expect(fleet.status?.migrated == 1 && fleet.status?.wave == 2)
  }

  @Test("stores that are in use after the canary wait for their own wave")
  func busyAfterCanary() {
    var fleet = Fleet(waves(canary: 1, ["50%"], soak: .seconds(600)))
    fleet.find(Fleet.stores(4))
    fleet.end(fleet.begun[0])
    fleet.wait(.seconds(600))
    // Half of the stores have had their turn when another one has.
    for _ in 0..<3 { if let last = fleet.begun.last { fleet.fail(last, .busyStore) } }
    #expect(fleet.status?.wave == 2 && fleet.status?.deferred == 3)
    #expect(!fleet.changes.contains(.finished))
    let retried = fleet.begins { $0.wait(.seconds(30)) }
    #expect(retried.count == 1)
    fleet.end(retried[0])
    #expect(fleet.status?.secondsToNextWave != nil)
  }

  @Test("a wave without stores of its own ends, so that the next one opens")
  func emptyWave() {
    var fleet = Fleet(waves(canary: 1, ["50%"]))
    fleet.find(Fleet.stores(4, in: "/late"))
    #expect(fleet.status?.wave == 2 && fleet.begun.count == 2)
  }

  @Test("stores that are busy at each probe do not keep the others from being counted")
  func busyProbes() {
    var fleet = Fleet(waves(canary: 1))
    fleet.busy = Set(Fleet.stores(5, in: "/late"))
    fleet.find(Fleet.stores(3) + Fleet.stores(5, in: "/late"), thenScanned: false)
    for store in fleet.busy { fleet.send(.retryWanted([store], byOperator: true)) }
    fleet.send(.scanned)
    #expect(fleet.begun.count == 1)
  }

  @Test("the rollout of a plugin under another name starts again, with its canary")
  func renamedPlugin() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(5))
    fleet.fail(fleet.begun[0])
    #expect(fleet.begun.count == 5 && fleet.status?.wave == 2)
    for store in fleet.begun[1...] { fleet.fail(store) }
    let begun = fleet.begins { fleet in
      fleet.pluginPath = "/p/Notes-2.so"
      fleet.send(.pluginsKnown([Fleet.plugin(2, path: "/p/Notes-2.so")]))
      fleet.send(.verdictsInDoubt)
      fleet.answerProbes()
    }
    #expect(begun.count == 1 && fleet.status?.wave == 1 && fleet.status?.failed == 0)
  }

  @Test("a reload in a soak keeps the soak, also where fewer waves are left")
  func reloadInSoak() {
    var fleet = Fleet(waves(canary: 1, ["20%", "50%"], soak: .seconds(600)))
    fleet.find(Fleet.stores(20))
    fleet.end(fleet.begun[0])
    fleet.wait(.seconds(600))
    for store in fleet.begun.dropFirst() { fleet.end(store) }
    #expect(fleet.status?.wave == 2 && fleet.begun.count == 4)
    fleet.configuration.rollout = waves(canary: 1, soak: .seconds(3600))
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    #expect(fleet.begun.count == 4)
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 20)
  }

  @Test("the rollout of a changed plugin starts again, with its canary")
  func changedPlugin() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(5))
    fleet.fail(fleet.begun[0])
    #expect(fleet.begun.count == 5)
    for store in fleet.begun[1...] { fleet.end(store) }
    let begun = fleet.begins { fleet in
      fleet.send(.pluginsKnown([Fleet.plugin(2)]))
      fleet.send(.verdictsInDoubt)
      fleet.answerProbes()
    }
    #expect(begun == [fleet.begun[0]] && fleet.status?.wave == 1)
  }

  @Test(
    "a reload that asks for approvals holds back the stores that wait, and one that no longer asks lets them go on"
  )
  func policyChanges() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    let canary = fleet.begun[0]
    fleet.reload(policy: .ask)
    fleet.end(canary)
    #expect(fleet.begun == [canary] && fleet.status?.unapproved == 2)
    fleet.reload(policy: .automatic)
    #expect(fleet.begun.count == 3 && fleet.status?.unapproved == 0)
  }

  @Test(
    "a store that cannot be probed after its run does not hold up its wave, and counts when it can be"
  )
  func unreadable() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    let canary = fleet.begun[0]
    fleet.unreadable = [canary]
    fleet.end(canary)
    #expect(fleet.status?.deferred == 1 && fleet.begun.count == 2)
    fleet.unreadable = []
    fleet.wait(.seconds(60))
    #expect(fleet.status?.migrated == 1 && fleet.status?.deferred == 0)
  }

  @Test("a store that cannot be probed before its turn comes is replaced, and leaves the rollout")
  func unreadableBeforeTurn() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.find(Fleet.stores(3))
    let canary = fleet.begun[0]
    let waiting = Fleet.stores(3).filter { $0 != canary }
    fleet.unreadable = [waiting[0]]
    fleet.write(waiting[0])
    #expect(fleet.status?.deferred == 1 && fleet.status?.waiting == 1)
    fleet.makeUnreadable(waiting[0])
    #expect(fleet.activity(waiting[0]) == .quarantined)
    #expect(fleet.status?.stores == 2 && fleet.status?.halt == nil)
    #expect(fleet.begins { $0.end(canary) } == [waiting[1]])
    fleet.end(waiting[1])
    #expect(fleet.changes.last == .finished)
    // When somebody has corrected its owner or mode, it is migrated like every store that comes later.
    fleet.unreadable = []
    let begun = fleet.begins {
      $0.send(.retryWanted([waiting[0]], byOperator: true))
      $0.answerProbes()
    }
    #expect(begun == [waiting[0]] && fleet.status?.stores == 3)
  }

  @Test("a store that its app locks after it was migrated counts as migrated")
  func busyAfterRun() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.configuration.retry.attempts = 2
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.find(Fleet.stores(2))
    let canary = fleet.begun[0]
    fleet.busy = [canary]
    fleet.end(canary)
    #expect(fleet.status?.deferred == 1)
    fleet.wait(.seconds(30))
    #expect(fleet.activity(canary) == .quarantined)
    #expect(fleet.status?.migrated == 1 && fleet.status?.halt == nil)
  }

  @Test("code that throws counts although an app changes the store all the time")
  func changingStore() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.find(Fleet.stores(3))
    fleet.fail(fleet.begun[0], changing: true)
    #expect(fleet.status?.isHaltedByFailures == true)
  }

  @Test("the report of a wave names that wave")
  func reports() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    fleet.end(fleet.begun[0])
    #expect(fleet.changes == [.waveOpened, .waveDone, .waveOpened])
    #expect(fleet.reported.map(\.wave) == [1, 1, 2])
  }

  @Test("a watch's wave beyond the last one is the last one")
  func waveBeyondLast() {
    var fleet = Fleet(waves())
    fleet.find(Fleet.stores(2, in: "/late"))
    #expect(fleet.begun.count == 2)
  }

  @Test("a store that appears after the last wave is migrated at once")
  func newcomer() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(1))
    fleet.end(fleet.begun[0])
    #expect(fleet.changes.last == .finished)
    #expect(fleet.begins { $0.find(["/srv/new.store"]) } == ["/srv/new.store"])
  }
}

@Suite("Rollout: halts and orders")
struct RolloutOrderTests {
  @Test("more failures than the budget halt the rollout, until an operator resumes it")
  func budget() {
    var fleet = Fleet(waves(canary: 4, budget: "1"))
    fleet.find(Fleet.stores(10))
    fleet.fail(fleet.begun[0])
    #expect(fleet.status?.halt == nil)
    fleet.fail(fleet.begun[1])
    #expect(fleet.status?.isHaltedByFailures == true && fleet.changes.last == .halted)
    #expect(fleet.status?.halt?.why == "2 of 10 stores failed, and the budget is 1")
    fleet.end(fleet.begun[2])
    fleet.end(fleet.begun[3])
    #expect(fleet.begun.count == 4 && fleet.activity(fleet.begun[0]) == .quarantined)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    #expect(fleet.begun.count == 10)
    fleet.fail(fleet.begun[4])
    #expect(fleet.status?.halt == nil)
    fleet.fail(fleet.begun[5])
    #expect(fleet.status?.halt != nil)
  }

  @Test("a retry during a halt keeps the store's error, and its run starts with the resume")
  func retryInHalt() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.find(Fleet.stores(3))
    let failed = fleet.begun[0]
    fleet.fail(failed)
    let error = fleet.queue.status(of: failed, at: fleet.now)?.error
    #expect(error != nil && fleet.queue.waitsForRetry(failed))
    let reason =
      "the rollout of NotesPlan is halted: 1 of 3 stores failed, and the budget is 0; "
      + "run: instarctl resume --plan NotesPlan"
    func reasonNotToRetry(isAdmin: Bool) -> String? {
      fleet.queue.reasonNotToRetry(failed, isAdmin: isAdmin, at: fleet.now) { _ in "" }
    }
    #expect(reasonNotToRetry(isAdmin: true) == reason)
    let ofOwner = reason.replacing("run: ", with: "ask an administrator to run: ")
    #expect(reasonNotToRetry(isAdmin: false) == ofOwner)
    fleet.send(.retryWanted([failed], byOperator: true))
    fleet.answerProbes()
    let waiting = fleet.queue.status(of: failed, at: fleet.now)
    #expect(waiting?.activity == .pending && waiting?.error == error)
    #expect(waiting?.turn == .failed, "so it is still listed as failed")
    #expect(waiting?.reason == reason, "status and retry have one text")
    let seenByOwner = fleet.queue.status(of: failed, at: fleet.now, isAdmin: false)
    #expect(seenByOwner?.reason == ofOwner)
    let begun = fleet.begins { $0.send(.rolloutOrder(plan: Fleet.plan, .resume)) }
    #expect(begun.contains(failed))
    // An operator knows of its failure; one of another store halts the rollout.
    fleet.fail(failed)
    #expect(fleet.status?.halt == nil)
    for other in begun where other != failed { fleet.fail(other) }
    #expect(fleet.status?.isHaltedByFailures == true)
  }

  @Test("a rollout that is halted starts no queued run either")
  func haltReachesQueue() {
    var fleet = Fleet(nil)
    fleet.configuration.parallelRuns = 1
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.find(Fleet.stores(10))
    let running = fleet.begun.count
    #expect(running < 10)
    let pause = Manager.Pause(by: "anna (1000)", since: 1000, why: "a note was lost")
    fleet.send(.rolloutOrder(plan: Fleet.plan, .halt(pause)))
    for store in fleet.begun { fleet.end(store) }
    #expect(fleet.begun.count == running)
    #expect(fleet.status?.admitted == 0)
    #expect(
      fleet.queue.status(
        of: Fleet.stores(10).first { !fleet.begun.contains($0) } ?? "", at: fleet.now)?.reason
        == "the rollout of NotesPlan is halted: a note was lost; run: instarctl resume --plan NotesPlan"
    )
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    while let store = fleet.begun.first(where: { fleet.activity($0) == .running }) {
      fleet.end(store)
    }
    #expect(Set(fleet.begun).count == 10)
  }

  @Test("the time left has the times between waves, and is unknown while a rollout is halted")
  func timeLeft() {
    var fleet = Fleet(waves(canary: 1, ["50%"], soak: .seconds(600)))
    fleet.find(Fleet.stores(4))
    #expect(fleet.queue.timeLeft(at: fleet.now) == nil)
    fleet.wait(.seconds(10))
    fleet.end(fleet.begun[0])
    // The canary's wave has begun to soak. Three runs of 10 s and the soak of the next wave follow.
    #expect(fleet.status?.secondsToNextWave == 600)
    #expect(fleet.queue.timeLeft(at: fleet.now) == .seconds(1230))
    let pause = Manager.Pause(by: "anna (1000)", since: 1000, why: "a note was lost")
    fleet.send(.rolloutOrder(plan: Fleet.plan, .halt(pause)))
    #expect(fleet.queue.timeLeft(at: fleet.now) == nil)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 2)
    #expect(fleet.queue.timeLeft(at: fleet.now) == .seconds(630))
  }

  @Test("stores of a watch with the policy 'ask' wait for an approval")
  func approval() {
    var fleet = Fleet(nil, policy: .ask)
    fleet.find(Fleet.stores(3))
    #expect(fleet.begun.isEmpty && fleet.status?.unapproved == 3)
    // An owner may not approve the stores of others.
    for (isAdmin, argument) in [(true, "--plan NotesPlan"), (false, "STORE")] {
      let status = fleet.queue.status(of: "/srv/1.store", at: fleet.now, isAdmin: isAdmin)
      #expect(status?.reason == "waits for an approval; run: instarctl approve \(argument)")
    }
    fleet.send(.rolloutOrder(plan: Fleet.plan, .approve(["/srv/1.store"])))
    #expect(fleet.begun == ["/srv/1.store"])
    fleet.send(.rolloutOrder(plan: Fleet.plan, .approve([])))
    #expect(Set(fleet.begun) == Set(Fleet.stores(3)))
    #expect(fleet.begins { $0.find(["/srv/new.store"]) } == ["/srv/new.store"])
  }

  @Test(
    "a store that was migrated before the policy was 'ask', and is behind again, waits for an approval"
  )
  func approvalOfMigratedStore() {
    var fleet = Fleet(waves(canary: 1))
    let stores = Fleet.stores(2)
    fleet.find(stores)
    for store in stores { fleet.end(store) }
    #expect(fleet.status?.migrated == 2)
    fleet.reload(policy: .ask)
    let restored = fleet.begins {
      $0.current.remove(stores[0])
      $0.versions[stores[0], default: 1] += 1
      $0.find([stores[0]])
    }
    #expect(restored.isEmpty && fleet.status?.unapproved == 1)
    let approved = fleet.begins {
      $0.send(.rolloutOrder(plan: Fleet.plan, .approve([stores[0]])))
    }
    #expect(approved == [stores[0]])
    fleet.end(stores[0])
    #expect(fleet.status?.migrated == 2 && fleet.status?.waiting == 0)
  }

  @Test("a store whose folder has a watch of its own, for other names, waits for an approval")
  func approvalInFolderOfOtherWatch() {
    var fleet = Fleet(nil)
    fleet.configuration.watches = [
      Configuration.Watch(
        folder: "/srv", patterns: ["*.sqlite"], isRecursive: true, policy: .ask),
      Configuration.Watch(folder: "/srv/app"),
    ]
    fleet.reload()
    let stores = ["/srv/app/a.sqlite", "/srv/app/b.store"]
    fleet.find(stores)
    #expect(fleet.begun == [stores[1]] && fleet.status?.unapproved == 1)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .approve([stores[0]])))
    #expect(fleet.begun == [stores[1], stores[0]])
  }

  @Test("an approval that changes nothing is not reported")
  func approvalAgain() {
    var fleet = Fleet(nil, policy: .ask)
    fleet.find(Fleet.stores(3))
    func approve(_ stores: [String]) -> Int {
      fleet.send(.rolloutOrder(plan: Fleet.plan, .approve(stores)))
      return fleet.changes.count { $0 == .approved }
    }
    #expect(!fleet.queue.hasApproved(["/srv/1.store"], Fleet.plan))
    #expect(approve(["/srv/1.store"]) == 1)
    #expect(fleet.queue.hasApproved(["/srv/1.store"], Fleet.plan))
    #expect(approve(["/srv/1.store"]) == 1)
    #expect(approve([]) == 2)
    #expect(approve([]) == 2)
    #expect(approve(["/srv/2.store"]) == 2)
  }

  @Test("the approval of a store ends when its file is gone")
  func approvalOfGoneStore() {
    var fleet = Fleet(nil, policy: .ask)
    fleet.find(Fleet.stores(3))
    let pause = Manager.Pause(by: "anna (1000)", since: 1000, why: nil)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .halt(pause)))
    fleet.send(.rolloutOrder(plan: Fleet.plan, .approve(["/srv/1.store", "/srv/2.store"])))
    func approved() -> [String] {
      fleet.queue.rolloutRecords(at: .now).flatMap(\.approvedStores)
    }
    #expect(approved() == ["/srv/1.store", "/srv/2.store"])
    fleet.send(.missing("/srv/1.store"))
    #expect(approved() == ["/srv/2.store"])
    fleet.find(["/srv/1.store"])
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    #expect(fleet.begun == ["/srv/2.store"])
  }

  @Test("a failure that an operator forgave stays forgiven when the store vanishes and comes back")
  func forgivenStoreComesBack() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.find(Fleet.stores(3))
    let failed = fleet.begun[0]
    fleet.fail(failed)
    #expect(fleet.status?.isHaltedByFailures == true)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    fleet.send(.missing(failed))
    fleet.find([failed])
    #expect(fleet.queue.rolloutBudgets.first?.counted == 0)
  }

  @Test("a store with the policy 'rehearse' is migrated after a rehearsal that succeeds")
  func rehearsal() {
    var fleet = Fleet(nil, policy: .rehearse)
    fleet.find(Fleet.stores(2))
    #expect(fleet.begun.isEmpty && fleet.rehearsed.count == 2)
    fleet.end("/srv/0.store", .rehearsed)
    fleet.fail("/srv/1.store")
    #expect(fleet.begun == ["/srv/0.store"])
    #expect(fleet.activity("/srv/1.store") == .quarantined)
    fleet.end("/srv/0.store")
    #expect(fleet.begun.count == 1 && fleet.rehearsed.count == 2)
  }

  @Test("stores that vanish and come back as they were keep their places in the rollout")
  func absence() {
    var fleet = Fleet(waves(canary: 2, soak: .seconds(600), budget: "5"))
    fleet.find(Fleet.stores(6))
    let (migrated, failed) = (fleet.begun[0], fleet.begun[1])
    fleet.end(migrated)
    fleet.fail(failed)
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1)
    for store in Fleet.stores(6) { fleet.send(.missing(store)) }
    #expect(fleet.status?.stores == 0)
    fleet.find(Fleet.stores(6))
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1 && fleet.status?.stores == 6)
    #expect(fleet.queue.status(of: migrated, at: fleet.now)?.wave == 1)
    fleet.send(.folderMoved(from: "/srv", to: "/late"))
    fleet.wait(.seconds(1))
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1 && fleet.status?.stores == 6)
    fleet.wait(.seconds(600))
    #expect(Set(fleet.begun.dropFirst(2)).count == 4 && fleet.begun.count == 6)
  }

  @Test("a store that is held while it waits for its turn leaves the rollout at once")
  func heldWhileWaiting() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    let waiting = Fleet.stores(3).filter { !fleet.begun.contains($0) }
    fleet.held = [waiting[0]]
    fleet.send(.holdsChanged(of: nil, held: [waiting[0]]))
    fleet.answerProbes()
    #expect(fleet.activity(waiting[0]) == .held)
    #expect(fleet.activity(waiting[1]) == .pending)
    #expect(fleet.status?.stores == 2)
    fleet.held = []
    fleet.send(.holdsChanged(of: nil, held: []))
    fleet.answerProbes()
    #expect(fleet.activity(waiting[0]) == .pending && fleet.status?.stores == 3)
  }

  @Test("plans of one name in two plugins have a rollout each, and an order is for both")
  func plansOfOneName() {
    var fleet = Fleet(waves(canary: 1, budget: "0"))
    fleet.send(
      .pluginsKnown([Fleet.plugin(1), Fleet.plugin(1, path: "/p/Mail.so")]))
    fleet.lastVersions = ["/p/Mail.so": Schema.Version(7, 0, 0)]
    for store in Fleet.stores(3, in: "/late") { fleet.plugins[store] = "/p/Mail.so" }
    fleet.configuration.watches[1].wave = 1
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.find(Fleet.stores(3) + Fleet.stores(3, in: "/late"))
    let rollouts = fleet.queue.rolloutStatuses(at: fleet.now)
    #expect(rollouts.map(\.version) == [Schema.Version(2, 0, 0), Schema.Version(7, 0, 0)])
    #expect(rollouts.map(\.stores) == [3, 3] && fleet.begun.count == 2)
    fleet.fail(fleet.begun.first { $0.hasPrefix("/srv") } ?? "")
    #expect(
      fleet.queue.rolloutStatuses(at: fleet.now).map { $0.halt != nil } == [true, false])
    let pause = Manager.Pause(by: "anna", since: 1, why: nil)
    fleet.send(.rolloutOrder(plan: Fleet.plan, .halt(pause)))
    #expect(fleet.queue.rolloutStatuses(at: fleet.now).allSatisfy { $0.halt?.by == "anna" })
    fleet.send(.rolloutOrder(plan: Fleet.plan, .resume))
    #expect(fleet.queue.rolloutStatuses(at: fleet.now).allSatisfy { $0.halt == nil })
  }

  @Test("a plugin with a later version takes over the stores of an earlier one that is still there")
  func laterPlugin() {
    var fleet = Fleet(waves(canary: 1))
    fleet.find(Fleet.stores(3))
    while let store = fleet.begun.first(where: { fleet.activity($0) == .running }) {
      fleet.end(store)
    }
    fleet.pluginPath = "/p/Notes-2.so"
    fleet.lastVersions = [fleet.pluginPath: Schema.Version(3, 0, 0)]
    fleet.current = []
    fleet.send(.pluginsKnown([Fleet.plugin(1), Fleet.plugin(1, path: fleet.pluginPath)]))
    fleet.send(.verdictsInDoubt)
    fleet.answerProbes()
    #expect(
      fleet.queue.rolloutStatuses(at: fleet.now).map(\.version) == [Schema.Version(3, 0, 0)])
    #expect(fleet.status?.stores == 3 && fleet.begun.count == 4)
  }

  @Test("an attempt too many quarantines a busy store")
  func attempts() {
    var fleet = Fleet(nil)
    fleet.configuration.retry.attempts = 2
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.find(["/srv/a.store"])
    fleet.fail("/srv/a.store", .busyStore)
    #expect(fleet.activity("/srv/a.store") == .retrying)
    fleet.wait(.seconds(30))
    fleet.fail("/srv/a.store", .busyStore)
    #expect(fleet.activity("/srv/a.store") == .quarantined)
    #expect(fleet.begins { $0.wait(.seconds(6000)) }.isEmpty)
  }
}

@Suite("Rollout: over a restart")
struct RolloutRestartTests {
  private func restarted(
    _ fleet: Fleet, migrated: Set<String>, failed: Set<String> = [], _ settings: RolloutSettings,
    startedAt: [String: Double] = [:], code: InstarError.Code = .stageFailed, plugin: Int64 = 1
  ) -> Fleet {
    let moment = Rollout.Moment(instant: fleet.now, seconds: 5000)
    var old = fleet
    let records = old.queue.rolloutRecords(at: moment)
    let runs =
      migrated.map {
        RolloutRun(store: $0, result: .migrated, firstStartedAt: startedAt[$0] ?? 1000)
      }
      + failed.map {
        RolloutRun(store: $0, result: .failed, code: code, firstStartedAt: 1000)
      }
    var next = Fleet(settings)
    next.now = fleet.now
    next.configuration = fleet.configuration
    next.queue = StoreQueue(settings: StoreQueue.Settings(next.configuration))
    next.queue.restore(Array(fleet.quarantined.values))
    next.queue.restore(records.map { ($0, runs: runs) }, at: moment)
    next.current = migrated
    for event: StoreQueue.Event in [
      .pluginsKnown([Fleet.plugin(plugin)]), .verdictsInDoubt, .released,
    ] {
      next.send(event)
    }
    return next
  }

  @Test("the wave, the soak and who had a turn outlast the daemon")
  func place() {
    let settings = waves(canary: 2, ["50%"], soak: .seconds(600))
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(10))
    for store in fleet.begun { fleet.end(store) }
    let done = fleet.begun
    fleet.wait(.seconds(100))
    var next = restarted(fleet, migrated: Set(done), settings)
    next.find(Fleet.stores(10))
    #expect(next.begun.isEmpty)
    #expect(next.status?.migrated == 2 && next.status?.stores == 10)
    next.wait(.seconds(400))
    #expect(next.begun.isEmpty)
    next.wait(.seconds(100))
    #expect(next.begun.count == 3 && next.status?.wave == 2)
  }

  @Test("stores that failed stay so in a halted rollout, and do not run after it is resumed")
  func quarantined() throws {
    let settings = waves(budget: "0")
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(5))
    let failed = fleet.begun[0]
    // An error that may be an accident is retried twice.
    for _ in 1...3 {
      fleet.fail(failed, .timeLimit)
      fleet.wait(.seconds(60))
    }
    #expect(fleet.quarantined.keys.sorted() == [failed])
    #expect(fleet.status?.halt != nil)
    var next = restarted(fleet, migrated: [], failed: [failed], settings, code: .timeLimit)
    next.find(Fleet.stores(5))
    #expect(next.status?.failed == 1 && next.activity(failed) == .quarantined)
    next.send(.rolloutOrder(plan: Fleet.plan, .resume))
    next.wait(.seconds(600))
    #expect(!next.begun.isEmpty && !next.begun.contains(failed))
  }

  @Test("a rehearsal that failed, which the ledger does not have, counts against the budget")
  func failedRehearsal() {
    let settings = waves(budget: "1")
    var fleet = Fleet(settings, policy: .rehearse)
    let stores = Fleet.stores(6)
    fleet.find(stores)
    fleet.fail(stores[0])
    for store in stores.dropFirst() {
      fleet.end(store, .rehearsed)
      fleet.end(store)
    }
    #expect(fleet.status?.migrated == 5 && fleet.status?.failed == 1)
    var next = restarted(fleet, migrated: Set(stores.dropFirst()), settings)
    next.find(stores)
    #expect(next.status?.migrated == 5 && next.status?.failed == 1)
    #expect(next.activity(stores[0]) == .quarantined && next.rehearsed.isEmpty)
    next.find(["/srv/new.store"])
    #expect(next.rehearsed == ["/srv/new.store"])
    next.fail("/srv/new.store")
    #expect(next.status?.halt?.why == "2 of 7 stores failed, and the budget is 1")
  }

  @Test("a store that was busy at each attempt counts too, and is listed with its plan")
  func busyAtEachAttempt() {
    let settings = waves(budget: "0")
    var fleet = Fleet(settings)
    fleet.configuration.retry.attempts = 2
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    let stores = Fleet.stores(2)
    fleet.find(stores)
    fleet.fail(stores[0], .busyStore)
    fleet.busy = [stores[0]]
    fleet.wait(.seconds(30))
    #expect(fleet.activity(stores[0]) == .quarantined)
    #expect(fleet.status?.isHaltedByFailures == true)
    #expect(fleet.failedProbesAtChange == [stores[0]], "the cause is reported before the halt")
    #expect(fleet.queue.status(of: stores[0], at: fleet.now)?.plan == Fleet.plan)
    var next = restarted(fleet, migrated: [], settings)
    next.find(stores)
    #expect(fleet.status?.failed == 1 && next.status?.failed == 1)
    #expect(next.queue.status(of: stores[0], at: next.now)?.plan == Fleet.plan)
  }

  @Test("a store that cannot be read after it was migrated counts as migrated")
  func unreadableAfterRun() {
    let settings = waves(budget: "0")
    var fleet = Fleet(settings)
    let stores = Fleet.stores(3)
    fleet.find(stores)
    for store in stores { fleet.end(store) }
    fleet.makeUnreadable(stores[0])
    #expect(fleet.activity(stores[0]) == .quarantined && fleet.changes.last == .finished)
    var next = restarted(fleet, migrated: Set(stores), settings)
    next.versions = fleet.versions
    next.find(stores)
    #expect(next.activity(stores[0]) == .quarantined)
    #expect(next.queue.status(of: stores[0], at: next.now)?.turn == .migrated)
    #expect(next.status?.migrated == 3 && next.status?.halt == nil)
    next.send(.missing(stores[0]))
    #expect(next.status?.stores == 2)
  }

  @Test("a migrated store that ends its keepers counts as failed, also after a restart meanwhile")
  func endsKeepersAfterRun() {
    let settings = waves(canary: 1, budget: "0")
    var fleet = Fleet(settings)
    let stores = Fleet.stores(4)
    fleet.find(stores)
    let canary = fleet.begun[0]
    fleet.endingKeepers = [canary]
    fleet.end(canary)
    func restarted(_ old: Fleet) -> Fleet {
      var next = self.restarted(old, migrated: [canary], settings)
      (next.endingKeepers, next.versions) = (old.endingKeepers, old.versions)
      next.find(stores)
      return next
    }
    for first in [fleet, restarted(fleet)] {
      var fleet = first
      #expect(fleet.queue.status(of: canary, at: fleet.now)?.turn == .deferred)
      #expect(fleet.status?.wave == 1 && fleet.status?.halt == nil)
      for _ in 1...2 { fleet.wait(.seconds(60)) }
      #expect(fleet.activity(canary) == .quarantined)
      #expect(fleet.status?.isHaltedByFailures == true && fleet.status?.failed == 1)
      #expect(restarted(fleet).status?.failed == 1)
    }
  }

  @Test("a migrated store that was found sound after a restart never counts as failed")
  func endsKeepersLater() {
    let settings = waves(canary: 1, budget: "0")
    var fleet = Fleet(settings)
    let stores = Fleet.stores(4)
    fleet.find(stores)
    let canary = fleet.begun[0]
    fleet.end(canary)
    var next = restarted(fleet, migrated: [canary], settings)
    next.versions = fleet.versions
    next.find(stores)
    next.endingKeepers = [canary]
    next.write(canary)
    for _ in 1...2 { next.wait(.seconds(60)) }
    #expect(next.activity(canary) == .quarantined)
    #expect(next.queue.status(of: canary, at: next.now)?.turn == .migrated)
    for store in next.begun { next.end(store) }
    #expect(next.changes.last == .finished && next.status?.migrated == 4)
  }

  @Test("a store that left the rollout before it could not be read is not in it")
  func unreadableAfterLeaving() {
    let settings = waves(canary: 1, budget: "0")
    var fleet = Fleet(settings)
    let stores = Fleet.stores(3)
    fleet.find(stores)
    let other = stores.first { !fleet.begun.contains($0) } ?? ""
    // Its app has migrated it.
    fleet.current.insert(other)
    fleet.write(other)
    #expect(fleet.status?.stores == 2)
    fleet.makeUnreadable(other)
    #expect(fleet.quarantined[other] != nil && fleet.quarantined[other]?.rollout == nil)
    #expect(fleet.queue.status(of: other, at: fleet.now)?.plan == nil)
    var next = restarted(fleet, migrated: [], settings)
    next.versions = fleet.versions
    next.find(stores)
    #expect(next.activity(other) == .quarantined)
    #expect(next.status?.stores == 2 && next.status?.halt == nil)
  }

  @Test("a store that is damaged is in no rollout of a later plugin, also not after a restart")
  func damaged() {
    let settings = waves(canary: 1, budget: "0")
    var fleet = Fleet(settings)
    let stores = Fleet.stores(3)
    fleet.find(stores)
    let damaged = fleet.begun[0]
    let others = stores.filter { $0 != damaged }
    let error = InstarError(.corruptStore, "cannot migrate", store: damaged, cause: "a page")
    fleet.end(damaged, .refused, error.provingDamage())
    #expect(fleet.status?.isHaltedByFailures == true)
    // A retry would only probe the store, which does not find the damage.
    #expect(!fleet.queue.canRetry(damaged, at: fleet.now))
    fleet.send(.retryWanted([damaged], byOperator: true))
    fleet.answerProbes()
    #expect(fleet.queue.status(of: damaged, at: fleet.now)?.state == .corrupt)

    var now = fleet
    now.send(.pluginsKnown([Fleet.plugin(2)]))
    now.send(.verdictsInDoubt)
    now.answerProbes()
    #expect(now.activity(damaged) == .quarantined && now.status?.stores == 2)
    for store in now.begun.dropFirst() { now.end(store) }
    #expect(now.status?.halt == nil && now.status?.failed == 0)
    // The plugin changes while no daemon runs, or before the daemon starts again.
    for old in [fleet, now] {
      var next = restarted(old, migrated: [], settings, plugin: 2)
      next.find(stores)
      #expect(next.activity(damaged) == .quarantined)
      #expect(next.status?.stores == 2 && next.status?.failed == 0)
      #expect(others.contains(next.begun[0]))
    }
    // With the same plugin, the failure counts.
    var same = restarted(fleet, migrated: [], failed: [damaged], settings, code: .corruptStore)
    same.find(stores)
    #expect(same.status?.failed == 1 && same.status?.stores == 3)
  }

  @Test("a store whose run was cut off counts as migrated when its recovery has finished the run")
  func interrupted() {
    let settings = waves(canary: 2)
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(5))
    let cutOff = fleet.begun[0]
    fleet.end(fleet.begun[1])
    var next = restarted(fleet, migrated: [fleet.begun[1]], settings)
    next.send(.interrupted(cutOff, owner: 0))
    next.finishRecovery(of: cutOff)
    next.find(Fleet.stores(5))
    #expect(next.status?.migrated == 2 && next.status?.stores == 5)
    #expect(Set(next.begun).isDisjoint(with: fleet.begun))
  }

  @Test(
    "after a soak that ended while no daemon ran, the next wave opens when all stores are counted")
  func soakEndsMeanwhile() {
    let settings = waves(canary: 2, ["50%"], soak: .seconds(600))
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(10))
    let done = fleet.begun
    for store in done { fleet.end(store) }
    var next = restarted(fleet, migrated: Set(done), settings)
    next.now += .seconds(6000)
    next.find(Fleet.stores(10), thenScanned: false)
    #expect(next.begun.isEmpty)
    next.send(.scanned)
    #expect(next.begun.count == 3 && next.status?.wave == 2)
  }

  @Test("stores that were removed while no daemon ran are not counted")
  func removed() {
    let settings = waves(canary: 2)
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(10))
    let done = fleet.begun
    for store in done { fleet.end(store) }
    var next = restarted(fleet, migrated: Set(done), settings)
    next.find(Fleet.stores(10).filter { $0 != done[0] })
    #expect(next.status?.stores == 9 && next.status?.migrated == 1)
  }

  @Test("a halted rollout stays halted, and the failures that an operator knew of count no longer")
  func halted() {
    let settings = waves(canary: 3, budget: "1")
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(10))
    let failed = Set(fleet.begun.prefix(2))
    for store in fleet.begun.prefix(2) { fleet.fail(store) }
    var next = restarted(fleet, migrated: [], failed: failed, settings)
    next.find(Fleet.stores(10))
    #expect(next.begun.isEmpty && next.status?.isHaltedByFailures == true)
    next.send(.rolloutOrder(plan: Fleet.plan, .resume))
    for store in failed { next.fail(store) }
    #expect(next.status?.halt == nil)
  }

  @Test("each store keeps the wave in which it had its turn")
  func waveOfStores() {
    let settings = waves(canary: 1, ["50%"])
    var fleet = Fleet(settings)
    func record(at seconds: Double) {
      _ = fleet.queue.rolloutRecords(at: Rollout.Moment(instant: fleet.now, seconds: seconds))
    }
    fleet.find(Fleet.stores(10))
    record(at: 100)
    let canary = fleet.begun[0]
    fleet.end(canary)
    record(at: 200)
    let second = Array(fleet.begun.dropFirst())
    for store in second { fleet.end(store) }
    record(at: 300)
    var times = [canary: 101.0]
    for store in second { times[store] = 201 }
    var next = restarted(fleet, migrated: Set(times.keys), settings, startedAt: times)
    next.find(Fleet.stores(10))
    func wave(_ store: String) -> Int? { next.queue.status(of: store, at: next.now)?.wave }
    #expect(wave(canary) == 1)
    #expect(second.map(wave) == [2, 2, 2, 2])
    #expect(next.begun.compactMap(wave) == [3, 3, 3, 3, 3])
  }

  @Test("the rollout of a plugin that changed while no daemon ran starts again")
  func changedPlugin() {
    let settings = waves(canary: 1)
    var fleet = Fleet(settings)
    fleet.find(Fleet.stores(5))
    fleet.end(fleet.begun[0])
    #expect(fleet.begun.count == 5)
    var next = restarted(fleet, migrated: [fleet.begun[0]], settings)
    next.send(.pluginsKnown([Fleet.plugin(2)]))
    next.find(Fleet.stores(5).filter { $0 != fleet.begun[0] })
    #expect(next.begun.count == 1)
  }
}

@Suite("Rollout settings")
struct RolloutSettingsTests {
  @Test("the last wave is all stores, and shares are rounded up")
  func steps() {
    #expect(waves(canary: 1, ["10%"]).steps.map { $0.stores(of: 15) } == [1, 2, 15])
    #expect(waves(["100%"]).steps.count == 1)
    #expect(RolloutSettings.Share("0.5%")?.failures(of: 100) == 0)
    #expect(RolloutSettings.Share("101%") == nil && RolloutSettings.Share("-1") == nil)
  }
}

@Suite("Rollout: the permission of the fleet")
struct RolloutPermissionTests {
  /// A fleet of hosts coordinates the plan.
  private static func coordinated() -> Fleet {
    var fleet = Fleet(nil)
    fleet.configuration.coordinator = CoordinatorSettings()
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    return fleet
  }

  private static func permission(_ seconds: Double?, plan: String = Fleet.plan) -> StoreQueue.Event
  {
    permission(until: seconds.map { .now + .seconds($0) }, plan: plan)
  }

  private static func permission(
    until: ContinuousClock.Instant?, plan: String = Fleet.plan,
    version: Schema.Version = Schema.Version(2, 0, 0), failures: Int? = nil,
    decidedAt: ContinuousClock.Instant = .now
  ) -> StoreQueue.Event {
    .permitted(
      Manager.PermitParameters(
        permissions: [
          Manager.Permission(
            plan: plan, version: version, until: until?.secondsSinceBoot, failures: failures)
        ], decidedAt: decidedAt.secondsSinceBoot))
  }

  private static func nothing() -> StoreQueue.Event {
    .permitted(
      Manager.PermitParameters(
        permissions: [], decidedAt: ContinuousClock.now.secondsSinceBoot))
  }

  @Test("no store runs without a permission for its plan and version, and the status says why")
  func needed() {
    var fleet = Self.coordinated()
    let stores = Fleet.stores(3)
    #expect(fleet.begins { $0.find(stores) }.isEmpty)
    #expect(fleet.activity(stores[0]) == .queued)
    let reason = fleet.queue.status(of: stores[0], at: fleet.now)?.reason
    #expect(reason?.contains("instarctl rollout show") == true)
    #expect(fleet.begins { $0.send(Self.permission(10, plan: "OtherPlan")) }.isEmpty)
    let old = Self.permission(until: nil, version: Schema.Version(1, 0, 0))
    #expect(fleet.begins { $0.send(old) }.isEmpty)
    #expect(Set(fleet.begins { $0.send(Self.permission(10)) }) == Set(stores))
    for store in stores { fleet.end(store) }
    #expect(fleet.status?.migrated == 3)
  }

  @Test("a retry of a damaged store that the fleet does not permit does nothing, and has a reason")
  func retryOfDamaged() {
    var fleet = Self.coordinated()
    let store = Fleet.stores(1)[0]
    fleet.find([store])
    fleet.send(Self.permission(until: nil))
    let error = InstarError(.corruptStore, "cannot migrate", store: store, cause: "a page")
    fleet.end(store, .refused, error.provingDamage())
    func reasonNotToRetry() -> String? {
      fleet.queue.reasonNotToRetry(store, isAdmin: true, at: fleet.now) { _ in "" }
    }
    #expect(reasonNotToRetry() == nil && fleet.queue.canRetry(store, at: fleet.now))
    fleet.send(Self.nothing())
    let reason = reasonNotToRetry()
    #expect(reason?.contains("instarctl rollout show") == true)
    #expect(!fleet.queue.canRetry(store, at: fleet.now))
    fleet.send(.retryWanted([store], byOperator: true))
    fleet.answerProbes()
    #expect(fleet.queue.status(of: store, at: fleet.now)?.state == .corrupt)
    fleet.send(Self.permission(until: nil))
    #expect(
      fleet.begins {
        $0.send(.retryWanted([store], byOperator: true))
        $0.answerProbes()
      } == [store])
  }

  @Test("after the end of a permission no run begins, and the runs in progress end as usual")
  func ends() {
    var fleet = Self.coordinated()
    fleet.find(Fleet.stores(1))
    let first = fleet.begins { $0.send(Self.permission(until: $0.now + .seconds(10))) }
    #expect(first == Fleet.stores(1))
    let later = Fleet.stores(3)
    fleet.wait(.seconds(11))
    #expect(fleet.begins { $0.find(later) }.isEmpty)
    fleet.end(later[0])
    #expect(fleet.status?.migrated == 1)
    #expect(fleet.begins { $0.send(Self.permission(nil)) }.count == 2)
    #expect(fleet.begins { $0.wait(.seconds(100_000)) }.isEmpty)
    fleet.send(Self.nothing())
    #expect(fleet.begins { $0.find(Fleet.stores(4)) }.isEmpty)
  }

  @Test("after a failure no run begins until the fleet has counted it")
  func failures() {
    var fleet = Self.coordinated()
    fleet.configuration.parallelRuns = 1
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    func permission(_ failures: Int) -> StoreQueue.Event {
      Self.permission(until: .now + .seconds(60), failures: failures)
    }
    fleet.find(Fleet.stores(3))
    let first = fleet.begins { $0.send(permission(0)) }
    #expect(first.count == 1)
    #expect(fleet.begins { $0.fail(first[0]) }.isEmpty)
    #expect(fleet.begins { $0.send(permission(1)) }.count == 1)
  }

  @Test("a permission that comes late ends as it was to end, and one that was overtaken is ignored")
  func late() {
    var fleet = Self.coordinated()
    let decided = fleet.now
    let permission = Self.permission(until: decided + .seconds(10), decidedAt: decided)
    fleet.find(Fleet.stores(2))
    fleet.wait(.seconds(11))
    #expect(fleet.begins { $0.send(permission) }.isEmpty)
    let longer = Self.permission(until: decided + .seconds(100), decidedAt: decided + .seconds(5))
    #expect(fleet.begins { $0.send(longer) }.count == 2)
    fleet.send(Self.permission(until: nil, plan: "Other", decidedAt: decided + .seconds(8)))
    #expect(
      fleet.begins {
        $0.send(longer)
        $0.find(Fleet.stores(3))
      }.isEmpty)
  }

  @Test("runs are counted by plan, and a closed window is told that all stores wait for")
  func running() throws {
    var fleet = Self.coordinated()
    fleet.configuration.watches[1].window = TimeWindow(
      opens: [try CalendarEvent("22:00")], length: .seconds(3600))
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    let open = Fleet.stores(1)
    let closed = Fleet.stores(2, in: "/late")
    fleet.find(open + closed)
    #expect(fleet.status?.closedWindow == nil)
    fleet.send(Self.permission(until: nil))
    #expect(fleet.queue.runningCounts == [Fleet.plan: 1])
    #expect(fleet.status?.closedWindow == nil)
    fleet.end(open[0])
    #expect(fleet.queue.runningCounts.isEmpty)
    #expect(fleet.status?.closedWindow == "/late")
    // Also when the permission is gone: the host must not come again before the window opens.
    fleet.send(Self.nothing())
    #expect(fleet.status?.closedWindow == "/late")
    fleet.send(.windowsKnown(["/late": TimeWindow.State(isOpen: true)]))
    #expect(fleet.status?.closedWindow == nil)
  }

  @Test("a metric says that a rollout waits for a permission, or for a window")
  func waits() throws {
    var fleet = Self.coordinated()
    fleet.configuration.watches[0].window = TimeWindow(
      opens: [try CalendarEvent("22:00")], length: .seconds(3600))
    fleet.send(.settingsChanged(StoreQueue.Settings(fleet.configuration)))
    fleet.find(Fleet.stores(1))
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    func shows(window: Int, permission: Int) -> Bool {
      metrics.show(
        DaemonMetrics.Snapshot(
          queue: fleet.queue, isPaused: false, watches: 2, unreadableWatches: 0, plugins: 1,
          keeperRestarts: 0), at: fleet.now)
      let series = #"instar_rollout_waits{plan="NotesPlan",for="#
      return metrics.text.contains("\(series)\"window\"} \(window)\n")
        && metrics.text.contains("\(series)\"permission\"} \(permission)\n")
    }
    #expect(shows(window: 1, permission: 1), "\(metrics.text)")
    fleet.send(Self.permission(until: nil))
    #expect(shows(window: 1, permission: 0), "\(metrics.text)")
    fleet.send(.windowsKnown(["/srv": TimeWindow.State(isOpen: true)]))
    #expect(fleet.begun == Fleet.stores(1))
    #expect(shows(window: 0, permission: 0), "\(metrics.text)")
  }

  @Test("of two rollouts with one name, the metric says so only if each that is not done waits")
  func waitsOfOneName() {
    var fleet = Self.coordinated()
    fleet.send(.pluginsKnown([Fleet.plugin(1), Fleet.plugin(1, path: "/p/Mail.so")]))
    fleet.lastVersions = ["/p/Mail.so": Schema.Version(7, 0, 0)]
    let (store, other) = ("/srv/0.store", "/late/0.store")
    fleet.plugins[other] = "/p/Mail.so"
    fleet.find([store, other])
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    func shows(permission: Int) -> Bool {
      metrics.show(
        DaemonMetrics.Snapshot(
          queue: fleet.queue, isPaused: false, watches: 2, unreadableWatches: 0, plugins: 2,
          keeperRestarts: 0), at: fleet.now)
      return metrics.text.contains(
        #"instar_rollout_waits{plan="NotesPlan",for="permission"} \#(permission)"# + "\n")
    }
    #expect(shows(permission: 1), "\(metrics.text)")
    #expect(fleet.begins { $0.send(Self.permission(until: nil)) } == [store])
    #expect(shows(permission: 0), "\(metrics.text)")
    fleet.end(store)
    #expect(shows(permission: 1), "\(metrics.text)")
  }

  @Test("a host whose configuration has no coordinator any more needs no permission")
  func notConfigured() {
    var fleet = Self.coordinated()
    let stores = Fleet.stores(2)
    fleet.find(stores)
    fleet.configuration.coordinator = nil
    let begun = fleet.begins { $0.reload(policy: .automatic) }
    #expect(Set(begun) == Set(stores))
  }
}
