import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

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
    #expect(held.runs.isEmpty && held.reports == [.behind])
    // An app writes the store: it is still held, which is not news.
    #expect(bench.find(file(2)).probes == [[Bench.store]])
    let again = bench.answer(.behind, file(2), hold: hold)
    #expect(again.runs.isEmpty && again.reports.isEmpty)
    #expect(bench.find(file(2)).isEmpty)
    #expect(bench.handle(.holdsChanged(of: nil, held: [])).probes == [[Bench.store]])
    #expect(bench.answer(.behind, file(2)).runs == [Bench.store])
  }

  @Test("a hold on a store that rests, or that is queued behind others, is seen at once")
  func heldAtOnce() {
    var bench = Bench(parallelRuns: 1)
    let hold = hold(of: "/srv/b.store")
    // The first store takes the slot, so the second one waits.
    #expect(bench.beginRun().runs == [Bench.store])
    bench.find(store: "/srv/b.store")
    #expect(bench.answer(.behind, store: "/srv/b.store").runs.isEmpty)
    bench.find(store: "/srv/c.store")
    bench.answer(.current, store: "/srv/c.store")
    #expect(
      bench.handle(.holdsChanged(of: nil, held: ["/srv/b.store", "/srv/c.store"])).probes == [
        ["/srv/b.store", "/srv/c.store"]
      ])
    bench.answer(.behind, store: "/srv/b.store", hold: hold)
    let status = bench.status(of: "/srv/b.store")
    #expect(status?.activity == .held && status?.reason == hold.sentence)
    #expect(bench.endRun(.migrated).runs.isEmpty)
  }

  @Test("an owner does not shorten the delay after a failure by a hold and its release")
  func holdAfterFailure() {
    var bench = Bench()
    let hold = hold()
    bench.beginRun()
    bench.endRun(.failed, failure("14 rows"))
    #expect(bench.handle(.holdsChanged(of: nil, held: [Bench.store])).probes == [[Bench.store]])
    bench.answer(.behind, hold: hold)
    #expect(bench.handle(.holdsChanged(of: nil, held: [])).probes == [[Bench.store]])
    #expect(bench.answer(.behind).runs.isEmpty)
    #expect(bench.wait(.seconds(10)).probes == [[Bench.store]])
    #expect(bench.answer(.behind).runs == [Bench.store])
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
    #expect(bench.answer(.behind, file(3)).runs == [Bench.store])
  }

  @Test("a store that was held after its probe is probed again when the holds change")
  func heldMeanwhile() {
    var bench = Bench()
    #expect(bench.beginRun().runs == [Bench.store])
    #expect(
      bench.endRun(.refused, failure("held by anna", .heldStore)).followUp
        == .waitsForChange(failures: 1))
    #expect(bench.handle(.holdsChanged(of: nil, held: [])).probes == [[Bench.store]])
    #expect(bench.answer(.behind).runs == [Bench.store])
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
    #expect(bench.answer(.behind).runs == [Bench.store])
    bench.endRun(.migrated, after: file(2))
    // The first change has the other store probed.
    bench.answer(.current, store: other)
    #expect(change(&bench).probes == [[other]])
    bench.answer(.current, store: other)
    // It is behind once more without a restore, so it waits.
    bench.handle(.touched(Bench.store))
    #expect(bench.wait(.milliseconds(500)).contains(.readVersion(Bench.store)))
    #expect(bench.find(file(3)).probes == [[Bench.store]])
    #expect(bench.answer(.behind, file(3)).runs.isEmpty)
  }

  @Test("the end of a hold on a store that was moved is seen at its new path")
  func holdOfMoved() {
    var bench = Bench()
    let hold = hold(of: "/srv/old.store")
    bench.find()
    bench.answer(.behind, hold: hold)
    #expect(
      bench.handle(.holdsChanged(of: ["/srv/old.store"], held: [])).probes == [[Bench.store]])
    #expect(bench.answer(.behind).runs == [Bench.store])
  }

  @Test("a hold that was read before it was released does not count")
  func outdatedHold() {
    var bench = Bench()
    let hold = hold()
    bench.find()
    #expect(bench.handle(.holdsChanged(of: nil, held: [])).isEmpty)
    #expect(bench.answer(.behind, hold: hold).runs.isEmpty)
    #expect(bench.wait(.seconds(1)) == [.readVersion(Bench.store)])
    #expect(bench.find().probes == [[Bench.store]])
    #expect(bench.answer(.behind).runs == [Bench.store])
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
    #expect(bench.answer(.current).reports == [.current])
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
      bench.handle(.probed(report, before: file(1), after: file(2))).runs == [Bench.store])
  }

  @Test("a touch while the probe is out causes another probe")
  func touchedWhileProbing() {
    var bench = Bench()
    bench.find()
    bench.handle(.touched(Bench.store))
    #expect(bench.answer(.notAStore).reports.isEmpty)
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
    #expect(bench.handle(.released).probes == [Array(stores[..<256])])
    #expect(bench.find(store: "/srv/x.store").probes.isEmpty)
    for store in stores[..<256] {
      let report = ProbeReport(store: store, format: .coredata, state: .current)
      #expect(bench.handle(.probed(report, before: file(1), after: file(1))).probes.isEmpty)
    }
    #expect(
      bench.handle(.probesEnded(nil)).probes == [Array(stores[256...]) + ["/srv/x.store"]])
  }

  @Test(
    "a batch has one owner's stores, and ends with one that hangs: then another owner has a turn")
  func batchesOfOwners() {
    var bench = Bench(released: false)
    let mallory = (0..<300).map { "/m/\($0)" }
    for store in mallory { bench.find(file(1, owner: 666), store: store) }
    for store in ["/a/1", "/a/2"] { bench.find(file(1, owner: 1), store: store) }
    #expect(bench.handle(.released).probes == [Array(mallory[..<256])])
    let hanging = ProbeReport(store: mallory[0], state: .unreadable, reason: "the keeper hangs")
    bench.handle(.probed(hanging, before: file(1, owner: 666), after: file(1, owner: 666)))
    #expect(bench.handle(.probesEnded(nil)) == [.probe(["/a/1", "/a/2"])])
    #expect(bench.queue.queuedCount == 299)
    for store in ["/a/1", "/a/2"] {
      let report = ProbeReport(store: store, format: .coredata, state: .current)
      bench.handle(.probed(report, before: file(1, owner: 1), after: file(1, owner: 1)))
    }
    let next = bench.handle(.probesEnded(nil)).probes
    #expect(next == [Array(mallory[256...] + mallory[1..<213])])
  }

  @Test("a changed set of plugins has every store probed again, and says nothing twice")
  func pluginsChanged() {
    var bench = Bench()
    bench.find()
    #expect(bench.answer(.unknown).reports == [.unknown])
    #expect(bench.handle(.verdictsInDoubt) == [.probe([Bench.store])])
    #expect(bench.answer(.unknown).reports.isEmpty)
    bench.handle(.verdictsInDoubt)
    #expect(bench.answer(.ahead).reports == [.ahead])
  }

  @Test("a probe that was out when the plugins changed is not believed")
  func pluginsChangedWhileProbing() {
    var bench = Bench()
    bench.find()
    bench.handle(.verdictsInDoubt)
    #expect(bench.answer(.unknown).reports.isEmpty)
    bench.wait(.seconds(1))
    #expect(bench.find().probes == [[Bench.store]])
  }

  @Test("the same file is reported once, another file at its place once more")
  func reportedOncePerFile() {
    var bench = Bench()
    bench.find()
    #expect(bench.answer(.corrupt, file(1)).reports == [.corrupt])
    bench.handle(.verdictsInDoubt)
    #expect(bench.answer(.corrupt, file(1)).reports.isEmpty)
    bench.find(file(2))
    #expect(bench.answer(.corrupt, file(2)).reports == [.corrupt])
  }

  @Test("a store that is busy is probed again after a back-off")
  func busyProbe() {
    var bench = Bench()
    bench.find()
    bench.answer(.busy)
    #expect(bench.state == .resting(.backingOff(until: bench.now + .seconds(10))))
    #expect(bench.wait(.seconds(10)).probes == [[Bench.store]])
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
      counts.append(actions.reports.count)
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
    #expect(bench.wait(.seconds(1)).probes == [["/srv/b.store", "/srv/c.store"]])
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
    #expect(bench.handle(.probesEnded(error)).probes == [["/srv/b.store"]])
    #expect(bench.answer(.current, file(1, owner: 2), store: "/srv/b.store").probes == [])
    #expect(bench.queue.nextDeadline == bench.now + .seconds(10))
    #expect(bench.wait(.seconds(10)).probes == [["/srv/a.store"]])
    bench.handle(.probesEnded(error))
    #expect(bench.queue.nextDeadline == bench.now + .seconds(20))
    #expect(
      bench.find(file(1, owner: 2), store: "/srv/c.store").probes == [["/srv/c.store"]])
  }

  @Test("a batch that fails for two owners in a row has all wait")
  func batchFailsForAll() {
    var bench = Bench()
    let error = InstarError(.keeperDied, "cannot start", cause: "no memory")
    for owner in 1...3 {
      bench.handle(.versionRead("/srv/\(owner).store", file(1, owner: UInt32(owner))))
    }
    #expect(bench.handle(.probesEnded(error)).probes == [["/srv/2.store"]])
    #expect(bench.handle(.probesEnded(error)).probes == [])
    #expect(bench.wait(.seconds(9)).isEmpty)
    #expect(bench.wait(.seconds(1)).probes == [["/srv/3.store"]])
  }

  @Test("new plugins end the back-off of a batch that failed")
  func batchFailsAndPluginsChange() {
    var bench = Bench()
    bench.find()
    let error = InstarError(.pluginLoadFailed, "cannot load", cause: "gone")
    bench.handle(.probesEnded(error))
    #expect(bench.handle(.verdictsInDoubt).probes == [[Bench.store]])
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
      #expect(bench.wait(.seconds(delay)).probes == [[Bench.store]])
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
    #expect(bench.find(file(2)).probes == [[Bench.store]])
  }

  @Test("a store that could not be probed at all is tried three times")
  func unreadable() {
    var bench = Bench()
    bench.find()
    let report = ProbeReport(store: Bench.store, state: .unknown, reason: "permission denied")
    for attempt in 1...3 {
      let actions = bench.handle(.probed(report, before: file(1), after: file(1)))
      #expect(actions.count == actions.quarantines.count + 1)
      #expect(actions.quarantines.count == attempt / 3)
      bench.handle(.probesEnded(nil))
      if attempt < 3 { _ = bench.wait(.seconds(60)) }
    }
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.queue.quarantinedCount == 1)

    // A reload says it only of a changed file or for another reason, and somebody's retry at once.
    func reported(_ event: StoreQueue.Event, _ cause: String, _ version: WatchedVersion) -> Bool {
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
