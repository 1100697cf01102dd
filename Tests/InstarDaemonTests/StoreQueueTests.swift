import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Logging
import Testing

@testable import InstarDaemon

/// A queue with a clock that only moves when it is told to.
private struct Bench {
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
    _ version: FileVersion = file(1), store: String = Bench.store
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
    _ state: StoreState, _ version: FileVersion = file(1), store: String = Bench.store,
    plugin: String? = nil, reason: String? = nil, hold: Hold? = nil
  ) -> [StoreQueue.Action] {
    var report = ProbeReport(store: store, format: .coredata, state: state, reason: reason)
    report.plugin = plugin
    report.hold = hold
    return handle(.probed(report, before: version, after: version)) + handle(.probesEnded(nil))
  }

  @discardableResult
  mutating func endRun(
    _ result: RunReport.Result, _ error: InstarError? = nil, before: FileVersion = file(1),
    after: FileVersion? = file(1), store: String = Bench.store, run: String = "R1"
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
      begun += runs(handle(.probed(report, before: file(1), after: file(1))))
    }
    return begun
  }

  /// Brings the store to where a run of it goes on.
  @discardableResult
  mutating func beginRun(_ version: FileVersion = file(1)) -> [StoreQueue.Action] {
    find(version)
    return answer(.behind, version)
  }

  /// Brings the store through a failed run, from where its probe is out.
  @discardableResult
  mutating func failRun(
    _ cause: String = "14 rows", before: FileVersion = file(1), after: FileVersion = file(1),
    run: String = "R1"
  ) -> StoreQueue.FollowUp? {
    answer(.behind, before)
    return followUp(endRun(.failed, failure(cause), before: before, after: after, run: run))
  }

  var state: StoreQueue.State? { queue.state(of: Bench.store) }
  func status(of store: String = Bench.store) -> Manager.Store? {
    queue.status(of: store, at: now)
  }
}

private func file(_ number: Int64, owner: UInt32 = 0) -> FileVersion {
  FileVersion(
    identity: FileIdentity(device: 1, inode: 1), sizeBytes: 4096, modifiedNanoseconds: number,
    owner: owner)
}

private func failure(_ cause: String, _ code: InstarError.Code = .keeperDied) -> InstarError {
  InstarError(code, "cannot migrate", store: Bench.store, cause: cause, state: "unchanged")
}

private func hold(of store: String = Bench.store) -> Hold {
  Hold(
    id: "H1", store: store, device: 1, inode: 1, createdNanoseconds: 1, by: "anna", since: 0,
    why: "auditing")
}

private func followUp(_ actions: [StoreQueue.Action]) -> StoreQueue.FollowUp? {
  for case .reportRun(_, let followUp) in actions { return followUp }
  return nil
}

private func quarantines(_ actions: [StoreQueue.Action]) -> [QuarantineRecord] {
  actions.compactMap { if case .keepQuarantine(let record) = $0 { record } else { nil } }
}

private func ended(_ actions: [StoreQueue.Action]) -> [String] {
  actions.flatMap { if case .endQuarantine(let stores) = $0 { stores } else { [String]() } }
}

private func probes(_ actions: [StoreQueue.Action]) -> [[String]] {
  actions.compactMap { if case .probe(let stores) = $0 { stores } else { nil } }
}

private func runs(_ actions: [StoreQueue.Action]) -> [String] {
  actions.compactMap { if case .run(let store, _, _) = $0 { store } else { nil } }
}

private func reports(_ actions: [StoreQueue.Action]) -> [StoreState] {
  actions.compactMap { if case .reportProbe(let report) = $0 { report.state } else { nil } }
}

@Suite("StoreQueue: when a store is probed")
struct StoreQueueProbeTests {
  @Test("a store that a scan finds is probed at once")
  func foundIsProbed() {
    var bench = Bench()
    #expect(bench.find() == [.probe([Bench.store])])
    #expect(bench.state == .probing(touched: false))
  }

  @Test("a held store is reported once and not migrated, until the holds change")
  func heldStore() {
    var bench = Bench()
    let hold = hold()
    bench.find()
    let held = bench.answer(.behind, hold: hold)
    #expect(runs(held).isEmpty && reports(held) == [.behind])
    // An app writes the store: it is still held, which is not news.
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
    let again = bench.answer(.behind, file(2), hold: hold)
    #expect(runs(again).isEmpty && reports(again).isEmpty)
    #expect(bench.find(file(2)).isEmpty)
    #expect(probes(bench.handle(.holdsChanged(of: nil, held: []))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind, file(2))) == [Bench.store])
  }

  @Test("a hold on a store that rests, or that is queued behind others, is seen at once")
  func heldAtOnce() {
    var bench = Bench(parallelRuns: 1)
    let hold = hold(of: "/srv/b.store")
    // The first store takes the slot, so the second one waits.
    #expect(runs(bench.beginRun()) == [Bench.store])
    bench.find(store: "/srv/b.store")
    #expect(runs(bench.answer(.behind, store: "/srv/b.store")).isEmpty)
    bench.find(store: "/srv/c.store")
    bench.answer(.current, store: "/srv/c.store")
    #expect(
      probes(bench.handle(.holdsChanged(of: nil, held: ["/srv/b.store", "/srv/c.store"]))) == [
        ["/srv/b.store", "/srv/c.store"]
      ])
    bench.answer(.behind, store: "/srv/b.store", hold: hold)
    let status = bench.status(of: "/srv/b.store")
    #expect(status?.activity == .held && status?.reason == hold.sentence)
    #expect(runs(bench.endRun(.migrated)).isEmpty)
  }

  @Test("an owner does not shorten the delay after a failure by a hold and its release")
  func holdAfterFailure() {
    var bench = Bench()
    let hold = hold()
    bench.beginRun()
    bench.endRun(.failed, failure("14 rows"))
    #expect(probes(bench.handle(.holdsChanged(of: nil, held: [Bench.store]))) == [[Bench.store]])
    bench.answer(.behind, hold: hold)
    #expect(probes(bench.handle(.holdsChanged(of: nil, held: []))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind)).isEmpty)
    #expect(probes(bench.wait(.seconds(10))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("a store that was restored and released before anybody saw it held is migrated at once")
  func releasedUnseen() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.migrated, after: file(2))
    // The restore places the hold, and the operator releases it.
    for _ in 0..<2 { bench.handle(.holdsChanged(of: nil, held: [])) }
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.milliseconds(500)) == [.readVersion(Bench.store)])
    bench.find(file(3))
    #expect(runs(bench.answer(.behind, file(3))) == [Bench.store])
  }

  @Test("a store that was held after its probe is probed again when the holds change")
  func heldMeanwhile() {
    var bench = Bench()
    #expect(runs(bench.beginRun()) == [Bench.store])
    #expect(
      followUp(bench.endRun(.refused, failure("held by anna", .heldStore)))
        == .waitsForChange(failures: 1))
    #expect(probes(bench.handle(.holdsChanged(of: nil, held: []))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("a hold that comes and goes concerns no other store")
  func holdOfOther() {
    var bench = Bench()
    let other = "/srv/b.store"
    let held = "/srv/held.store"
    let hold = hold(of: held)
    func change(_ bench: inout Bench) -> [StoreQueue.Action] {
      bench.handle(.holdsChanged(of: [other], held: [held, other]))
        + bench.handle(.holdsChanged(of: [other], held: [held]))
    }
    bench.find(store: other)
    bench.answer(.current, store: other)
    bench.find(store: held)
    bench.answer(.behind, store: held, hold: hold)
    bench.find()
    #expect(change(&bench).isEmpty)
    #expect(bench.state == .probing(touched: false))
    #expect(runs(bench.answer(.behind)) == [Bench.store])
    bench.endRun(.migrated, after: file(2))
    // The first change has the other store probed.
    bench.answer(.current, store: other)
    #expect(probes(change(&bench)) == [[other]])
    bench.answer(.current, store: other)
    // It is behind once more without a restore, so it waits.
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.milliseconds(500)).contains(.readVersion(Bench.store)))
    #expect(probes(bench.find(file(3))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind, file(3))).isEmpty)
  }

  @Test("the end of a hold on a store that was moved is seen at its new path")
  func holdOfMoved() {
    var bench = Bench()
    let hold = hold(of: "/srv/old.store")
    bench.find()
    bench.answer(.behind, hold: hold)
    #expect(
      probes(bench.handle(.holdsChanged(of: ["/srv/old.store"], held: []))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("a hold that was read before it was released does not count")
  func outdatedHold() {
    var bench = Bench()
    let hold = hold()
    bench.find()
    #expect(bench.handle(.holdsChanged(of: nil, held: [])).isEmpty)
    #expect(runs(bench.answer(.behind, hold: hold)).isEmpty)
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(probes(bench.find()) == [[Bench.store]])
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("the version of a touched store is read when nothing changed it for the debounce time")
  func touchedWaits() {
    var bench = Bench()
    #expect(bench.handle(.touched(Bench.store)).isEmpty)
    #expect(bench.queue.nextDeadline == bench.now + .milliseconds(500))
    #expect(bench.wait(.milliseconds(400)).isEmpty)
    #expect(bench.handle(.touched(Bench.store)).isEmpty)
    #expect(bench.wait(.milliseconds(400)).isEmpty)
    #expect(bench.wait(.milliseconds(100)) == [.readVersion(Bench.store)])
    #expect(bench.find() == [.probe([Bench.store])])
  }

  @Test("a store that is touched all the time is checked after ten times the debounce")
  func touchedForEver() {
    var bench = Bench()
    bench.handle(.touched(Bench.store))
    var looks = 0
    for _ in 0..<13 {
      looks += bench.wait(.milliseconds(400)).count
      bench.handle(.touched(Bench.store))
    }
    #expect(looks == 1)
  }

  @Test("a store that is as it was is not probed again")
  func unchangedIsNotProbed() {
    var bench = Bench()
    bench.find()
    #expect(reports(bench.answer(.current)) == [.current])
    #expect(bench.find().isEmpty)
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.idle))
    #expect(bench.queue.nextDeadline == nil || bench.wait(.seconds(1)).isEmpty)
    #expect(bench.queue.nextDeadline == nil)
  }

  @Test("a store that changed is probed again")
  func changedIsProbed() {
    var bench = Bench()
    bench.find()
    bench.answer(.current)
    #expect(bench.find(file(2)) == [.probe([Bench.store])])
  }

  @Test("a store that is gone is forgotten")
  func missingIsForgotten() {
    var bench = Bench()
    bench.handle(.touched(Bench.store))
    bench.wait(.seconds(1))
    bench.handle(.missing(Bench.store))
    #expect(bench.queue.storeCount == 0)
    #expect(bench.wait(.seconds(1)).isEmpty)
  }

  @Test("a store that goes away while its probe is out does not end up in a failure")
  func missingWhileProbing() {
    var bench = Bench()
    bench.find()
    #expect(bench.handle(.missing(Bench.store)).isEmpty)
    #expect(bench.handle(.probesEnded(nil)).isEmpty)
    #expect(bench.queue.storeCount == 0)
  }

  @Test("without an answer about its file, a store waits for a scan, and then goes on as before")
  func unanswered() {
    var bench = Bench()
    let probe = [StoreQueue.Action.probe([Bench.store])]
    /// Lets the store wait, and returns what follows when a scan finds it.
    func scan(_ bench: inout Bench) -> [StoreQueue.Action] {
      #expect(bench.wait(.seconds(3600)) == [])
      return bench.find() + bench.wait(.zero)
    }
    #expect(bench.find() == probe)
    #expect(bench.handle(.unanswered(Bench.store)) == [])
    #expect(bench.handle(.probesEnded(nil)) == [])
    #expect(scan(&bench) == probe)
    // Failures before it still count.
    #expect(bench.failRun() == .retry(after: .seconds(10)))
    #expect(bench.wait(.seconds(10)) == probe)
    #expect(bench.failRun() == .retry(after: .seconds(20)))
    #expect(bench.wait(.seconds(20)) == probe)
    #expect(bench.handle(.unanswered(Bench.store)) == [])
    #expect(bench.handle(.probesEnded(nil)) == [])
    #expect(scan(&bench) == probe)
    #expect(bench.answer(.behind) == [.run(Bench.store, plugin: nil)])
    #expect(bench.handle(.unanswered(Bench.store)) == [])
    #expect(bench.queue.runningCount == 0)
    #expect(scan(&bench) == probe)
    #expect(bench.failRun() == .waitsForChange(failures: 3))
  }

  @Test("what was found out of a file that changed meanwhile is not reported")
  func changedWhileProbing() {
    var bench = Bench()
    bench.find()
    let report = ProbeReport(store: Bench.store, format: nil, state: .corrupt)
    #expect(bench.handle(.probed(report, before: file(1), after: file(2))).isEmpty)
    bench.handle(.probesEnded(nil))
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find(file(2)) == [.probe([Bench.store])])
  }

  @Test("a store that is written all the time and is behind is migrated nevertheless")
  func behindWhileWritten() {
    var bench = Bench()
    bench.find()
    let report = ProbeReport(store: Bench.store, format: .coredata, state: .behind)
    #expect(
      runs(bench.handle(.probed(report, before: file(1), after: file(2)))) == [Bench.store])
  }

  @Test("a touch while the probe is out causes another probe")
  func touchedWhileProbing() {
    var bench = Bench()
    bench.find()
    bench.handle(.touched(Bench.store))
    #expect(reports(bench.answer(.notAStore)).isEmpty)
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    // The version may be the same: two writes within one tick of the file system's clock.
    #expect(bench.find() == [.probe([Bench.store])])
  }

  @Test("nothing is probed before the plugins of the start are known")
  func heldUntilReleased() {
    var bench = Bench(released: false)
    #expect(bench.find().isEmpty)
    #expect(bench.handle(.released) == [.probe([Bench.store])])
  }

  @Test("stores are probed in batches, one batch at a time, in the order in which they came")
  func batches() {
    var bench = Bench(released: false)
    let stores = (0..<300).map { "/srv/\($0).store" }
    for store in stores { bench.find(store: store) }
    #expect(probes(bench.handle(.released)) == [Array(stores[..<256])])
    #expect(probes(bench.find(store: "/srv/x.store")).isEmpty)
    for store in stores[..<256] {
      let report = ProbeReport(store: store, format: .coredata, state: .current)
      #expect(probes(bench.handle(.probed(report, before: file(1), after: file(1)))).isEmpty)
    }
    #expect(
      probes(bench.handle(.probesEnded(nil))) == [Array(stores[256...]) + ["/srv/x.store"]])
  }

  @Test(
    "a batch has one owner's stores, and ends with one that hangs: then another owner has a turn")
  func batchesOfOwners() {
    var bench = Bench(released: false)
    let mallory = (0..<300).map { "/m/\($0)" }
    for store in mallory { bench.find(file(1, owner: 666), store: store) }
    for store in ["/a/1", "/a/2"] { bench.find(file(1, owner: 1), store: store) }
    #expect(probes(bench.handle(.released)) == [Array(mallory[..<256])])
    let hanging = ProbeReport(store: mallory[0], state: .unreadable, reason: "the keeper hangs")
    bench.handle(.probed(hanging, before: file(1, owner: 666), after: file(1, owner: 666)))
    #expect(bench.handle(.probesEnded(nil)) == [.probe(["/a/1", "/a/2"])])
    #expect(bench.queue.queuedCount == 299)
    for store in ["/a/1", "/a/2"] {
      let report = ProbeReport(store: store, format: .coredata, state: .current)
      bench.handle(.probed(report, before: file(1, owner: 1), after: file(1, owner: 1)))
    }
    let next = probes(bench.handle(.probesEnded(nil)))
    #expect(next == [Array(mallory[256...] + mallory[1..<213])])
  }

  @Test("a changed set of plugins has every store probed again, and says nothing twice")
  func pluginsChanged() {
    var bench = Bench()
    bench.find()
    #expect(reports(bench.answer(.unknown)) == [.unknown])
    #expect(bench.handle(.verdictsInDoubt) == [.probe([Bench.store])])
    #expect(reports(bench.answer(.unknown)).isEmpty)
    bench.handle(.verdictsInDoubt)
    #expect(reports(bench.answer(.ahead)) == [.ahead])
  }

  @Test("a probe that was out when the plugins changed is not believed")
  func pluginsChangedWhileProbing() {
    var bench = Bench()
    bench.find()
    bench.handle(.verdictsInDoubt)
    #expect(reports(bench.answer(.unknown)).isEmpty)
    bench.wait(.seconds(1))
    #expect(probes(bench.find()) == [[Bench.store]])
  }

  @Test("the same file is reported once, another file at its place once more")
  func reportedOncePerFile() {
    var bench = Bench()
    bench.find()
    #expect(reports(bench.answer(.corrupt, file(1))) == [.corrupt])
    bench.handle(.verdictsInDoubt)
    #expect(reports(bench.answer(.corrupt, file(1))).isEmpty)
    bench.find(file(2))
    #expect(reports(bench.answer(.corrupt, file(2))) == [.corrupt])
  }

  @Test("a store that is busy is probed again after a back-off")
  func busyProbe() {
    var bench = Bench()
    bench.find()
    bench.answer(.busy)
    #expect(bench.state == .resting(.backingOff(until: bench.now + .seconds(10))))
    #expect(probes(bench.wait(.seconds(10))) == [[Bench.store]])
    bench.answer(.busy)
    #expect(bench.state == .resting(.backingOff(until: bench.now + .seconds(20))))
  }

  @Test("the status names those who have a busy store open, and only the first are reported")
  func holders() {
    var configuration = Configuration()
    configuration.retry = Configuration.Retry(
      first: .seconds(10), most: .seconds(60), attempts: 3)
    configuration.watches = [Configuration.Watch(folder: "/srv", patterns: ["*"])]
    var bench = Bench(configuration)
    bench.handle(.released)
    bench.find()
    var counts: [Int] = []
    var error: InstarError?
    for pid in [Int32(11), 12, 13] {
      var report = ProbeReport(
        store: Bench.store, format: .plain, state: .busy, reason: InstarError.lockedCause)
      report.holders = [ProbeReport.Holder(pid: pid, command: "app")]
      let actions = bench.handle(.probed(report, before: file(1), after: file(1)))
      counts.append(reports(actions).count)
      for case .reportProbeFailure(_, let failure, _) in actions { error = failure }
      let reason = bench.status()?.reason
      #expect(reason == "\(InstarError.lockedCause); the store is open in \(pid) (app)")
      bench.handle(.probesEnded(nil))
      bench.wait(.seconds(60))
    }
    #expect(counts == [1, 0, 0])
    #expect(error?.cause == "\(InstarError.lockedCause); the store is open in 13 (app)")
    #expect(
      error?.next
        == "stop process 13 (app) or wait until it closes the store, "
        + "then run: instarctl retry '\(Bench.store)'")

    // A reload does not repeat the end of the attempts.
    bench.handle(.verdictsInDoubt)
    for attempt in 1...3 {
      var report = ProbeReport(
        store: Bench.store, format: .plain, state: .busy, reason: InstarError.lockedCause)
      report.holders = [ProbeReport.Holder(pid: 13, command: "app")]
      let actions = bench.handle(.probed(report, before: file(1), after: file(1)))
      #expect(
        !actions.contains { if case .reportProbeFailure = $0 { true } else { false } },
        "\(attempt)")
      bench.handle(.probesEnded(nil))
      bench.wait(.seconds(60))
    }
    #expect(bench.state == .resting(.quarantined))
  }

  @Test("when a batch fails, what has no answer is probed again after a back-off")
  func batchFails() {
    var bench = Bench(released: false)
    for name in ["a", "b", "c"] { bench.find(store: "/srv/\(name).store") }
    bench.handle(.released)
    let current = ProbeReport(store: "/srv/a.store", format: .coredata, state: .current)
    bench.handle(.probed(current, before: file(1), after: file(1)))
    let error = InstarError(.incompleteInstallation, "cannot start", cause: "missing")
    #expect(
      bench.handle(.probesEnded(error)) == [
        .reportProbesFailure(error, .retry(after: .seconds(10)))
      ])
    #expect(bench.wait(.seconds(9)).isEmpty)
    #expect(probes(bench.wait(.seconds(1))) == [["/srv/b.store", "/srv/c.store"]])
    #expect(
      bench.handle(.probesEnded(error)) == [
        .reportProbesFailure(error, .retry(after: .seconds(20)))
      ])
  }

  @Test("a batch that fails for one owner does not delay the stores of others")
  func batchFailsForOneOwner() {
    var bench = Bench()
    let error = InstarError(.keeperDied, "cannot start", cause: "the user has too many processes")
    bench.find(file(1, owner: 1), store: "/srv/a.store")
    bench.find(file(1, owner: 2), store: "/srv/b.store")
    #expect(probes(bench.handle(.probesEnded(error))) == [["/srv/b.store"]])
    #expect(probes(bench.answer(.current, file(1, owner: 2), store: "/srv/b.store")) == [])
    #expect(bench.queue.nextDeadline == bench.now + .seconds(10))
    #expect(probes(bench.wait(.seconds(10))) == [["/srv/a.store"]])
    bench.handle(.probesEnded(error))
    #expect(bench.queue.nextDeadline == bench.now + .seconds(20))
    #expect(
      probes(bench.find(file(1, owner: 2), store: "/srv/c.store")) == [["/srv/c.store"]])
  }

  @Test("a batch that fails for two owners in a row has all wait")
  func batchFailsForAll() {
    var bench = Bench()
    let error = InstarError(.keeperDied, "cannot start", cause: "no memory")
    for owner in 1...3 {
      bench.handle(.versionRead("/srv/\(owner).store", file(1, owner: UInt32(owner))))
    }
    #expect(probes(bench.handle(.probesEnded(error))) == [["/srv/2.store"]])
    #expect(probes(bench.handle(.probesEnded(error))) == [])
    #expect(bench.wait(.seconds(9)).isEmpty)
    #expect(probes(bench.wait(.seconds(1))) == [["/srv/3.store"]])
  }

  @Test("new plugins end the back-off of a batch that failed")
  func batchFailsAndPluginsChange() {
    var bench = Bench()
    bench.find()
    let error = InstarError(.pluginLoadFailed, "cannot load", cause: "gone")
    bench.handle(.probesEnded(error))
    #expect(probes(bench.handle(.verdictsInDoubt)) == [[Bench.store]])
  }

  @Test("a keeper that leaves a store out is asked again, less and less often")
  func keeperLeavesOut() {
    var bench = Bench()
    bench.find()
    for delay in [10, 20, 40, 60] {
      let actions = bench.handle(.probesEnded(nil))
      guard case .reportProbesFailure(let error, let followUp)? = actions.first else {
        Issue.record("not reported")
        return
      }
      #expect(error.code == .protocolViolation)
      #expect(followUp == .retry(after: .seconds(delay)))
      #expect(probes(bench.wait(.seconds(delay))) == [[Bench.store]])
    }
  }

  @Test("a store that somebody else could have planted is not retried until it changes")
  func unsafe() {
    var bench = Bench()
    bench.find()
    var report = ProbeReport(store: Bench.store, state: .unknown, reason: "planted")
    report.error = InstarError(
      .unsafePath, "cannot open it", cause: "planted",
      next: "chmod, then \(CommandText.repetition)")
    let actions = bench.handle(.probed(report, before: file(1), after: file(1)))
    guard case .reportProbeFailure(_, let error, let followUp)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
    #expect(error.code == .unsafePath)
    #expect(error.next == "chmod, then run: instarctl retry '\(Bench.store)'")
    #expect(followUp == .waitsForChange(failures: 1))
    #expect(bench.state == .resting(.quarantined))
    bench.handle(.probesEnded(nil))
    // Another owner or mode is another version.
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
  }

  @Test("a store that could not be probed at all is tried three times")
  func unreadable() {
    var bench = Bench()
    bench.find()
    let report = ProbeReport(store: Bench.store, state: .unknown, reason: "permission denied")
    for attempt in 1...3 {
      let actions = bench.handle(.probed(report, before: file(1), after: file(1)))
      #expect(actions.count == quarantines(actions).count + 1)
      #expect(quarantines(actions).count == attempt / 3)
      bench.handle(.probesEnded(nil))
      if attempt < 3 { _ = bench.wait(.seconds(60)) }
    }
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.queue.quarantinedCount == 1)

    // A reload says it only of a changed file or for another reason, and somebody's retry at once.
    func reported(_ event: StoreQueue.Event, _ cause: String, _ version: FileVersion) -> Bool {
      bench.handle(event)
      let failure = ProbeReport(store: Bench.store, state: .unknown, reason: cause)
      let actions = bench.handle(.probed(failure, before: version, after: version))
      bench.handle(.probesEnded(nil))
      return actions.contains { if case .reportProbeFailure = $0 { true } else { false } }
    }
    #expect(!reported(.verdictsInDoubt, "permission denied", file(1)))
    #expect(reported(.verdictsInDoubt, "I/O error", file(1)))
    #expect(reported(.verdictsInDoubt, "permission denied", file(2)))
    #expect(!reported(.verdictsInDoubt, "permission denied", file(1)))
    #expect(
      reported(
        .retryWanted([Bench.store], byOperator: true), "permission denied", file(1)))
  }
}

@Suite("StoreQueue: when a store is migrated")
struct StoreQueueRunTests {
  @Test("a store that is behind is reported and migrated, by the plugin the probe named")
  func behindRuns() {
    var bench = Bench()
    bench.find()
    let actions = bench.answer(.behind, plugin: "/p/notes.so")
    #expect(reports(actions) == [.behind])
    #expect(actions.contains(.run(Bench.store, plugin: "/p/notes.so")))
    #expect(bench.queue.runningCount == 1)
  }

  @Test(
    "a store that is not behind is reported and left alone",
    arguments: [
      StoreState.current, .ahead, .unversioned, .unknown, .notAStore, .corrupt, .encrypted,
    ])
  func othersRest(state: StoreState) {
    var bench = Bench()
    bench.find()
    let actions = bench.answer(state)
    #expect(reports(actions) == [state])
    #expect(runs(actions).isEmpty)
    #expect(bench.state == .resting(.idle))
  }

  @Test("no more runs go on at a time than configured; the others follow in order")
  func parallelRuns() {
    var bench = Bench(parallelRuns: 2, released: false)
    let stores = ["a", "b", "c", "d"].map { "/srv/\($0).store" }
    let begun = bench.releaseAndProbe(stores)
    #expect(begun == ["/srv/a.store", "/srv/b.store"])
    #expect(runs(bench.endRun(.migrated, store: "/srv/b.store")) == ["/srv/c.store"])
    #expect(runs(bench.endRun(.migrated, store: "/srv/a.store")) == ["/srv/d.store"])
    #expect(bench.queue.runningCount == 2)
  }

  @Test("no more stores of a watch run at a time than it allows, and they keep nobody else waiting")
  func parallelRunsOfWatch() {
    var configuration = Configuration()
    configuration.parallelRuns = 2
    var slow = Configuration.Watch(folder: "/slow")
    slow.parallelRuns = 1
    configuration.watches = [slow, Configuration.Watch(folder: "/srv")]
    var bench = Bench(configuration)
    let stores = ["/slow/a", "/slow/b", "/slow/c", "/srv/d"].map { "\($0).store" }
    let begun = bench.releaseAndProbe(stores)
    #expect(begun == ["/slow/a.store", "/srv/d.store"])
    #expect(bench.queue.queuedCount == 2)
    #expect(
      bench.status(of: "/slow/b.store")?.reason
        == "waits until fewer runs of '/slow' are in progress")
    #expect(runs(bench.endRun(.migrated, store: "/srv/d.store")).isEmpty)
    // The next one is gone when its turn comes.
    bench.handle(.forgotten("/slow/b.store"))
    #expect(runs(bench.endRun(.migrated, store: "/slow/a.store")) == ["/slow/c.store"])

    bench.find(store: "/slow/b.store")
    let report = ProbeReport(store: "/slow/b.store", format: .coredata, state: .behind)
    bench.handle(.probesEnded(nil))
    #expect(runs(bench.handle(.probed(report, before: file(1), after: file(1)))).isEmpty)
    configuration.watches[0].parallelRuns = nil
    // Verdicts come into doubt first: nothing runs as the old settings would have it.
    #expect(runs(bench.handle(.settingsChanged(StoreQueue.Settings(configuration)))).isEmpty)
    #expect(runs(bench.handle(.tick)) == ["/slow/b.store"])
  }

  @Test("a store without a watch is forgotten when its turn comes, and its recovery takes place")
  func withoutWatch() {
    var bench = Bench()
    let store = "/elsewhere/a.store"
    bench.find(store: store)
    #expect(runs(bench.answer(.behind, store: store)).isEmpty)
    #expect(bench.queue.storeCount == 0 && bench.queue.queuedCount == 0)
    #expect(bench.handle(.interrupted(store, owner: 0)).contains(.recover(store)))
  }

  @Test("a run starts only while the window of its watch is open, and one of another watch at once")
  func windows() throws {
    var configuration = Configuration()
    var nights = Configuration.Watch(folder: "/nights")
    nights.window = TimeWindow(opens: [try CalendarEvent("22:00")], length: .seconds(3600))
    configuration.watches = [nights, Configuration.Watch(folder: "/srv")]
    var bench = Bench(configuration)
    let stores = ["/nights/a.store", "/srv/b.store"]
    let begun = bench.releaseAndProbe(stores)
    #expect(begun == ["/srv/b.store"])
    #expect(runs(bench.handle(.windowsKnown(["/nights": .init(isOpen: false)]))).isEmpty)
    #expect(
      bench.status(of: "/nights/a.store")?.reason
        == "waits until the window of '/nights' opens")
    #expect(
      runs(bench.handle(.windowsKnown(["/nights": .init(isOpen: true)]))) == ["/nights/a.store"])
  }

  @Test("four runs on small stores take the place of one; a large store waits until there is room")
  func smallRuns() {
    var bench = Bench(parallelRuns: 2, released: false)
    let small = (1...9).map { "/srv/\($0).store" }
    let large = "/srv/large.store"
    let stores = Array(small.prefix(7)) + [large] + Array(small.suffix(2))
    let begun = bench.releaseAndProbe(stores) { $0 == large ? 1 << 30 : 4096 }
    #expect(begun == Array(small.prefix(7)))
    for store in small.prefix(2) { #expect(runs(bench.endRun(.migrated, store: store)).isEmpty) }
    #expect(runs(bench.endRun(.migrated, store: small[2])) == [large])
    #expect(runs(bench.endRun(.migrated, store: small[3])) == [small[7]])
    #expect(runs(bench.endRun(.migrated, store: large)) == [small[8]])
  }

  @Test("a touch during a run begins no second run of the store")
  func touchedWhileRunning() {
    var bench = Bench()
    bench.beginRun()
    #expect(bench.handle(.touched(Bench.store)).isEmpty)
    #expect(bench.find(file(7)).isEmpty)
    #expect(bench.wait(.seconds(20)).isEmpty)
    #expect(bench.state == .running(inDoubt: false))
  }

  @Test("the events of a cutover cause one probe, and then rest")
  func ownWrites() {
    var bench = Bench()
    bench.beginRun()
    #expect(followUp(bench.endRun(.migrated, after: file(2))) == StoreQueue.FollowUp.none)
    for _ in 0..<5 { bench.handle(.touched(Bench.store)) }
    #expect(bench.wait(.milliseconds(500)) == [.readVersion(Bench.store)])
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
    bench.answer(.current, file(2))
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find(file(2)).isEmpty)
    #expect(bench.state == .resting(.idle))
  }

  @Test("a failed run is retried after 10 s, then 20 s, and not after the third equal failure")
  func failures() {
    var bench = Bench()
    bench.find()
    #expect(bench.failRun() == .retry(after: .seconds(10)))
    #expect(probes(bench.wait(.seconds(10))) == [[Bench.store]])
    #expect(bench.failRun() == .retry(after: .seconds(20)))
    #expect(probes(bench.wait(.seconds(20))) == [[Bench.store]])
    #expect(bench.failRun() == .waitsForChange(failures: 3))
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.queue.quarantinedCount == 1)
    #expect(bench.wait(.seconds(3600)).isEmpty)
    #expect(bench.queue.nextDeadline == nil)
  }

  @Test("the back-off stops growing at its limit, and different causes are retried for ever")
  func unequalFailures() {
    var bench = Bench()
    bench.find()
    var delays: [Duration] = []
    for number in 0..<6 {
      guard case .retry(let delay)? = bench.failRun("cause \(number)") else { break }
      delays.append(delay)
      bench.wait(delay)
    }
    #expect(delays == [10, 20, 40, 60, 60, 60].map { .seconds($0) })
  }

  @Test("a cause that names the run counts as the same cause in the next run")
  func causeNamesRun() {
    var bench = Bench()
    bench.find()
    for number in 1...3 {
      bench.failRun("no '/srv/.instar/run-R\(number)/clone'", run: "R\(number)")
      bench.wait(.seconds(60))
    }
    #expect(bench.state == .resting(.quarantined))
  }

  @Test("a store that changed during its failed runs is retried")
  func changingStoreIsRetried() {
    var bench = Bench()
    bench.find()
    for number in 1...5 {
      let before = file(Int64(number))
      let after = file(Int64(number + 1))
      #expect(bench.failRun(before: before, after: after) != .waitsForChange(failures: 3))
      bench.wait(.seconds(600))
    }
  }

  @Test(
    "an error that waiting cannot cure is not retried before the store or a plugin changes",
    arguments: [
      InstarError.Code.stageFailed, .workerExited, .rowsLost, .missingRequiredValues, .corruptStore,
      .ambiguousPlan, .wrongABI,
    ])
  func incurable(code: InstarError.Code) {
    var bench = Bench()
    bench.beginRun()
    #expect(followUp(bench.endRun(.failed, failure("x", code))) == .waitsForChange(failures: 1))
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.wait(.seconds(3600)).isEmpty)
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
  }

  @Test("a full disk is retried for as long as it takes")
  func noSpace() {
    var bench = Bench()
    bench.find()
    for _ in 0..<5 {
      bench.answer(.behind)
      let next = followUp(bench.endRun(.refused, failure("3 MB are missing", .noSpace)))
      #expect(next != .waitsForChange(failures: 3))
      bench.wait(.seconds(600))
    }
  }

  @Test("a busy store is retried for as long as it takes")
  func busyRuns() {
    var bench = Bench()
    bench.find()
    for delay in [10, 20, 40, 60, 60] {
      bench.answer(.behind)
      #expect(
        followUp(bench.endRun(.busy, failure("held", .busyStore))) == .retry(after: .seconds(delay))
      )
      bench.wait(.seconds(delay))
    }
  }

  @Test("the end of the attempts on a busy store is a warning, with the advice to retry it")
  func busyAttempts() throws {
    var configuration = Configuration()
    configuration.retry.attempts = 2
    configuration.watches = [Configuration.Watch(folder: "/srv", patterns: ["*"])]
    var bench = Bench(configuration)
    bench.handle(.released)
    var locked = failure(InstarError.lockedCause, .busyStore)
    locked.next = "stop process 13 (app) or wait until it closes the store"
    bench.beginRun()
    var entries: [EventEntry] = []
    func end() {
      for case .reportRun(let report, let followUp) in bench.endRun(.busy, locked) {
        entries.append(DaemonEvent.runEnded(report, followUp).entry)
      }
    }
    end()
    bench.wait(.seconds(60))
    bench.answer(.behind)
    end()
    #expect(entries.map(\.level) == [.info, .warning])
    #expect(
      try #require(entries.first).message.hasSuffix("if that fails too, \(locked.next ?? "")"))
    let advice = "\(locked.next ?? ""), then run: instarctl retry '\(Bench.store)'"
    #expect(try #require(entries.last).message.hasSuffix(advice))
    let status = bench.status()
    #expect(status?.activity == .quarantined && status?.error?.next == advice)
  }

  @Test("the status shows why no plan can be chosen for a store, after the failures")
  func ambiguousPlan() {
    var bench = Bench()
    let error = InstarError(
      .ambiguousPlan, "cannot choose a plan for '\(Bench.store)'", store: Bench.store,
      cause: "2 plans know the store", next: "remove one")
    var report = ProbeReport(
      store: Bench.store, format: .coredata, state: .unknown, reason: error.cause)
    report.error = error
    bench.find()
    bench.handle(.probed(report, before: file(1), after: file(1)))
    bench.handle(.probesEnded(nil))
    bench.find(store: "/srv/z.store")
    bench.answer(.behind, store: "/srv/z.store")
    bench.endRun(.refused, failure("has no title", .rowsLost), store: "/srv/z.store")
    let failures = bench.queue.overview(of: nil, failures: 5, at: bench.now).failures
    #expect(failures.map(\.store) == ["/srv/z.store", Bench.store])
    #expect(failures.last?.error?.code == .ambiguousPlan && failures.last?.activity == .idle)
    #expect(
      failures.last?.error?.store == Bench.store && failures.last?.error?.next == "remove one")
  }

  @Test("reading the version of an unchanged store that backs off does not shorten the wait")
  func touchWhileBackingOff() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.failed, failure("x"))
    let due = bench.now + .seconds(10)
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.backingOff(until: due)))
    #expect(probes(bench.wait(.seconds(9))) == [[Bench.store]])
  }

  @Test("a store that changed is retried, but not sooner than the first back-off")
  func changeWhileBackingOff() {
    var bench = Bench()
    bench.find()
    for _ in 0..<2 {
      bench.failRun()
      bench.wait(.seconds(30))
    }
    bench.failRun()
    let failedAt = bench.now
    #expect(bench.state == .resting(.quarantined))
    bench.wait(.seconds(1))
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind, file(2))).isEmpty)
    #expect(bench.state == .resting(.backingOff(until: failedAt + .seconds(10))))
    #expect(probes(bench.wait(.seconds(9))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind, file(2))) == [Bench.store])
    #expect(
      followUp(bench.endRun(.failed, failure("x"), before: file(2), after: file(2)))
        == .retry(after: .seconds(10)))
  }

  @Test("new plugins wake a quarantined store at once")
  func pluginsWakeBlocked() {
    var bench = Bench()
    bench.find()
    for _ in 0..<3 {
      bench.failRun()
      if bench.state != .resting(.quarantined) { _ = bench.wait(.seconds(30)) }
    }
    #expect(probes(bench.handle(.verdictsInDoubt)) == [[Bench.store]])
    #expect(bench.queue.quarantinedCount == 0)
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("plugins that change during a run that fails have the store probed again at once")
  func pluginsChangedWhileRunning() {
    var bench = Bench()
    bench.beginRun()
    bench.handle(.verdictsInDoubt)
    #expect(followUp(bench.endRun(.failed, failure("x"))) == .atOnce)
    #expect(bench.wait(.milliseconds(500)) == [.readVersion(Bench.store)])
    bench.find()
    #expect(runs(bench.answer(.behind)) == [Bench.store])
  }

  @Test("plugins that change while a run waits for its turn have the store probed again first")
  func pluginsChangedWhileQueued() {
    var bench = Bench(parallelRuns: 1)
    bench.beginRun()
    bench.find(store: "/srv/b.store")
    bench.answer(.behind, store: "/srv/b.store")
    #expect(bench.queue.state(of: "/srv/b.store") == .runQueued)
    #expect(probes(bench.handle(.verdictsInDoubt)) == [["/srv/b.store"]])
    #expect(runs(bench.endRun(.migrated)).isEmpty)
    #expect(runs(bench.answer(.behind, store: "/srv/b.store")) == ["/srv/b.store"])
  }

  @Test("a store that is behind again right after it was migrated is not migrated in a circle")
  func migratedInCircle() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.migrated, after: file(2))
    bench.wait(.seconds(1))
    bench.find(file(2))
    #expect(runs(bench.answer(.behind, file(2))).isEmpty)
    #expect(bench.state == .resting(.backingOff(until: bench.now + .seconds(10))))
  }

  @Test("a store that goes away during its run is forgotten after it")
  func goneWhileRunning() {
    var bench = Bench()
    bench.beginRun()
    bench.handle(.missing(Bench.store))
    #expect(bench.queue.runningCount == 1)
    bench.endRun(.failed, failure("gone"))
    #expect(bench.queue.runningCount == 0)
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    bench.handle(.missing(Bench.store))
    #expect(bench.queue.storeCount == 0)
  }

  @Test("after stopping nothing is begun, and a run that was called off is said to follow later")
  func stopping() {
    var bench = Bench(parallelRuns: 1)
    bench.beginRun()
    #expect(bench.handle(.stopping).isEmpty)
    #expect(bench.find(store: "/srv/b.store").isEmpty)
    let actions = bench.endRun(.failed, failure("called off", .interrupted))
    #expect(followUp(actions) == .afterRestart)
    #expect(runs(actions).isEmpty && probes(actions).isEmpty)
  }

  // MARK: Recovery, owners

  @Test("a store whose run was cut off is recovered at once, and only then probed")
  func recovery() {
    var bench = Bench(released: false)
    let store = Bench.store
    #expect(bench.handle(.interrupted(store, owner: 1)) == [.recover(store)])
    bench.handle(.released)
    // Another store does not wait for it.
    #expect(probes(bench.find(store: "/srv/b.store")) == [["/srv/b.store"]])
    #expect(bench.find(store: store).isEmpty)
    #expect(bench.handle(.touched(store)).isEmpty)
    #expect(bench.state == .recovering)
    #expect(bench.handle(.recovered(store, nil)).isEmpty)
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    bench.answer(.current, store: "/srv/b.store")
    #expect(probes(bench.find(store: store)) == [[store]])
  }

  @Test(
    "a run that ended without its recovery is recovered later, but not while its store is at work")
  func laterRecovery() {
    var bench = Bench()
    let store = Bench.store
    bench.beginRun()
    #expect(bench.handle(.interrupted(store, owner: 1)).isEmpty)
    #expect(bench.state == .running(inDoubt: false))
    bench.endRun(.failed, failure("the disk is full", .noSpace))
    #expect(bench.handle(.interrupted(store, owner: 1)) == [.recover(store)])
    #expect(bench.state == .recovering)
    bench.handle(.recovered(store, failure("the disk is full", .noSpace)))
    // Its own pause counts, whoever finds the run again.
    #expect(bench.handle(.interrupted(store, owner: 1)).isEmpty)
    #expect(bench.wait(.seconds(10)) == [.recover(store)])
  }

  @Test("a recovery that fails is repeated after a pause, also when the store is gone")
  func failedRecovery() {
    var bench = Bench()
    let store = Bench.store
    bench.handle(.interrupted(store, owner: 1))
    let error = failure("the disk is gone", .busyStore)
    #expect(
      bench.handle(.recovered(store, error))
        == [.reportRecoveryFailure(error, .retry(after: .seconds(10)))])
    #expect(bench.handle(.missing(store)).isEmpty)
    #expect(bench.wait(.seconds(10)) == [.recover(store)])
    bench.handle(.recovered(store, error))
    bench.handle(.touched(store))
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    #expect(bench.handle(.missing(store)) == [.recover(store)])
    bench.handle(.recovered(store, nil))
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    bench.handle(.missing(store))
    #expect(bench.state == nil)
  }

  @Test("a recovery that is canceled because the daemon stops is not told as a failure")
  func recoveryAtStop() {
    for (code, isTold) in [(InstarError.Code.interrupted, false), (.corruptStore, true)] {
      var bench = Bench()
      let store = Bench.store
      bench.handle(.interrupted(store, owner: 1))
      bench.handle(.stopping)
      let error = failure("the daemon stops", code)
      let actions = bench.handle(.recovered(store, error))
      #expect(actions.contains(.reportRecoveryFailure(error, .afterRestart)) == isTold)
    }
  }

  @Test("each owner has the stores whose files are theirs now")
  func storesOfOwners() {
    var bench = Bench(parallelRuns: 2)
    for number in 0..<20 {
      bench.handle(.versionRead("/srv/\(number)", file(1, owner: UInt32(number % 2))))
    }
    bench.find(file(2, owner: 1), store: "/srv/0")
    bench.handle(.interrupted("/srv/20", owner: 1))
    bench.handle(.missing("/srv/1"))
    bench.handle(.touched("/srv/new"))
    func stores(_ numbers: some Sequence<Int>) -> Set<String> { Set(numbers.map { "/srv/\($0)" }) }
    let even = stores(stride(from: 2, to: 20, by: 2))
    #expect(Set(bench.queue.stores(of: 0)) == even)
    #expect(
      Set(bench.queue.stores(of: 1))
        == stores(stride(from: 3, to: 20, by: 2)).union(["/srv/0", "/srv/20"]))
    #expect(bench.queue.stores(of: 2).isEmpty)
    #expect(bench.queue.stores(of: nil).count == 21)
    let overview = bench.queue.overview(of: 0, failures: 5, at: bench.now)
    #expect(overview.stores == even.count)
    for store in even { bench.handle(.forgotten(store)) }
    #expect(bench.queue.storeCount(ofOwner: 0) == 0)
  }

  @Test("the stores of one owner do not keep another owner's store waiting")
  func owners() {
    var bench = Bench(parallelRuns: 2)
    let mallory = ["/m/1", "/m/2", "/m/3"]
    var started = mallory.flatMap { bench.handle(.interrupted($0, owner: 666)) }
    #expect(started == [.recover("/m/1"), .recover("/m/2")])
    started = bench.handle(.interrupted("/a/1", owner: 1))
    #expect(started.isEmpty)
    // One more than `parallel`, but only after a while.
    #expect(bench.wait(.seconds(59)).isEmpty)
    #expect(bench.queue.nextDeadline != nil)
    #expect(bench.wait(.seconds(1)) == [.recover("/a/1")])
    #expect(bench.handle(.interrupted("/a/2", owner: 1)).isEmpty)
    // The owner with fewer runs is next, although the other one has waited longer.
    #expect(bench.handle(.recovered("/a/1", nil)) == [.recover("/a/2")])
    #expect(bench.handle(.recovered("/m/1", nil)).isEmpty)
    #expect(bench.handle(.recovered("/m/2", nil)) == [.recover("/m/3")])
  }

  // MARK: Orders of an operator

  @Test("a pause starts no run; its end starts those that waited, and recoveries never wait")
  func pause() {
    var bench = Bench()
    bench.handle(.pauseChanged(isPaused: true))
    #expect(bench.beginRun().allSatisfy { if case .run = $0 { false } else { true } })
    #expect(bench.state == .runQueued && bench.queue.queuedCount == 1)
    #expect(bench.status()?.activity == .queued)
    #expect(bench.handle(.interrupted("/srv/b.store", owner: 0)) == [.recover("/srv/b.store")])
    #expect(
      bench.handle(.pauseChanged(isPaused: false)) == [.run(Bench.store, plugin: nil)])
  }

  @Test("the time left is that of the last runs for all stores that are behind")
  func timeLeft() {
    var bench = Bench(parallelRuns: 1)
    let all = ["/srv/a.store", "/srv/b.store", "/srv/c.store", "/srv/d.store"]
    func left() -> Duration? { bench.queue.timeLeft(at: bench.now) }
    for store in all {
      bench.find(store: store)
      bench.answer(.behind, store: store)
    }
    bench.handle(.scanned)
    #expect(left() == nil, "no run has ended")
    bench.wait(.seconds(10))
    bench.endRun(.migrated, store: all[0])
    #expect(left() == .seconds(30))
    bench.wait(.seconds(20))
    bench.endRun(.failed, failure("14 rows"), store: all[1])
    #expect(left() == .seconds(30), "two runs of 15 s on average")
    bench.handle(.pauseChanged(isPaused: true))
    #expect(left() == nil)
    bench.wait(.seconds(15))
    bench.endRun(.migrated, store: all[2])
    // An hour without a run says nothing about the runs.
    bench.wait(.seconds(3600))
    bench.handle(.pauseChanged(isPaused: false))
    #expect(left() == .seconds(15))
    bench.wait(.seconds(15))
    bench.endRun(.migrated, store: all[3])
    #expect(left() == nil, "no store is behind")
  }

  @Test("damage that a run finds is the verdict on the store, and reported once for its file")
  func damageInRun() {
    var bench = Bench()
    bench.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    let actions = bench.endRun(.refused, damage)
    #expect(reports(actions) == [.corrupt])
    #expect(followUp(actions) == .waitsForChange(failures: 1))
    #expect(quarantines(actions).first?.verdict?.state == .corrupt)
    let status = bench.status()
    #expect(status?.state == .corrupt && status?.reason == damage.cause)
    #expect(status?.activity == .quarantined && status?.error == damage)
    #expect(bench.queue.groupCounts.map(\.key.state) == [.corrupt])
    // Neither a reload nor another plugin has the store tried again.
    #expect(bench.handle(.verdictsInDoubt) == [])
    #expect(bench.status()?.state == .corrupt)
    // A hold only holds it: its probe would not find the damage.
    #expect(bench.handle(.holdsChanged(of: [Bench.store], held: [Bench.store])) == [])
    let held = bench.status()
    #expect(held?.activity == .held && held?.state == .corrupt && held?.error == damage)
    #expect(bench.handle(.holdsChanged(of: [Bench.store], held: [])) == [])
    #expect(bench.status() == status)
    // Whoever wants another attempt gets one: somebody may have repaired the store.
    bench.retry()
    #expect(runs(bench.answer(.behind)) == [Bench.store])
    #expect(reports(bench.endRun(.refused, damage)) == [.corrupt])
    // So does another file.
    bench.wait(.seconds(60))
    #expect(probes(bench.find(file(2))) == [[Bench.store]])
    #expect(runs(bench.answer(.behind, file(2))) == [Bench.store])
    let error = failure("has no title", .rowsLost)
    #expect(reports(bench.endRun(.refused, error, before: file(2), after: file(2))) == [])
    #expect(bench.status()?.state == .behind)
  }

  @Test(
    "an error that proves no damage of the store does not change its verdict, whatever its text",
    arguments: [InstarError.Code.corruptStore, .verificationFailed, .unsupported])
  func healthyInRun(_ code: InstarError.Code) {
    var bench = Bench()
    bench.beginRun()
    let error = failure("database disk image is malformed", code)
    #expect(reports(bench.endRun(.refused, error)) == [])
    let status = bench.status()
    #expect(status?.state == .behind && status?.activity == .quarantined)
  }

  @Test("damage of a file that a run found replaced is not the verdict on the new file")
  func damageOfReplaced() {
    let damage = failure("database disk image is malformed", .corruptStore).provingDamage()
    for after in [file(2), nil] {
      var bench = Bench()
      bench.beginRun()
      #expect(reports(bench.endRun(.refused, damage, after: after)) == [])
      #expect(bench.status()?.state == .behind)
    }
    var bench = Bench()
    bench.beginRun()
    bench.handle(.verdictsInDoubt)
    #expect(reports(bench.endRun(.refused, damage)) == [])
  }

  @Test("a held store that is damaged is not retried a moment after it changed either")
  func retryOfHeldAndDamaged() {
    var bench = Bench()
    bench.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    bench.endRun(.refused, damage)
    bench.handle(.holdsChanged(of: [Bench.store], held: [Bench.store]))
    for _ in 1...2 {
      let reason = bench.queue.reasonNotToRetry(Bench.store, isAdmin: true, at: bench.now) { _ in
        ""
      }
      #expect(reason == "held; to see by whom, run: instarctl hold")
      #expect(!bench.queue.canRetry(Bench.store, at: bench.now))
      #expect(bench.retry() == [])
      #expect(bench.status()?.state == .corrupt)
      bench.handle(.touched(Bench.store))
    }
  }

  @Test("a hold that is placed during a pause is seen")
  func holdDuringPause() {
    var bench = Bench()
    bench.handle(.pauseChanged(isPaused: true))
    bench.beginRun()
    // That of another store changes nothing.
    #expect(bench.handle(.holdsChanged(of: nil, held: ["/srv/b.store"])).isEmpty)
    #expect(bench.handle(.holdsChanged(of: nil, held: [Bench.store])) == [.probe([Bench.store])])
    let hold = hold()
    bench.answer(.behind, hold: hold)
    #expect(bench.status()?.activity == .held)
    #expect(bench.handle(.pauseChanged(isPaused: false)).isEmpty)
  }

  @Test("a retry that an operator wants does not wait, and the error stays until it ends")
  func retry() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.failed, failure("14 rows", .stageFailed))
    let quarantined = bench.status()
    #expect(quarantined?.activity == .quarantined && quarantined?.error?.cause == "14 rows")
    #expect(quarantined?.secondsToRetry == nil)
    #expect(
      bench.retry()
        == [.endQuarantine([Bench.store]), .probe([Bench.store])])
    #expect(bench.answer(.behind).contains(.run(Bench.store, plugin: nil)))
    // A running store is left alone.
    #expect(bench.retry().isEmpty)
    #expect(bench.status()?.error?.cause == "14 rows")
    bench.endRun(.migrated)
    #expect(bench.status()?.error == nil)
  }

  @Test("a store that waits for its next attempt says when that is")
  func backOff() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.busy, failure("locked", .busyStore))
    let status = bench.queue.status(of: Bench.store, at: bench.now + .seconds(4))
    #expect(status?.activity == .retrying && status?.secondsToRetry == 6)
  }

  @Test("a retry that the owner wants keeps the first delay of the back-off")
  func retryOfOwner() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.failed, failure("14 rows", .stageFailed))
    func reason(isAdmin: Bool) -> String? {
      bench.queue.reasonNotToRetry(Bench.store, isAdmin: isAdmin, at: bench.now) { _ in "" }
    }
    let waits =
      "instard starts its next run in 10 s; an administrator can start it at once"
    #expect(reason(isAdmin: false) == waits && reason(isAdmin: true) == nil)
    #expect(
      bench.retry(byOperator: false)
        == [.endQuarantine([Bench.store]), .probe([Bench.store])])
    let soon = bench.answer(.behind)
    #expect(reason(isAdmin: false) == waits && reason(isAdmin: true) == nil)
    #expect(soon.allSatisfy { if case .run = $0 { false } else { true } })
    #expect(bench.wait(.seconds(10)) == [.probe([Bench.store])])
    #expect(bench.answer(.behind).contains(.run(Bench.store, plugin: nil)))
  }

  @Test("a quarantined store that changed a moment ago is retried too")
  func retryOfTouched() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.failed, failure("14 rows", .stageFailed))
    bench.handle(.touched(Bench.store))
    #expect(bench.queue.waitsForRetry(Bench.store))
    bench.retry()
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find() == [.probe([Bench.store])])
  }

  @Test("a retry of a store that needs none, or may have none, has a reason")
  func notRetried() {
    var bench = Bench()
    func reason(isAdmin: Bool = true) -> String? {
      bench.queue.reasonNotToRetry(Bench.store, isAdmin: isAdmin, at: bench.now) {
        "instarctl release \($0.store)"
      }
    }
    bench.find()
    #expect(reason() == "instard is about to probe the store")
    bench.answer(.current)
    #expect(reason() == "current")
    bench.handle(.verdictsInDoubt)
    let hold = hold()
    bench.answer(.behind, hold: hold)
    #expect(reason() == "\(hold.sentence); run: instarctl release \(Bench.store)")
    bench.handle(.verdictsInDoubt)
    bench.answer(.behind)
    #expect(reason() == "its run is in progress")
    bench.endRun(.failed, failure("14 rows", .stageFailed))
    #expect(reason() == nil)
    bench.handle(.pauseChanged(isPaused: true))
    #expect(reason() == "instard is paused; run: instarctl resume")
    #expect(
      reason(isAdmin: false) == "instard is paused; ask an administrator to run: instarctl resume")
  }

  @Test(
    "a file that nobody can use is retried with the stores that failed",
    arguments: [StoreState.notAStore, .corrupt, .encrypted, .ahead, .current])
  func retryOfUnusable(state: StoreState) {
    var bench = Bench()
    bench.find()
    bench.answer(state)
    #expect(bench.queue.waitsForRetry(Bench.store) == state.isUnusable)
  }
}

@Suite("StoreQueue: stores that vanish or move")
struct StoreQueueAbsenceTests {
  /// The store is quarantined after a failure that another attempt would repeat.
  private func quarantined() -> Bench {
    var bench = bench()
    bench.beginRun()
    bench.endRun(.failed, failure("a note has no title", .stageFailed))
    return bench
  }

  private func bench() -> Bench {
    var configuration = Configuration()
    configuration.watches = [
      Configuration.Watch(folder: "/srv"), Configuration.Watch(folder: "/other"),
    ]
    var bench = Bench(configuration)
    bench.handle(.released)
    return bench
  }

  @Test("a quarantined store that comes back as it was stays quarantined, and is not probed")
  func comesBack() {
    var bench = quarantined()
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.handle(.missing(Bench.store)).isEmpty)
    #expect(bench.state == nil && bench.queue.quarantinedCount == 0)
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.quarantined) && bench.queue.quarantinedCount == 1)
  }

  @Test("a store that comes back with another file, or after a plugin changed, is probed")
  func comesBackOtherwise() {
    for isOtherPlugin in [true, false] {
      var bench = quarantined()
      bench.handle(.missing(Bench.store))
      if isOtherPlugin { _ = bench.handle(.verdictsInDoubt) }
      let version = file(isOtherPlugin ? 1 : 2)
      #expect(probes(bench.handle(.versionRead(Bench.store, version))) == [[Bench.store]])
    }
  }

  @Test("a quarantined store that was held while it was missing is probed")
  func comesBackHeld() {
    var bench = quarantined()
    bench.handle(.missing(Bench.store))
    bench.handle(.holdsChanged(of: [Bench.store], held: [Bench.store]))
    #expect(probes(bench.find()) == [[Bench.store]])
  }

  @Test("a quarantined store in a folder that got another name stays quarantined")
  func moves() {
    var bench = quarantined()
    let actions = bench.handle(.folderMoved(from: "/srv", to: "/other"))
    #expect(quarantines(actions).map(\.store) == ["/other/a.store"])
    #expect(ended(actions) == [Bench.store] && actions.count == 2)
    #expect(bench.state == nil)
    #expect(bench.queue.state(of: "/other/a.store") == .resting(.quarantined))
    #expect(bench.find(store: "/other/a.store").isEmpty)
    #expect(bench.queue.quarantinedCount == 1 && bench.queue.storeCount == 1)
  }

  @Test("a store in a folder that no watch has under its new name is forgotten")
  func movesAway() {
    var bench = quarantined()
    bench.handle(.folderMoved(from: "/srv", to: "/elsewhere"))
    #expect(bench.queue.storeCount == 0 && bench.queue.quarantinedCount == 0)
  }

  @Test(
    "a run goes on in a folder that got another name, and the store has no second one meanwhile")
  func movesDuringRun() {
    var bench = bench()
    bench.beginRun()
    bench.handle(.folderMoved(from: "/srv", to: "/other"))
    #expect(bench.state == .running(inDoubt: false))
    #expect(probes(bench.find(store: "/other/a.store")) == [["/other/a.store"]])
    bench.endRun(.migrated, after: file(2))
    bench.wait(.seconds(1))
    bench.handle(.missing(Bench.store))
    #expect(bench.queue.stores == ["/other/a.store"])
  }
}

@Suite("StoreQueue: quarantine over a restart")
struct StoreQueueRestartTests {
  private static let plugin = RolloutRecord.PluginFile(path: "/p/a.so", bytes: 1, modified: 1)

  private func bench() -> Bench {
    var configuration = Configuration()
    configuration.watches = [Configuration.Watch(folder: "/srv")]
    return Bench(configuration)
  }

  /// What a daemon records of a store whose only run fails.
  private func record() throws -> QuarantineRecord {
    var bench = bench()
    bench.handle(.pluginsKnown([Self.plugin]))
    bench.handle(.released)
    bench.beginRun()
    let actions = bench.endRun(.failed, failure("a note has no title", .stageFailed))
    return try #require(quarantines(actions).first)
  }

  /// A daemon that starts with the record, and finds the store.
  private func restarted(
    _ record: QuarantineRecord, with plugins: [RolloutRecord.PluginFile] = [plugin],
    version: FileVersion = file(1)
  ) -> (bench: Bench, actions: [StoreQueue.Action]) {
    var bench = bench()
    bench.queue.restore([record])
    var actions = bench.handle(.versionRead(Bench.store, version))
    for event: StoreQueue.Event in [.pluginsKnown(plugins), .verdictsInDoubt, .released] {
      actions += bench.handle(event)
    }
    return (bench, actions)
  }

  @Test("a quarantined store stays so, with its error and its state, and is not probed")
  func stays() throws {
    let (bench, actions) = restarted(try record())
    #expect(actions.isEmpty)
    #expect(bench.state == .resting(.quarantined) && bench.queue.quarantinedCount == 1)
    let status = bench.status()
    #expect(status?.error?.cause == "a note has no title" && status?.state == .behind)
  }

  @Test("a store that is found after the plugins stays so too")
  func foundLate() throws {
    var bench = bench()
    bench.queue.restore([try record()])
    for event: StoreQueue.Event in [.pluginsKnown([Self.plugin]), .verdictsInDoubt, .released] {
      bench.handle(event)
    }
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.quarantined))
  }

  @Test("another file, other plugins and none of them end the quarantine")
  func lifted() throws {
    let record = try record()
    let changed = RolloutRecord.PluginFile(path: "/p/a.so", bytes: 1, modified: 2)
    let further = RolloutRecord.PluginFile(path: "/p/b.so", bytes: 1, modified: 1)
    for actions in [
      restarted(record, version: file(2)).actions, restarted(record, with: [changed]).actions,
      restarted(record, with: [Self.plugin, further]).actions, restarted(record, with: []).actions,
    ] {
      #expect(probes(actions) == [[Bench.store]] && ended(actions) == [Bench.store])
    }
  }

  @Test("after the start, a retry, a reload and a change of the file end the quarantine")
  func liftedLater() throws {
    let record = try record()
    for event: StoreQueue.Event in [
      .verdictsInDoubt, .retryWanted([Bench.store], byOperator: true), .forgotten(Bench.store),
    ] {
      var (bench, _) = restarted(record)
      #expect(ended(bench.handle(event)) == [Bench.store])
    }
    var (bench, _) = restarted(record)
    #expect(bench.handle(.touched(Bench.store)).isEmpty)
    bench.wait(.seconds(1))
    #expect(ended(bench.find(file(2))) == [Bench.store])
  }

  @Test("a store that is missing stays recorded, because its file system may come back")
  func missing() throws {
    var (bench, _) = restarted(try record())
    #expect(bench.handle(.missing(Bench.store)).isEmpty)
    #expect(bench.find().isEmpty)
    bench.handle(.missing(Bench.store))
    #expect(ended(bench.handle(.verdictsInDoubt)) == [Bench.store])
  }

  @Test("a damaged store that is missing stays quarantined also with other plugins")
  func missingAndDamaged() {
    var bench = bench()
    bench.handle(.pluginsKnown([Self.plugin]))
    bench.handle(.released)
    bench.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    bench.endRun(.refused, damage)
    bench.handle(.missing(Bench.store))
    #expect(bench.handle(.verdictsInDoubt).isEmpty)
    #expect(bench.find().isEmpty)
    let status = bench.status()
    #expect(status?.activity == .quarantined && status?.state == .corrupt)
  }

  @Test("a damaged store is held from the moment when it is found, and a retry keeps its verdict")
  func heldAndDamaged() throws {
    var old = bench()
    _ = old.handle(.pluginsKnown([Self.plugin]))
    _ = old.handle(.released)
    _ = old.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    let record = try #require(quarantines(old.endRun(.refused, damage)).first)

    var bench = bench()
    bench.queue.restore([record])
    bench.handle(.holdsChanged(of: nil, held: [Bench.store]))
    for event: StoreQueue.Event in [
      .pluginsKnown([Self.plugin]), .verdictsInDoubt, .released,
      .versionRead(Bench.store, file(1)), .retryWanted([Bench.store], byOperator: true),
    ] {
      #expect(bench.handle(event).isEmpty)
    }
    let held = bench.status()
    #expect(held?.activity == .held && held?.state == .corrupt)
    // It is released while its file system is away.
    bench.handle(.missing(Bench.store))
    bench.handle(.holdsChanged(of: [Bench.store], held: []))
    #expect(bench.find().isEmpty)
    let released = bench.status()
    #expect(released?.activity == .quarantined && released?.state == .corrupt)
  }

  @Test("a reload ends the quarantine also before the plugins are known")
  func reloaded() throws {
    let record = try record()
    let settings = bench().queue.settings
    var found = bench()
    found.queue.restore([record])
    _ = found.find()
    var actions: [StoreQueue.Action] = []
    for event: StoreQueue.Event in [
      .settingsChanged(settings), .verdictsInDoubt, .pluginsKnown([Self.plugin]), .released,
    ] {
      actions += found.handle(event)
    }
    #expect(ended(actions) == [Bench.store] && probes(actions) == [[Bench.store]])

    var missing = bench()
    missing.queue.restore([record])
    _ = missing.handle(.settingsChanged(settings))
    #expect(ended(missing.handle(.verdictsInDoubt)) == [Bench.store])
  }

  @Test("a held store is not recorded: its hold may end before the next start")
  func held() {
    var bench = bench()
    bench.handle(.released)
    bench.beginRun()
    let actions = bench.endRun(.refused, failure("held by anna", .heldStore))
    #expect(quarantines(actions).isEmpty)
  }

  @Test("a store that fails while the daemon stops is not recorded: the next start retries it")
  func stopping() {
    var bench = bench()
    bench.handle(.released)
    bench.beginRun()
    bench.handle(.stopping)
    #expect(quarantines(bench.endRun(.failed, failure("14 rows", .stageFailed))).isEmpty)
  }
}
