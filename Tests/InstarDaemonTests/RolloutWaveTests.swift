import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Rollout: waves")
struct RolloutWaveTests {
  @Test("the canary is migrated first, then shares of all stores, then the rest")
  func canaryFirst() {
    var fleet = Fleet(.waves(canary: 1, ["10%", "50%"]), stores: 20)
    #expect(fleet.begun.count == 1)
    #expect(fleet.begins { $0.end($0.begun[0]) }.count == 1)
    #expect(fleet.begins { $0.end($0.begun[1]) }.count == 8)
    let third = fleet.begins { $0.endAll($0.begun[2..<10]) }
    #expect(third.count == 10)
    fleet.endAll(third)
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
    var fleet = Fleet(.waves(["50%"]))
    fleet.find(Fleet.stores(10), thenScanned: false)
    #expect(fleet.begun.isEmpty && fleet.activity("/srv/0.store") == .pending)
    #expect(fleet.status(of: "/srv/0.store")?.reason == "waits until all stores are probed")
    fleet.send(.scanned)
    #expect(fleet.begun.count == 5)
  }

  @Test(
    "the next wave waits until each store of the last one is found current, and then for the soak")
  func soak() {
    var fleet = Fleet(.waves(canary: 1, soak: .seconds(600)), stores: 3)
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
    var fleet = Fleet(.waves(canary: 1, ["50%"], soak: .seconds(600)), stores: 10)
    let stores = Fleet.stores(10)
    let canary = fleet.begun[0]
    fleet.end(canary)
    for store in stores { fleet.send(.forgotten(store)) }
    fleet.wait(.seconds(700))
    #expect(!fleet.changes.contains(.finished))
    fleet.find(stores)
    #expect(fleet.begun.count > 1 && fleet.begun.count < 10)

    // The others leave after the canary: later ones still have their turn in waves.
    var half = Fleet(.waves(canary: 1, ["50%"]))
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
    var fleet = Fleet(.waves(canary: 1, ["10%", "50%"], soak: .seconds(600)), stores: 20)
    fleet.end(fleet.begun[0])
    fleet.wait(.seconds(600))
    fleet.end(fleet.begun[1])
    #expect(fleet.begun.count == 2 && fleet.changes.last == .waveDone)
    fleet.configure { $0.rollout = .waves(canary: 1, ["50%"], soak: .seconds(600)) }
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 10)
  }

  @Test("stores of a watch with a later wave wait for that wave")
  func waveOfWatch() {
    var fleet = Fleet(.waves(canary: 2))
    fleet.find(Fleet.stores(4, in: "/late") + Fleet.stores(1))
    #expect(fleet.begun == ["/srv/0.store"])
    fleet.end("/srv/0.store")
    #expect(fleet.begun.count == 5)
  }

  @Test("another store takes the place of a canary that others use")
  func busyIsDeferred() {
    var fleet = Fleet(.waves(canary: 1), stores: 3)
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
    var fleet = Fleet(.waves(canary: 1), stores: 3)
    for _ in 0..<3 { if let last = fleet.begun.last { fleet.fail(last, .busyStore) } }
    #expect(fleet.status?.deferred == 3 && fleet.status?.wave == 1)
    let retried = fleet.begins { $0.wait(.seconds(30)) }
    #expect(retried.count == 1)
    fleet.end(retried[0])
    #expect(fleet.status?.migrated == 1 && fleet.status?.wave == 2)
  }

  @Test("stores that are in use after the canary wait for their own wave")
  func busyAfterCanary() {
    var fleet = Fleet(.waves(canary: 1, ["50%"], soak: .seconds(600)), stores: 4)
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

  @Test("the status says that a rollout is finished in whichever wave, until a store comes")
  func finished() {
    var fleet = Fleet(.waves(canary: 1, ["50%"]))
    let stores = Fleet.stores(3)
    fleet.find(Array(stores.prefix(1)))
    #expect(fleet.status?.isFinished == false)
    fleet.end(stores[0])
    #expect(fleet.changes.last == .finished)
    #expect(fleet.status?.wave == 1 && fleet.status?.isFinished == true)
    fleet.find(Array(stores.dropFirst()))
    #expect(fleet.status?.isFinished == false)
  }

  @Test("a wave without stores of its own ends, so that the next one opens")
  func emptyWave() {
    var fleet = Fleet(.waves(canary: 1, ["50%"]))
    fleet.find(Fleet.stores(4, in: "/late"))
    #expect(fleet.status?.wave == 2 && fleet.begun.count == 2)
  }

  @Test("stores that are busy at each probe do not keep the others from being counted")
  func busyProbes() {
    var fleet = Fleet(.waves(canary: 1))
    fleet.busy = Set(Fleet.stores(5, in: "/late"))
    fleet.find(Fleet.stores(3) + Fleet.stores(5, in: "/late"), thenScanned: false)
    for store in fleet.busy { fleet.send(.retryWanted([store], byOperator: true)) }
    fleet.send(.scanned)
    #expect(fleet.begun.count == 1)
  }

  @Test("the rollout of a plugin under another name starts again, with its canary")
  func renamedPlugin() {
    var fleet = Fleet(.waves(canary: 1), stores: 5)
    fleet.fail(fleet.begun[0])
    #expect(fleet.begun.count == 5 && fleet.status?.wave == 2)
    fleet.failAll(fleet.begun[1...])
    fleet.pluginPath = "/p/Notes-2.so"
    let begun = fleet.begins { $0.install(Fleet.plugin(2, path: $0.pluginPath)) }
    #expect(begun.count == 1 && fleet.status?.wave == 1 && fleet.status?.failed == 0)
  }

  @Test("a reload in a soak keeps the soak, also where fewer waves are left")
  func reloadInSoak() {
    var fleet = Fleet(.waves(canary: 1, ["20%", "50%"], soak: .seconds(600)), stores: 20)
    fleet.end(fleet.begun[0])
    fleet.wait(.seconds(600))
    fleet.endAll(fleet.begun.dropFirst())
    #expect(fleet.status?.wave == 2 && fleet.begun.count == 4)
    fleet.configure { $0.rollout = .waves(canary: 1, soak: .seconds(3600)) }
    #expect(fleet.begun.count == 4)
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 20)
  }

  @Test("the rollout of a changed plugin starts again, with its canary")
  func changedPlugin() {
    var fleet = Fleet(.waves(canary: 1), stores: 5)
    fleet.fail(fleet.begun[0])
    #expect(fleet.begun.count == 5)
    fleet.endAll(fleet.begun[1...])
    let begun = fleet.begins { $0.install(Fleet.plugin(2)) }
    #expect(begun == [fleet.begun[0]] && fleet.status?.wave == 1)
  }

  @Test(
    "a reload that asks for approvals holds back the stores that wait, and one that no longer asks lets them go on"
  )
  func policyChanges() {
    var fleet = Fleet(.waves(canary: 1), stores: 3)
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
    var fleet = Fleet(.waves(canary: 1), stores: 3)
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
    var fleet = Fleet(.waves(canary: 1, budget: "0"), stores: 3)
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
    let begun = fleet.begins { $0.retry(waiting[0]) }
    #expect(begun == [waiting[0]] && fleet.status?.stores == 3)
  }

  @Test("a store that its app locks after it was migrated counts as migrated")
  func busyAfterRun() {
    var fleet = Fleet(.waves(canary: 1, budget: "0"))
    fleet.configure { $0.retry.attempts = 2 }
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
    var fleet = Fleet(.waves(canary: 1, budget: "0"), stores: 3)
    fleet.fail(fleet.begun[0], changing: true)
    #expect(fleet.status?.isHaltedByFailures == true)
  }

  @Test("the report of a wave names that wave")
  func reports() {
    var fleet = Fleet(.waves(canary: 1), stores: 3)
    fleet.end(fleet.begun[0])
    #expect(fleet.changes == [.waveOpened, .waveDone, .waveOpened])
    #expect(fleet.reported.map(\.wave) == [1, 1, 2])
  }

  @Test("a watch's wave beyond the last one is the last one")
  func waveBeyondLast() {
    var fleet = Fleet(.waves())
    fleet.find(Fleet.stores(2, in: "/late"))
    #expect(fleet.begun.count == 2)
  }

  @Test("a store that appears after the last wave is migrated at once")
  func newcomer() {
    var fleet = Fleet(.waves(canary: 1), stores: 1)
    fleet.end(fleet.begun[0])
    #expect(fleet.changes.last == .finished)
    #expect(fleet.begins { $0.find(["/srv/new.store"]) } == ["/srv/new.store"])
  }
}
