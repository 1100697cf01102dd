import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Rollout: halts and orders")
struct RolloutOrderTests {
  @Test("more failures than the budget halt the rollout, until an operator resumes it")
  func budget() {
    var fleet = Fleet(.waves(canary: 4, budget: "1"), stores: 10)
    fleet.fail(fleet.begun[0])
    #expect(fleet.status?.halt == nil)
    fleet.fail(fleet.begun[1])
    #expect(fleet.status?.isHaltedByFailures == true && fleet.changes.last == .halted)
    #expect(fleet.status?.halt?.why == "2 of 10 stores failed, and the budget is 1")
    fleet.end(fleet.begun[2])
    fleet.end(fleet.begun[3])
    #expect(fleet.begun.count == 4 && fleet.activity(fleet.begun[0]) == .quarantined)
    fleet.order(.resume)
    #expect(fleet.begun.count == 10)
    fleet.fail(fleet.begun[4])
    #expect(fleet.status?.halt == nil)
    fleet.fail(fleet.begun[5])
    #expect(fleet.status?.halt != nil)
  }

  @Test("the budget of a watch halts the rollout that the budget of all stores would permit")
  func watchBudget() {
    var fleet = Fleet(nil)
    fleet.configure { $0.watches[1].budget = .count(1) }
    let (many, late) = (Fleet.stores(8), Fleet.stores(4, in: "/late"))
    fleet.find(many + late)
    fleet.failAll(many.prefix(3))
    fleet.fail(late[0])
    #expect(!fleet.changes.contains(.halted))
    fleet.fail(late[1])
    #expect(fleet.changes.last == .halted)
    #expect(
      fleet.reported.last?.halt?.why == "2 of 4 stores of '/late' failed, and the budget is 1")
    fleet.order(.resume)
    fleet.fail(late[2])
    #expect(fleet.changes.last == .resumed)
  }

  @Test("a retry during a halt keeps the store's error, and its run starts with the resume")
  func retryInHalt() {
    var fleet = Fleet(.waves(canary: 1, budget: "0"), stores: 3)
    let failed = fleet.begun[0]
    fleet.fail(failed)
    let error = fleet.status(of: failed)?.error
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
    #expect(fleet.activity(failed) == .probing)
    #expect(reasonNotToRetry(isAdmin: true) == reason, "a second retry has the same answer")
    fleet.answerProbes()
    let waiting = fleet.status(of: failed)
    #expect(waiting?.activity == .pending && waiting?.error == error)
    #expect(waiting?.turn == .failed, "so it is still listed as failed")
    #expect(waiting?.reason == reason, "status and retry have one text")
    #expect(fleet.status(of: failed, isAdmin: false)?.reason == ofOwner)
    let begun = fleet.begins { $0.order(.resume) }
    #expect(begun.contains(failed))
    // An operator knows of its failure; one of another store halts the rollout.
    fleet.fail(failed)
    #expect(fleet.status?.halt == nil)
    fleet.failAll(begun.filter { $0 != failed })
    #expect(fleet.status?.isHaltedByFailures == true)
  }

  @Test("a rollout that is halted starts no queued run either")
  func haltReachesQueue() {
    var fleet = Fleet(nil)
    fleet.configure { $0.parallelRuns = 1 }
    fleet.find(Fleet.stores(10))
    let running = fleet.begun.count
    #expect(running < 10)
    fleet.halt(why: "a note was lost")
    fleet.endAll(fleet.begun)
    #expect(fleet.begun.count == running)
    #expect(fleet.status?.admitted == 0)
    let waiting = Fleet.stores(10).first { !fleet.begun.contains($0) } ?? ""
    #expect(
      fleet.status(of: waiting)?.reason
        == "the rollout of NotesPlan is halted: a note was lost; run: instarctl resume --plan NotesPlan"
    )
    fleet.order(.resume)
    fleet.endAllRuns()
    #expect(Set(fleet.begun).count == 10)
  }

  @Test("the time left has the times between waves, and is unknown while a rollout is halted")
  func timeLeft() {
    var fleet = Fleet(.waves(canary: 1, ["50%"], soak: .seconds(600)), stores: 4)
    #expect(fleet.queue.timeLeft(at: fleet.now) == nil)
    fleet.wait(.seconds(10))
    fleet.end(fleet.begun[0])
    // The canary's wave has begun to soak. Three runs of 10 s and the soak of the next wave follow.
    #expect(fleet.status?.secondsToNextWave == 600)
    #expect(fleet.queue.timeLeft(at: fleet.now) == .seconds(1230))
    fleet.halt(why: "a note was lost")
    #expect(fleet.queue.timeLeft(at: fleet.now) == nil)
    fleet.order(.resume)
    fleet.wait(.seconds(600))
    #expect(fleet.begun.count == 2)
    #expect(fleet.queue.timeLeft(at: fleet.now) == .seconds(630))
  }

  @Test("stores of a watch with the policy 'ask' wait for an approval")
  func approval() {
    var fleet = Fleet(nil, policy: .ask, stores: 3)
    #expect(fleet.begun.isEmpty && fleet.status?.unapproved == 3)
    // An owner may not approve the stores of others.
    for (isAdmin, argument) in [(true, "--plan NotesPlan"), (false, "STORE")] {
      let status = fleet.status(of: "/srv/1.store", isAdmin: isAdmin)
      #expect(status?.reason == "waits for an approval; run: instarctl approve \(argument)")
    }
    fleet.order(.approve(["/srv/1.store"]))
    #expect(fleet.begun == ["/srv/1.store"])
    fleet.order(.approve([]))
    #expect(Set(fleet.begun) == Set(Fleet.stores(3)))
    #expect(fleet.begins { $0.find(["/srv/new.store"]) } == ["/srv/new.store"])
  }

  @Test(
    "a store that was migrated before the policy was 'ask', and is behind again, waits for an approval"
  )
  func approvalOfMigratedStore() {
    var fleet = Fleet(.waves(canary: 1), stores: 2)
    let stores = Fleet.stores(2)
    fleet.endAll(stores)
    #expect(fleet.status?.migrated == 2)
    fleet.reload(policy: .ask)
    let restored = fleet.begins {
      $0.current.remove(stores[0])
      $0.versions[stores[0], default: 1] += 1
      $0.find([stores[0]])
    }
    #expect(restored.isEmpty && fleet.status?.unapproved == 1)
    let approved = fleet.begins { $0.order(.approve([stores[0]])) }
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
    fleet.order(.approve([stores[0]]))
    #expect(fleet.begun == [stores[1], stores[0]])
  }

  @Test("an approval that changes nothing is not reported")
  func approvalAgain() {
    var fleet = Fleet(nil, policy: .ask, stores: 3)
    func approve(_ stores: [String]) -> Int {
      fleet.order(.approve(stores))
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
    var fleet = Fleet(nil, policy: .ask, stores: 3)
    fleet.halt()
    fleet.order(.approve(["/srv/1.store", "/srv/2.store"]))
    func approved() -> [String] {
      fleet.queue.rolloutRecords(at: .now).flatMap(\.approvedStores)
    }
    #expect(approved() == ["/srv/1.store", "/srv/2.store"])
    fleet.send(.missing("/srv/1.store"))
    #expect(approved() == ["/srv/2.store"])
    fleet.find(["/srv/1.store"])
    fleet.order(.resume)
    #expect(fleet.begun == ["/srv/2.store"])
  }

  @Test("a failure that an operator forgave stays forgiven when the store vanishes and comes back")
  func forgivenStoreComesBack() {
    var fleet = Fleet(.waves(canary: 1, budget: "0"), stores: 3)
    let failed = fleet.begun[0]
    fleet.fail(failed)
    #expect(fleet.status?.isHaltedByFailures == true)
    fleet.order(.resume)
    fleet.send(.missing(failed))
    fleet.find([failed])
    #expect(fleet.queue.rolloutBudgets.first?.counted == 0)
  }

  @Test("a store with the policy 'rehearse' is migrated after a rehearsal that succeeds")
  func rehearsal() {
    var fleet = Fleet(nil, policy: .rehearse, stores: 2)
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
    var fleet = Fleet(.waves(canary: 2, soak: .seconds(600), budget: "5"), stores: 6)
    let (migrated, failed) = (fleet.begun[0], fleet.begun[1])
    fleet.end(migrated)
    fleet.fail(failed)
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1)
    for store in Fleet.stores(6) { fleet.send(.missing(store)) }
    #expect(fleet.status?.stores == 0)
    fleet.find(Fleet.stores(6))
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1 && fleet.status?.stores == 6)
    #expect(fleet.status(of: migrated)?.wave == 1)
    fleet.send(.folderMoved(from: "/srv", to: "/late"))
    fleet.wait(.seconds(1))
    #expect(fleet.status?.migrated == 1 && fleet.status?.failed == 1 && fleet.status?.stores == 6)
    fleet.wait(.seconds(600))
    #expect(Set(fleet.begun.dropFirst(2)).count == 4 && fleet.begun.count == 6)
  }

  @Test("a store that is held while it waits for its turn leaves the rollout at once")
  func heldWhileWaiting() {
    var fleet = Fleet(.waves(canary: 1), stores: 3)
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
    var fleet = Fleet(.waves(canary: 1, budget: "0"))
    fleet.send(.pluginsKnown([Fleet.plugin(1), Fleet.plugin(1, path: "/p/Mail.so")]))
    fleet.lastVersions = ["/p/Mail.so": Schema.Version(7, 0, 0)]
    for store in Fleet.stores(3, in: "/late") { fleet.plugins[store] = "/p/Mail.so" }
    fleet.configure { $0.watches[1].wave = 1 }
    fleet.find(Fleet.stores(3) + Fleet.stores(3, in: "/late"))
    let rollouts = fleet.statuses
    #expect(rollouts.map(\.version) == [Schema.Version(2, 0, 0), Schema.Version(7, 0, 0)])
    #expect(rollouts.map(\.stores) == [3, 3] && fleet.begun.count == 2)
    fleet.fail(fleet.begun.first { $0.hasPrefix("/srv") } ?? "")
    #expect(fleet.statuses.map { $0.halt != nil } == [true, false])
    fleet.halt()
    #expect(fleet.statuses.allSatisfy { $0.halt?.by == "anna (1000)" })
    fleet.order(.resume)
    #expect(fleet.statuses.allSatisfy { $0.halt == nil })
  }

  @Test("a plugin with a later version takes over the stores of an earlier one that is still there")
  func laterPlugin() {
    var fleet = Fleet(.waves(canary: 1), stores: 3)
    fleet.endAllRuns()
    fleet.pluginPath = "/p/Notes-2.so"
    fleet.lastVersions = [fleet.pluginPath: Schema.Version(3, 0, 0)]
    fleet.current = []
    fleet.install(Fleet.plugin(1), Fleet.plugin(1, path: fleet.pluginPath))
    #expect(fleet.statuses.map(\.version) == [Schema.Version(3, 0, 0)])
    #expect(fleet.status?.stores == 3 && fleet.begun.count == 4)
  }

  @Test("an attempt too many quarantines a busy store")
  func attempts() {
    var fleet = Fleet(nil)
    fleet.configure { $0.retry.attempts = 2 }
    fleet.find(["/srv/a.store"])
    fleet.fail("/srv/a.store", .busyStore)
    #expect(fleet.activity("/srv/a.store") == .retrying)
    fleet.wait(.seconds(30))
    fleet.fail("/srv/a.store", .busyStore)
    #expect(fleet.activity("/srv/a.store") == .quarantined)
    #expect(fleet.begins { $0.wait(.seconds(6000)) }.isEmpty)
  }
}
