import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Rollout: over a restart")
struct RolloutRestartTests {
  /// The fleet of the next daemon, which has read what the daemon of `fleet` left on disk, and has scanned nothing.
  ///
  /// - Parameters:
  ///   - migrated: The stores that the ledger calls migrated.
  ///   - startedAt: When the first run of each migrated store began.
  ///   - failed: The stores whose last run failed with `code`.
  private func restarted(
    _ fleet: Fleet, _ settings: RolloutSettings, migrated: Set<String> = [],
    startedAt: [String: Double] = [:], failed: Set<String> = [],
    code: InstarError.Code = .stageFailed, plugin: Int64 = 1
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
    (next.versions, next.endingKeepers) = (fleet.versions, fleet.endingKeepers)
    next.install(Fleet.plugin(plugin))
    next.send(.released)
    return next
  }

  @Test("the wave, the soak and who had a turn outlast the daemon")
  func place() {
    let settings = RolloutSettings.waves(canary: 2, ["50%"], soak: .seconds(600))
    var fleet = Fleet(settings, stores: 10)
    fleet.endAll(fleet.begun)
    let done = fleet.begun
    fleet.wait(.seconds(100))
    var next = restarted(fleet, settings, migrated: Set(done))
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
    let settings = RolloutSettings.waves(budget: "0")
    var fleet = Fleet(settings, stores: 5)
    let failed = fleet.begun[0]
    // An error that may be an accident is retried twice.
    for _ in 1...3 {
      fleet.fail(failed, .timeLimit)
      fleet.wait(.seconds(60))
    }
    #expect(fleet.quarantined.keys.sorted() == [failed])
    #expect(fleet.status?.halt != nil)
    var next = restarted(fleet, settings, failed: [failed], code: .timeLimit)
    next.find(Fleet.stores(5))
    #expect(next.status?.failed == 1 && next.activity(failed) == .quarantined)
    next.order(.resume)
    next.wait(.seconds(600))
    #expect(!next.begun.isEmpty && !next.begun.contains(failed))
  }

  @Test("a rehearsal that failed, which the ledger does not have, counts against the budget")
  func failedRehearsal() {
    let settings = RolloutSettings.waves(budget: "1")
    var fleet = Fleet(settings, policy: .rehearse, stores: 6)
    let stores = Fleet.stores(6)
    fleet.fail(stores[0])
    for store in stores.dropFirst() {
      fleet.end(store, .rehearsed)
      fleet.end(store)
    }
    #expect(fleet.status?.migrated == 5 && fleet.status?.failed == 1)
    var next = restarted(fleet, settings, migrated: Set(stores.dropFirst()))
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
    let settings = RolloutSettings.waves(budget: "0")
    var fleet = Fleet(settings)
    fleet.configure { $0.retry.attempts = 2 }
    let stores = Fleet.stores(2)
    fleet.find(stores)
    fleet.fail(stores[0], .busyStore)
    fleet.busy = [stores[0]]
    fleet.wait(.seconds(30))
    #expect(fleet.activity(stores[0]) == .quarantined)
    #expect(fleet.status?.isHaltedByFailures == true)
    #expect(fleet.failedProbesAtChange == [stores[0]], "the cause is reported before the halt")
    #expect(fleet.status(of: stores[0])?.plan == Fleet.plan)
    var next = restarted(fleet, settings)
    next.find(stores)
    #expect(fleet.status?.failed == 1 && next.status?.failed == 1)
    #expect(next.status(of: stores[0])?.plan == Fleet.plan)
  }

  @Test("a store that cannot be read after it was migrated counts as migrated")
  func unreadableAfterRun() {
    let settings = RolloutSettings.waves(budget: "0")
    var fleet = Fleet(settings, stores: 3)
    let stores = Fleet.stores(3)
    fleet.endAll(stores)
    fleet.makeUnreadable(stores[0])
    #expect(fleet.activity(stores[0]) == .quarantined && fleet.changes.last == .finished)
    var next = restarted(fleet, settings, migrated: Set(stores))
    next.find(stores)
    #expect(next.activity(stores[0]) == .quarantined)
    #expect(next.status(of: stores[0])?.turn == .migrated)
    #expect(next.status?.migrated == 3 && next.status?.halt == nil)
    next.send(.missing(stores[0]))
    #expect(next.status?.stores == 2)
  }

  @Test("a migrated store that ends its keepers counts as failed, also after a restart meanwhile")
  func endsKeepersAfterRun() {
    let settings = RolloutSettings.waves(canary: 1, budget: "0")
    var fleet = Fleet(settings, stores: 4)
    let stores = Fleet.stores(4)
    let canary = fleet.begun[0]
    fleet.endingKeepers = [canary]
    fleet.end(canary)
    func restarted(_ old: Fleet) -> Fleet {
      var next = self.restarted(old, settings, migrated: [canary])
      next.find(stores)
      return next
    }
    for first in [fleet, restarted(fleet)] {
      var fleet = first
      #expect(fleet.status(of: canary)?.turn == .deferred)
      #expect(fleet.status?.wave == 1 && fleet.status?.halt == nil)
      for _ in 1...2 { fleet.wait(.seconds(60)) }
      #expect(fleet.activity(canary) == .quarantined)
      #expect(fleet.status?.isHaltedByFailures == true && fleet.status?.failed == 1)
      #expect(restarted(fleet).status?.failed == 1)
    }
  }

  @Test("a migrated store that was found sound after a restart never counts as failed")
  func endsKeepersLater() {
    let settings = RolloutSettings.waves(canary: 1, budget: "0")
    var fleet = Fleet(settings, stores: 4)
    let stores = Fleet.stores(4)
    let canary = fleet.begun[0]
    fleet.end(canary)
    var next = restarted(fleet, settings, migrated: [canary])
    next.find(stores)
    next.endingKeepers = [canary]
    next.write(canary)
    for _ in 1...2 { next.wait(.seconds(60)) }
    #expect(next.activity(canary) == .quarantined)
    #expect(next.status(of: canary)?.turn == .migrated)
    next.endAll(next.begun)
    #expect(next.changes.last == .finished && next.status?.migrated == 4)
  }

  @Test("a store that left the rollout before it could not be read is not in it")
  func unreadableAfterLeaving() {
    let settings = RolloutSettings.waves(canary: 1, budget: "0")
    var fleet = Fleet(settings, stores: 3)
    let stores = Fleet.stores(3)
    let other = stores.first { !fleet.begun.contains($0) } ?? ""
    // Its app has migrated it.
    fleet.current.insert(other)
    fleet.write(other)
    #expect(fleet.status?.stores == 2)
    fleet.makeUnreadable(other)
    #expect(fleet.quarantined[other] != nil && fleet.quarantined[other]?.rollout == nil)
    #expect(fleet.status(of: other)?.plan == nil)
    var next = restarted(fleet, settings)
    next.find(stores)
    #expect(next.activity(other) == .quarantined)
    #expect(next.status?.stores == 2 && next.status?.halt == nil)
  }

  @Test("a store that is damaged is in no rollout of a later plugin, also not after a restart")
  func damaged() {
    let settings = RolloutSettings.waves(canary: 1, budget: "0")
    var fleet = Fleet(settings, stores: 3)
    let stores = Fleet.stores(3)
    let damaged = fleet.begun[0]
    let others = stores.filter { $0 != damaged }
    let error = InstarError(.corruptStore, "cannot migrate", store: damaged, cause: "a page")
    fleet.end(damaged, .refused, error.provingDamage())
    #expect(fleet.status?.isHaltedByFailures == true)
    // A retry would only probe the store, which does not find the damage.
    #expect(!fleet.queue.canRetry(damaged, at: fleet.now))
    fleet.retry(damaged)
    #expect(fleet.status(of: damaged)?.state == .corrupt)

    var now = fleet
    now.install(Fleet.plugin(2))
    #expect(now.activity(damaged) == .quarantined && now.status?.stores == 2)
    now.endAll(now.begun.dropFirst())
    #expect(now.status?.halt == nil && now.status?.failed == 0)
    // The plugin changes while no daemon runs, or before the daemon starts again.
    for old in [fleet, now] {
      var next = restarted(old, settings, plugin: 2)
      next.find(stores)
      #expect(next.activity(damaged) == .quarantined)
      #expect(next.status?.stores == 2 && next.status?.failed == 0)
      #expect(others.contains(next.begun[0]))
    }
    // With the same plugin, the failure counts.
    var same = restarted(fleet, settings, failed: [damaged], code: .corruptStore)
    same.find(stores)
    #expect(same.status?.failed == 1 && same.status?.stores == 3)
  }

  @Test("a store whose run was cut off counts as migrated when its recovery has finished the run")
  func interrupted() {
    let settings = RolloutSettings.waves(canary: 2)
    var fleet = Fleet(settings, stores: 5)
    let cutOff = fleet.begun[0]
    fleet.end(fleet.begun[1])
    var next = restarted(fleet, settings, migrated: [fleet.begun[1]])
    next.send(.interrupted(cutOff, owner: 0))
    next.finishRecovery(of: cutOff)
    next.find(Fleet.stores(5))
    #expect(next.status?.migrated == 2 && next.status?.stores == 5)
    #expect(Set(next.begun).isDisjoint(with: fleet.begun))
  }

  @Test(
    "after a soak that ended while no daemon ran, the next wave opens when all stores are counted")
  func soakEndsMeanwhile() {
    let settings = RolloutSettings.waves(canary: 2, ["50%"], soak: .seconds(600))
    var fleet = Fleet(settings, stores: 10)
    let done = fleet.begun
    fleet.endAll(done)
    var next = restarted(fleet, settings, migrated: Set(done))
    next.now += .seconds(6000)
    next.find(Fleet.stores(10), thenScanned: false)
    #expect(next.begun.isEmpty)
    next.send(.scanned)
    #expect(next.begun.count == 3 && next.status?.wave == 2)
  }

  @Test("stores that were removed while no daemon ran are not counted")
  func removed() {
    let settings = RolloutSettings.waves(canary: 2)
    var fleet = Fleet(settings, stores: 10)
    let done = fleet.begun
    fleet.endAll(done)
    var next = restarted(fleet, settings, migrated: Set(done))
    next.find(Fleet.stores(10).filter { $0 != done[0] })
    #expect(next.status?.stores == 9 && next.status?.migrated == 1)
  }

  @Test("a halted rollout stays halted, and the failures that an operator knew of count no longer")
  func halted() {
    let settings = RolloutSettings.waves(canary: 3, budget: "1")
    var fleet = Fleet(settings, stores: 10)
    let failed = Set(fleet.begun.prefix(2))
    fleet.failAll(failed)
    var next = restarted(fleet, settings, failed: failed)
    next.find(Fleet.stores(10))
    #expect(next.begun.isEmpty && next.status?.isHaltedByFailures == true)
    next.order(.resume)
    next.failAll(failed)
    #expect(next.status?.halt == nil)
  }

  @Test("each store keeps the wave in which it had its turn")
  func waveOfStores() {
    let settings = RolloutSettings.waves(canary: 1, ["50%"])
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
    fleet.endAll(second)
    record(at: 300)
    var times = [canary: 101.0]
    for store in second { times[store] = 201 }
    var next = restarted(fleet, settings, migrated: Set(times.keys), startedAt: times)
    next.find(Fleet.stores(10))
    func wave(_ store: String) -> Int? { next.status(of: store)?.wave }
    #expect(wave(canary) == 1)
    #expect(second.map(wave) == [2, 2, 2, 2])
    #expect(next.begun.compactMap(wave) == [3, 3, 3, 3, 3])
  }

  @Test("the rollout of a plugin that changed while no daemon ran starts again")
  func changedPlugin() {
    let settings = RolloutSettings.waves(canary: 1)
    var fleet = Fleet(settings, stores: 5)
    fleet.end(fleet.begun[0])
    #expect(fleet.begun.count == 5)
    var next = restarted(fleet, settings, migrated: [fleet.begun[0]])
    next.send(.pluginsKnown([Fleet.plugin(2)]))
    next.find(Fleet.stores(5).filter { $0 != fleet.begun[0] })
    #expect(next.begun.count == 1)
  }
}
