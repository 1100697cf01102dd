import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Logging
import Testing

@testable import InstarDaemon

@Suite("StoreQueue: when a store is migrated")
struct StoreQueueRunTests {
  @Test("a store that is behind is reported and migrated, by the plugin the probe named")
  func behindRuns() {
    var bench = Bench()
    bench.find()
    let actions = bench.answer(.behind, plugin: "/p/notes.so")
    #expect(actions.reports == [.behind])
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
    #expect(actions.reports == [state])
    #expect(actions.runs.isEmpty)
    #expect(bench.state == .resting(.idle))
  }

  @Test("no more runs go on at a time than configured; the others follow in order")
  func parallelRuns() {
    var bench = Bench(parallelRuns: 2, released: false)
    let stores = ["a", "b", "c", "d"].map { "/srv/\($0).store" }
    let begun = bench.releaseAndProbe(stores)
    #expect(begun == ["/srv/a.store", "/srv/b.store"])
    #expect(bench.endRun(.migrated, store: "/srv/b.store").runs == ["/srv/c.store"])
    #expect(bench.endRun(.migrated, store: "/srv/a.store").runs == ["/srv/d.store"])
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
    #expect(bench.endRun(.migrated, store: "/srv/d.store").runs.isEmpty)
    // The next one is gone when its turn comes.
    bench.handle(.forgotten("/slow/b.store"))
    #expect(bench.endRun(.migrated, store: "/slow/a.store").runs == ["/slow/c.store"])

    bench.find(store: "/slow/b.store")
    let report = ProbeReport(store: "/slow/b.store", format: .coredata, state: .behind)
    bench.handle(.probesEnded(nil))
    #expect(bench.handle(.probed(report, before: file(1), after: file(1))).runs.isEmpty)
    configuration.watches[0].parallelRuns = nil
    // Verdicts come into doubt first: nothing runs as the old settings would have it.
    #expect(bench.handle(.settingsChanged(StoreQueue.Settings(configuration))).runs.isEmpty)
    #expect(bench.handle(.tick).runs == ["/slow/b.store"])
  }

  @Test("a store without a watch is forgotten when its turn comes, and its recovery takes place")
  func withoutWatch() {
    var bench = Bench()
    let store = "/elsewhere/a.store"
    bench.find(store: store)
    #expect(bench.answer(.behind, store: store).runs.isEmpty)
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
    #expect(bench.handle(.windowsKnown(["/nights": .init(isOpen: false)])).runs.isEmpty)
    #expect(
      bench.status(of: "/nights/a.store")?.reason
        == "waits until the window of '/nights' opens")
    #expect(
      bench.handle(.windowsKnown(["/nights": .init(isOpen: true)])).runs == ["/nights/a.store"])
  }

  @Test("four runs on small stores take the place of one; a large store waits until there is room")
  func smallRuns() {
    var bench = Bench(parallelRuns: 2, released: false)
    let small = (1...9).map { "/srv/\($0).store" }
    let large = "/srv/large.store"
    let stores = Array(small.prefix(7)) + [large] + Array(small.suffix(2))
    let begun = bench.releaseAndProbe(stores) { $0 == large ? 1 << 30 : 4096 }
    #expect(begun == Array(small.prefix(7)))
    for store in small.prefix(2) { #expect(bench.endRun(.migrated, store: store).runs.isEmpty) }
    #expect(bench.endRun(.migrated, store: small[2]).runs == [large])
    #expect(bench.endRun(.migrated, store: small[3]).runs == [small[7]])
    #expect(bench.endRun(.migrated, store: large).runs == [small[8]])
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
    #expect(bench.endRun(.migrated, after: file(2)).followUp == StoreQueue.FollowUp.none)
    for _ in 0..<5 { bench.handle(.touched(Bench.store)) }
    #expect(bench.wait(.milliseconds(500)) == [.readVersion(Bench.store)])
    #expect(bench.find(file(2)).probes == [[Bench.store]])
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
    #expect(bench.wait(.seconds(10)).probes == [[Bench.store]])
    #expect(bench.failRun() == .retry(after: .seconds(20)))
    #expect(bench.wait(.seconds(20)).probes == [[Bench.store]])
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
    #expect(bench.endRun(.failed, failure("x", code)).followUp == .waitsForChange(failures: 1))
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.wait(.seconds(3600)).isEmpty)
    #expect(bench.find(file(2)).probes == [[Bench.store]])
  }

  @Test("a full disk is retried for as long as it takes")
  func noSpace() {
    var bench = Bench()
    bench.find()
    for _ in 0..<5 {
      bench.answer(.behind)
      let next = bench.endRun(.refused, failure("3 MB are missing", .noSpace)).followUp
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
        bench.endRun(.busy, failure("held", .busyStore)).followUp == .retry(after: .seconds(delay))
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
    #expect(bench.wait(.seconds(9)).probes == [[Bench.store]])
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
    #expect(bench.find(file(2)).probes == [[Bench.store]])
    #expect(bench.answer(.behind, file(2)).runs.isEmpty)
    #expect(bench.state == .resting(.backingOff(until: failedAt + .seconds(10))))
    #expect(bench.wait(.seconds(9)).probes == [[Bench.store]])
    #expect(bench.answer(.behind, file(2)).runs == [Bench.store])
    #expect(
      bench.endRun(.failed, failure("x"), before: file(2), after: file(2)).followUp
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
    #expect(bench.handle(.verdictsInDoubt).probes == [[Bench.store]])
    #expect(bench.queue.quarantinedCount == 0)
    #expect(bench.answer(.behind).runs == [Bench.store])
  }

  @Test("plugins that change during a run that fails have the store probed again at once")
  func pluginsChangedWhileRunning() {
    var bench = Bench()
    bench.beginRun()
    bench.handle(.verdictsInDoubt)
    #expect(bench.endRun(.failed, failure("x")).followUp == .atOnce)
    #expect(bench.wait(.milliseconds(500)) == [.readVersion(Bench.store)])
    bench.find()
    #expect(bench.answer(.behind).runs == [Bench.store])
  }

  @Test("plugins that change while a run waits for its turn have the store probed again first")
  func pluginsChangedWhileQueued() {
    var bench = Bench(parallelRuns: 1)
    bench.beginRun()
    bench.find(store: "/srv/b.store")
    bench.answer(.behind, store: "/srv/b.store")
    #expect(bench.queue.state(of: "/srv/b.store") == .runQueued)
    #expect(bench.handle(.verdictsInDoubt).probes == [["/srv/b.store"]])
    #expect(bench.endRun(.migrated).runs.isEmpty)
    #expect(bench.answer(.behind, store: "/srv/b.store").runs == ["/srv/b.store"])
  }

  @Test("a store that is behind again right after it was migrated is not migrated in a circle")
  func migratedInCircle() {
    var bench = Bench()
    bench.beginRun()
    bench.endRun(.migrated, after: file(2))
    bench.wait(.seconds(1))
    bench.find(file(2))
    #expect(bench.answer(.behind, file(2)).runs.isEmpty)
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
    #expect(actions.followUp == .afterRestart)
    #expect(actions.runs.isEmpty && actions.probes.isEmpty)
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
    #expect(actions.reports == [.corrupt])
    #expect(actions.followUp == .waitsForChange(failures: 1))
    #expect(actions.quarantines.first?.verdict?.state == .corrupt)
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
    #expect(bench.answer(.behind).runs == [Bench.store])
    #expect(bench.endRun(.refused, damage).reports == [.corrupt])
    // So does another file.
    bench.wait(.seconds(60))
    #expect(bench.find(file(2)).probes == [[Bench.store]])
    #expect(bench.answer(.behind, file(2)).runs == [Bench.store])
    let error = failure("has no title", .rowsLost)
    #expect(bench.endRun(.refused, error, before: file(2), after: file(2)).reports == [])
    #expect(bench.status()?.state == .behind)
  }

  @Test(
    "an error that proves no damage of the store does not change its verdict, whatever its text",
    arguments: [InstarError.Code.corruptStore, .verificationFailed, .unsupported])
  func healthyInRun(_ code: InstarError.Code) {
    var bench = Bench()
    bench.beginRun()
    let error = failure("database disk image is malformed", code)
    #expect(bench.endRun(.refused, error).reports == [])
    let status = bench.status()
    #expect(status?.state == .behind && status?.activity == .quarantined)
  }

  @Test("damage of a file that a run found replaced is not the verdict on the new file")
  func damageOfReplaced() {
    let damage = failure("database disk image is malformed", .corruptStore).provingDamage()
    for after in [file(2), nil] {
      var bench = Bench()
      bench.beginRun()
      #expect(bench.endRun(.refused, damage, after: after).reports == [])
      #expect(bench.status()?.state == .behind)
    }
    var bench = Bench()
    bench.beginRun()
    bench.handle(.verdictsInDoubt)
    #expect(bench.endRun(.refused, damage).reports == [])
  }
}
