import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("StoreQueue: orders of an operator")
struct StoreQueueOrderTests {
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
    let second = bench.queue.reasonNotToRetry(Bench.store, isAdmin: true, at: bench.now) { _ in "" }
    #expect(second == "instard is about to probe the store, and retries it afterwards")
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
