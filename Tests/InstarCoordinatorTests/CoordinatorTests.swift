import Foundation
import InstarConfiguration
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarCoordinator

@Suite("One host's part in a rollout")
struct CoordinatorTests {
  /// A host whose instard answers what a test says.
  private final class Host: Sendable {
    let reply = Mutex(
      Manager.PermitReply(isCounted: false, running: [:], pause: nil, rollouts: [], failures: []))
    let events = Mutex<[CoordinatorEvent]>([])

    func coordinator(_ etcd: EtcdProcess, _ client: EtcdClient) -> Coordinator {
      Coordinator(
        etcd.settings, host: "a",
        daemon: DaemonLink { _ in self.reply.withLock { $0 } }, etcd: client,
        log: CoordinatorLog { entry in self.events.withLock { $0.append(entry.event) } })
    }
  }

  @Test("a host whose registration was written, and the answer lost, is registered")
  func lostAnswer() async throws {
    let etcd = try EtcdProcess()
    let client = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(client)
    let host = Host()
    let coordinator = host.coordinator(etcd, client)
    // It has a lease, and registers when its stores are counted. On a busy machine etcd may answer too late.
    let deadline = soon()
    repeat { await coordinator.step() } while try etcd.leases().isEmpty && .now < deadline
    let lease = try #require(try etcd.leases().first)
    try await client.transaction(if: [], [.put(FleetKeys.host("a"), Data(), lease: lease)])
    host.reply.withLock { $0.isCounted = true }
    await coordinator.step()
    #expect(host.events.withLock(\.self).contains(.hostRegistered))
    #expect(try await Fleet(client).hosts().keys.sorted() == ["a"])
    await client.close()
  }

  @Test("a host does not replace the registration of another one with its name")
  func takenName() async throws {
    let etcd = try EtcdProcess()
    let client = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(client)
    let other = try await client.grantLease(seconds: 60)
    try await client.transaction(
      if: [], [.put(FleetKeys.host("a"), Data("other".utf8), lease: other)])
    let host = Host()
    host.reply.withLock { $0.isCounted = true }
    let coordinator = host.coordinator(etcd, client)
    await coordinator.step()
    await coordinator.step()
    #expect(!host.events.withLock(\.self).contains(.hostRegistered))
    #expect(try await client.entry(FleetKeys.host("a"))?.lease == other)
    await client.close()
  }

  @Test("a host without stores of the plan reads once that it has no part in the rollout")
  func noPart() async throws {
    let etcd = try EtcdProcess()
    let client = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(client)
    let fleet = Fleet(client)
    let version = Schema.Version(2, 0, 0)
    let registration = HostRegistration(
      release: "0", plans: [.init(plan: "P", version: version, stores: 1, behind: 1)])
    try await client.transaction(
      if: [], [.put(FleetKeys.host("b"), try Fleet.encoded(registration))])
    let rollout = try await fleet.begin(Fleet.Order(plan: "P"), by: "anna")
    let host = Host()
    host.reply.withLock { $0.isCounted = true }
    let coordinator = host.coordinator(etcd, client)
    await coordinator.step()
    // Were it read again, the host would report that no plugin of it has the plan.
    let result = HostResult(wave: 1, stores: 1, at: 0)
    try await client.transaction(
      if: [], [.put(FleetKeys.result(rollout.id, "a"), try Fleet.encoded(result))])
    await coordinator.step()
    #expect(try await fleet.result(of: "a", in: rollout.id) == .result(result))
    // Stores that come later give it one.
    host.reply.withLock {
      $0.rollouts = [
        Manager.Rollout(
          plan: "P", version: version, wave: 1, waves: 1, stores: 1, waiting: 1, admitted: 0,
          deferred: 0, migrated: 0, failed: 0, unapproved: 0, secondsToNextWave: nil, halt: nil,
          failures: [])
      ]
    }
    await coordinator.step()
    #expect(try await client.count(below: FleetKeys.slots(ofPlan: "P")) == 1)
    await client.close()
  }

  @Test("a host that returns its slot reports its last counts, and is shown as halted")
  func lastCounts() async throws {
    let etcd = try EtcdProcess()
    let client = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(client)
    let fleet = Fleet(client)
    let version = Schema.Version(2, 0, 0)
    let registration = HostRegistration(
      release: "0", plans: [.init(plan: "P", version: version, stores: 4, behind: 4)])
    try await client.transaction(
      if: [], [.put(FleetKeys.host("b"), try Fleet.encoded(registration))])
    var order = Fleet.Order(plan: "P")
    order.budget = RolloutSettings.Share("0")
    _ = try await fleet.begin(order, by: "anna")
    let host = Host()
    func answer(running: Int, migrated: Int, failed: Int) {
      host.reply.withLock {
        $0.isCounted = true
        $0.running = running > 0 ? ["P": running] : [:]
        $0.rollouts = [
          Manager.Rollout(
            plan: "P", version: version, wave: 1, waves: 1, stores: 4,
            waiting: 4 - running - migrated - failed, admitted: running, deferred: 0,
            migrated: migrated, failed: failed, unapproved: 0, secondsToNextWave: nil, halt: nil,
            failures: [])
        ]
      }
    }
    let coordinator = host.coordinator(etcd, client)
    answer(running: 0, migrated: 0, failed: 0)
    await coordinator.step()
    let states = { (rollout: RolloutReport) in
      Dictionary(uniqueKeysWithValues: rollout.hosts.map { ($0.host, $0.state) })
    }
    let running = try await fleet.report(fleet.rollout(of: "P"))
    #expect(running.slotsTaken == 1 && states(running) == ["a": "migrating", "b": "waiting"])
    // The failure halts the rollout. The host keeps its slot while another store runs.
    answer(running: 1, migrated: 1, failed: 1)
    await coordinator.step()
    let halted = try await fleet.report(fleet.rollout(of: "P"))
    #expect(halted.state == "halted" && halted.slotsTaken == 1)
    #expect(states(halted) == ["a": "migrating", "b": "waiting"])
    answer(running: 0, migrated: 2, failed: 1)
    await coordinator.step()
    let ended = try await fleet.report(fleet.rollout(of: "P"))
    #expect(ended.slotsTaken == 0 && states(ended) == ["a": "halted", "b": "waiting"])
    #expect(ended.hosts.first { $0.host == "a" }?.migrated == 2)
    await client.close()
  }
}
