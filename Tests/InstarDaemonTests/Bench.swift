import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

@testable import InstarDaemon

/// A queue with a clock that only moves when it is told to.
struct Bench {
  static let store = "/srv/a.store"
  var queue: StoreQueue
  var now = ContinuousClock.now

  init(parallelRuns: Int = 2, released: Bool = true) {
    var configuration = Configuration()
    configuration.debounce = .milliseconds(500)
    configuration.retry = Configuration.Retry(first: .seconds(10), most: .seconds(60))
    configuration.parallelRuns = parallelRuns
    configuration.watches = [Configuration.Watch(folder: "/srv", patterns: ["*"])]
    self.init(configuration)
    if released { _ = queue.handle(.released, at: now) }
  }

  /// A queue that probes nothing before `released`.
  init(_ configuration: Configuration) {
    queue = StoreQueue(settings: StoreQueue.Settings(configuration))
  }

  @discardableResult
  mutating func handle(_ event: StoreQueue.Event) -> [StoreQueue.Action] {
    queue.handle(event, at: now)
  }

  @discardableResult
  mutating func wait(_ duration: Duration) -> [StoreQueue.Action] {
    now += duration
    return queue.handle(.tick, at: now)
  }

  /// Reports that a store is there, with a version of its file.
  @discardableResult
  mutating func find(
    _ version: WatchedVersion = file(1), store: String = Bench.store
  ) -> [StoreQueue.Action] {
    handle(.versionRead(store, version))
  }

  @discardableResult
  mutating func retry(byOperator: Bool = true) -> [StoreQueue.Action] {
    handle(.retryWanted([Bench.store], byOperator: byOperator))
  }

  /// Answers the probe that is out, and ends its batch.
  @discardableResult
  mutating func answer(
    _ state: StoreState, _ version: WatchedVersion = file(1), store: String = Bench.store,
    plugin: String? = nil, reason: String? = nil, hold: Hold? = nil
  ) -> [StoreQueue.Action] {
    var report = ProbeReport(store: store, format: .coredata, state: state, reason: reason)
    report.plugin = plugin
    report.hold = hold
    return handle(.probed(report, before: version, after: version)) + handle(.probesEnded(nil))
  }

  @discardableResult
  mutating func endRun(
    _ result: RunReport.Result, _ error: InstarError? = nil, before: WatchedVersion = file(1),
    after: WatchedVersion? = file(1), store: String = Bench.store, run: String = "R1"
  ) -> [StoreQueue.Action] {
    var report = RunReport(run: run, store: store, result: result, startedAt: 0)
    report.error = error
    return handle(.runEnded(report, before: before, after: after))
  }

  /// Has a queue that waits for `released` find stores that are behind, and returns those whose run begins.
  mutating func releaseAndProbe(
    _ stores: [String], sizeBytes: (String) -> Int64? = { _ in nil }
  ) -> [String] {
    for store in stores { find(store: store) }
    handle(.released)
    var begun: [String] = []
    for store in stores {
      var report = ProbeReport(store: store, format: .coredata, state: .behind)
      report.sizeBytes = sizeBytes(store)
      begun += handle(.probed(report, before: file(1), after: file(1))).runs
    }
    return begun
  }

  /// Brings the store to where a run of it goes on.
  @discardableResult
  mutating func beginRun(_ version: WatchedVersion = file(1)) -> [StoreQueue.Action] {
    find(version)
    return answer(.behind, version)
  }

  /// Brings the store through a failed run, from where its probe is out.
  @discardableResult
  mutating func failRun(
    _ cause: String = "14 rows", before: WatchedVersion = file(1), after: WatchedVersion = file(1),
    run: String = "R1"
  ) -> StoreQueue.FollowUp? {
    answer(.behind, before)
    return endRun(.failed, failure(cause), before: before, after: after, run: run).followUp
  }

  var state: StoreQueue.State? { queue.state(of: Bench.store) }
  func status(of store: String = Bench.store) -> Manager.Store? {
    queue.status(of: store, at: now)
  }
}

func file(_ number: Int64, owner: UInt32 = 0) -> WatchedVersion {
  WatchedVersion(
    FileVersion(
      identity: FileIdentity(device: 1, inode: 1), sizeBytes: 4096, modifiedNanoseconds: number),
    owner: owner)
}

func failure(_ cause: String, _ code: InstarError.Code = .keeperDied) -> InstarError {
  InstarError(code, "cannot migrate", store: Bench.store, cause: cause, state: "unchanged")
}

func hold(of store: String = Bench.store) -> Hold {
  Hold(
    id: "H1", store: store, device: 1, inode: 1, createdNanoseconds: 1, by: "anna", since: 0,
    why: "auditing")
}

extension [StoreQueue.Action] {
  /// What follows the first run whose report is among the actions.
  var followUp: StoreQueue.FollowUp? {
    for case .reportRun(_, let followUp) in self { return followUp }
    return nil
  }

  /// The records of stores that are quarantined.
  var quarantines: [QuarantineRecord] {
    compactMap { if case .keepQuarantine(let record) = $0 { record } else { nil } }
  }

  /// The stores whose quarantine ends.
  var ended: [String] {
    flatMap { if case .endQuarantine(let stores) = $0 { stores } else { [String]() } }
  }

  /// The batches of stores that are probed.
  var probes: [[String]] {
    compactMap { if case .probe(let stores) = $0 { stores } else { nil } }
  }

  /// The stores whose run begins.
  var runs: [String] {
    compactMap { if case .run(let store, _, _) = $0 { store } else { nil } }
  }

  /// The states that are reported.
  var reports: [StoreState] {
    compactMap { if case .reportProbe(let report) = $0 { report.state } else { nil } }
  }
}
