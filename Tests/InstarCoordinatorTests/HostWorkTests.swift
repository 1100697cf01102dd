import InstarSchema
import InstarWire
import Testing

@testable import InstarCoordinator

@Suite("What a host does in a rollout")
struct HostWorkTests {
  private static let rollout = FleetRolloutTests.rollout(["100%"])

  private static func work(
    waiting: Int = 0, admitted: Int = 0, deferred: Int = 0, migrated: Int = 0, failed: Int = 0,
    unapproved: Int = 0, _ change: (inout Manager.Rollout) -> Void = { _ in }
  ) -> HostWork {
    var own = Manager.Rollout(
      plan: rollout.plan, version: rollout.version, wave: 1, waves: 1,
      stores: waiting + admitted + deferred + migrated + failed, waiting: waiting,
      admitted: admitted, deferred: deferred, migrated: migrated, failed: failed,
      unapproved: unapproved, secondsToNextWave: nil, halt: nil, failures: [])
    change(&own)
    let reply = Manager.PermitReply(
      isCounted: true, running: [:], pause: nil, rollouts: [own], failures: [])
    return HostWork(reply, rollout, HostResult(wave: 1, stores: 0, at: 0))
  }

  @Test("a host is done when each store was migrated or failed")
  func done() {
    #expect(Self.work(migrated: 3, failed: 1).isDone)
    #expect(!Self.work(admitted: 1, migrated: 3).isDone)
    #expect(!Self.work(waiting: 1, migrated: 3).isDone)
    #expect(!Self.work(deferred: 1, migrated: 3).isDone)
    #expect(Self.work(deferred: 1, migrated: 3).isDeferred)
  }

  @Test("a closed window, a halt and a missing approval of the host keep it from its work")
  func obstacles() {
    #expect(Self.work(admitted: 1).obstacle == nil)
    let closed = Self.work(admitted: 1) { $0.closedWindow = "/srv" }
    #expect(closed.obstacle == "the window of '/srv' is closed on this host")
    #expect(!closed.isDone)
    let halted = Self.work(waiting: 1) {
      $0.halt = Manager.Pause(by: "anna", since: 0, why: "lunch")
    }
    #expect(halted.obstacle == "halted on this host by anna: lunch")
    #expect(Self.work(waiting: 2, unapproved: 2).obstacle?.contains("instarctl approve") == true)
    #expect(Self.work(waiting: 2, unapproved: 1).obstacle == nil)
  }
}
