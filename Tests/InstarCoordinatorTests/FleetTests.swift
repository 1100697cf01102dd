import Foundation
import InstarConfiguration
import InstarSchema
import InstarWire
import Testing

@testable import InstarCoordinator

/// Hosts in a real etcd, whose results a test writes.
private struct Hosts {
  static let version = Schema.Version(2, 0, 0)
  let etcd: EtcdProcess
  let client: EtcdClient
  let fleet: Fleet

  init() async throws {
    etcd = try EtcdProcess()
    client = try await EtcdClientTests.client(etcd)
    fleet = Fleet(client)
  }

  func register(_ host: String, stores: Int, version: Schema.Version = version) async throws {
    let registration = HostRegistration(
      release: "0", plans: [.init(plan: "P", version: version, stores: stores, behind: stores)])
    try await client.transaction(
      if: [], [.put(FleetKeys.host(host), try Fleet.encoded(registration))])
  }

  func report(
    _ rollout: FleetRollout, _ host: String, _ state: HostResult.State, failed: Int = 0
  ) async throws {
    var result = HostResult(wave: rollout.wave(of: host), stores: 10, at: 0)
    result.state = state
    result.failed = failed
    try await client.transaction(
      if: [], [.put(FleetKeys.result(rollout.id, host), try Fleet.encoded(result))])
  }

  func order(_ steps: String...) -> Fleet.Order {
    Fleet.Order(plan: "P", steps: steps.compactMap(RolloutSettings.Share.init), slots: 2)
  }

  /// What the leader does, with everything read now.
  func advance(_ rollout: Fleet.Revised) async throws -> Fleet.Revised? {
    try await fleet.advance(
      rollout, fleet.results(of: rollout.rollout.id), living: fleet.livingHosts())
  }

  func refusal(_ body: () async throws -> Void) async -> InstarError? {
    await #expect(throws: InstarError.self) { try await body() }
  }
}

@Suite("The rollouts of a fleet")
struct FleetTests {
  @Test("a rollout begins with the hosts that have stores, and the budget counts all their stores")
  func begins() async throws {
    let hosts = try await Hosts()
    for number in 0..<8 { try await hosts.register("h\(number)", stores: 25) }
    try await hosts.register("idle", stores: 0)
    var order = hosts.order("1", "50%", "100%")
    order.budget = .percent(1)
    let rollout = try await hosts.fleet.begin(order, by: "anna")
    #expect(rollout.hosts == 8)
    #expect(rollout.allowedFailures == 2)
    #expect(rollout.version == Hosts.version)
    let results = try await hosts.fleet.results(of: rollout.id).results
    #expect(Set(results.keys) == Set((0..<8).map { "h\($0)" }))
    #expect(results.values.allSatisfy { $0.state == .waiting && $0.stores == 25 })
    let report = try await hosts.fleet.report(hosts.fleet.rollout(of: "P"))
    #expect(report.stores == 200)
    #expect(report.hosts.count { $0.wave == 1 } == 1)
    #expect(report.slotsTaken == 0)
    await hosts.client.close()
  }

  @Test("a rollout over more hosts than etcd changes at once begins with a result of each")
  func beginsWithMany() async throws {
    let hosts = try await Hosts()
    let count = EtcdClient.operationLimit * 2 + 1
    for number in 0..<count { try await hosts.register("h\(number)", stores: 1) }
    let rollout = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    #expect(rollout.hosts == count)
    #expect(try await hosts.fleet.results(of: rollout.id).results.count == count)
    await hosts.client.close()
  }

  @Test("what hosts have reported is read once, and then what is new")
  func knownResults() async throws {
    let hosts = try await Hosts()
    for host in ["a", "b"] { try await hosts.register(host, stores: 10) }
    let rollout = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    var known = KnownResults()
    try await known.update(of: rollout.id, from: hosts.fleet)
    #expect(known.results.results.values.map(\.failed) == [0, 0])
    try await hosts.report(rollout, "b", .migrating, failed: 3)
    try await known.update(of: rollout.id, from: hosts.fleet)
    #expect(known.results.results["a"]?.state == .waiting)
    #expect(known.results.results["b"]?.failed == 3)
    await hosts.client.close()
  }

  @Test("one host leads while its lease lasts, and another one once it has ended")
  func leads() async throws {
    let hosts = try await Hosts()
    for host in ["a", "b"] { try await hosts.register(host, stores: 1) }
    let rollout = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    var leases: [Int64] = []
    for _ in 1...2 { leases.append(try await hosts.client.grantLease(seconds: 60)) }
    var leaders = ["a", "b"].map { FleetLeader(hosts.fleet, host: $0) }
    let now = ContinuousClock.now
    for number in leaders.indices {
      let read = try await hosts.fleet.rollout(of: "P")
      #expect(try await leaders[number].lead([read], lease: leases[number], now).isEmpty)
    }
    #expect(try await hosts.client.entry(FleetKeys.leader)?.value == Fleet.name("a"))
    for host in ["a", "b"] { try await hosts.report(rollout, host, .verified) }
    let read = try await hosts.fleet.rollout(of: "P")
    #expect(try await leaders[1].lead([read], lease: leases[1], now).isEmpty)
    try await hosts.client.revokeLease(leases[0])
    let later = now + .seconds(60)
    let ended = try await leaders[1].lead([read], lease: leases[1], later)
    #expect(ended.map(\.rollout.state) == [.done])
    #expect(try await hosts.client.entry(FleetKeys.leader)?.value == Fleet.name("b"))
    await hosts.client.close()
  }

  @Test("a rollout needs stores and one version, and no other rollout of the plan that goes on")
  func refused() async throws {
    let hosts = try await Hosts()
    let none = await hosts.refusal { _ = try await hosts.fleet.begin(hosts.order("100%"), by: "a") }
    #expect(none?.code == .rolloutRefused)
    #expect(none?.cause.contains("none of 0 registered hosts") == true)
    try await hosts.register("a", stores: 1)
    try await hosts.register("b", stores: 1, version: Schema.Version(3, 0, 0))
    let two = await hosts.refusal { _ = try await hosts.fleet.begin(hosts.order("100%"), by: "a") }
    #expect(two?.cause == "the hosts have 2.0.0 on 1 host, 3.0.0 on 1 host")
    var order = hosts.order("100%")
    order.version = Schema.Version(3, 0, 0)
    let first = try await hosts.fleet.begin(order, by: "a")
    #expect(first.hosts == 1)
    let second = await hosts.refusal { _ = try await hosts.fleet.begin(order, by: "a") }
    #expect(second?.cause == "the plan's rollout to 3.0.0 is running")
    _ = try await hosts.fleet.stop("P", as: .halted, by: "anna", why: nil)
    let third = try await hosts.fleet.begin(order, by: "a")
    #expect(third.id != first.id)
    #expect(try await hosts.fleet.results(of: first.id).results.isEmpty)
    await hosts.client.close()
  }

  @Test("a rollout with more waves than a document may have is refused, and nothing is written")
  func tooManyWaves() async throws {
    let hosts = try await Hosts()
    try await hosts.register("a", stores: 1)
    var order = hosts.order("100%")
    order.steps = (1...FleetRollout.waveLimit + 1).map { .count($0) }
    let error = await hosts.refusal { _ = try await hosts.fleet.begin(order, by: "a") }
    #expect(error?.cause == "1001 waves were named; a rollout has at most 1000")
    #expect(try await hosts.client.entry(FleetKeys.rollout(ofPlan: "P")) == nil)
    await hosts.client.close()
  }

  @Test("a rollout is paused, halted and resumed; a halt forgives its failures, a pause does not")
  func orders() async throws {
    let hosts = try await Hosts()
    try await hosts.register("a", stores: 10)
    var order = hosts.order("100%")
    order.budget = .count(3)
    let rollout = try await hosts.fleet.begin(order, by: "anna")
    try await hosts.report(rollout, "a", .migrating, failed: 2)
    let paused = try await hosts.fleet.stop("P", as: .paused, by: "anna", why: "lunch")
    #expect(paused.why == "lunch (by anna)")
    #expect(!paused.hasReached("a"))
    #expect(try await hosts.fleet.resume("P").forgivenFailures == 0)
    let twice = await hosts.refusal { _ = try await hosts.fleet.resume("P") }
    #expect(twice?.cause == "the rollout is running")
    _ = try await hosts.fleet.stop("P", as: .halted, by: "anna", why: nil)
    let pausedLater = await hosts.refusal {
      _ = try await hosts.fleet.stop("P", as: .paused, by: "anna", why: nil)
    }
    #expect(pausedLater?.cause == "the rollout is already halted")
    #expect(try await hosts.fleet.resume("P").forgivenFailures == 2)
    let missing = await hosts.refusal { _ = try await hosts.fleet.resume("Q") }
    #expect(missing?.cause == "this plan has no rollout")
    await hosts.client.close()
  }

  @Test("if two hosts decide at the same time, one decision counts and the other host reads again")
  func races() async throws {
    let hosts = try await Hosts()
    try await hosts.register("a", stores: 10)
    _ = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    let read = try await hosts.fleet.rollout(of: "P")
    var paused = read.rollout
    paused.state = .paused
    #expect(try await hosts.fleet.replace(read, by: paused) != nil)
    var wave = read.rollout
    wave.state = .done
    #expect(try await hosts.fleet.replace(read, by: wave) == nil)
    #expect(try await hosts.fleet.rollout(of: "P").rollout.state == .paused)
    await hosts.client.close()
  }

  @Test("a soak lasts until its lease has ended, whatever the clocks say")
  func soak() async throws {
    let hosts = try await Hosts()
    for host in ["a", "b"] { try await hosts.register(host, stores: 1) }
    var order = hosts.order("1", "100%")
    order.soak = .seconds(600)
    let rollout = try await hosts.fleet.begin(order, by: "anna")
    let canary = try #require(["a", "b"].first { rollout.wave(of: $0) == 1 })
    try await hosts.report(rollout, canary, .verified)
    let soaking = try #require(
      try await hosts.advance(hosts.fleet.rollout(of: "P")))
    #expect(soaking.rollout.isSoaking)
    #expect(try await hosts.advance(soaking) == nil)
    // As when the lease ends.
    let timer = try #require(try await hosts.client.entry(FleetKeys.soak(rollout.id)))
    try await hosts.client.revokeLease(timer.lease)
    #expect(try await hosts.advance(soaking)?.rollout.wave == 2)
    await hosts.client.close()
  }

  @Test(
    "no wave opens or ends without a host that came back since the hosts were read",
    arguments: [0, 600])
  func returns(soak: Int) async throws {
    let hosts = try await Hosts()
    let names = ["a", "b", "c", "d"]
    for host in names { try await hosts.register(host, stores: 1) }
    var order = hosts.order("50%", "100%")
    order.soak = .seconds(soak)
    let rollout = try await hosts.fleet.begin(order, by: "anna")
    let first = names.filter { rollout.wave(of: $0) == 1 }
    try await hosts.report(rollout, first[0], .verified)
    let read = try await hosts.fleet.rollout(of: "P")
    let results = try await hosts.fleet.results(of: rollout.id)
    #expect(try await hosts.fleet.advance(read, results, living: [first[0]]) == nil)
    #expect(try await hosts.fleet.rollout(of: "P") == read)
    // Its lease ends.
    try await hosts.client.transaction(if: [], [.delete(FleetKeys.host(first[1]))])
    let next = try #require(try await hosts.fleet.advance(read, results, living: [first[0]]))
    #expect(next.rollout.isSoaking == (soak > 0) && next.rollout.wave == (soak > 0 ? 1 : 2))
    await hosts.client.close()
  }

  @Test("a document of a newer format, and one that is not a rollout, are refused and left alone")
  func unreadable() async throws {
    let hosts = try await Hosts()
    try await hosts.register("a", stores: 10)
    let rollout = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    var newer = rollout
    newer.format = 2
    var absurd = rollout
    absurd.slots = -1
    var late = rollout
    late.wave = .max
    for text in [
      try Fleet.encoded(newer), try Fleet.encoded(absurd), try Fleet.encoded(late),
      Data("{}".utf8), Data("[".utf8),
    ] {
      let key = FleetKeys.rollout(ofPlan: "P")
      try await hosts.client.transaction(if: [], [.put(key, text)])
      let (rollouts, unreadable, _) = try await hosts.fleet.rollouts()
      #expect(rollouts.isEmpty)
      #expect(unreadable.map(\.code) == [.rolloutRefused])
      for order in [FleetRollout.State.paused, .halted] {
        let error = await hosts.refusal {
          _ = try await hosts.fleet.stop("P", as: order, by: "anna", why: nil)
        }
        #expect(error?.code == .rolloutRefused)
        #expect(error?.next != nil)
      }
      let error = await hosts.refusal {
        _ = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
      }
      #expect(error?.code == .rolloutRefused)
      #expect(try await hosts.client.entry(key)?.value == text)
    }
    await hosts.client.close()
  }

  @Test("no wave ends without a host whose report cannot be read")
  func damagedReport() async throws {
    let hosts = try await Hosts()
    for host in ["a", "b"] { try await hosts.register(host, stores: 1) }
    let rollout = try await hosts.fleet.begin(hosts.order("100%"), by: "anna")
    let key = FleetKeys.result(rollout.id, "b")
    for host in ["a", "b"] { try await hosts.report(rollout, host, .verified) }
    let huge = #"{"wave":1,"state":"verified","stores":9223372036854775807,"at":0}"#
    for text in ["", "{}", huge, String(repeating: "[", count: 100_000)] {
      try await hosts.client.transaction(if: [], [.put(key, Data(text.utf8))])
      try await hosts.client.transaction(if: [], [.put(FleetKeys.host("x\n"), Data(text.utf8))])
      #expect(try await hosts.advance(hosts.fleet.rollout(of: "P")) == nil)
      let error = Fleet.unreadableResult(of: "b", in: rollout.id)
      #expect(try await hosts.fleet.result(of: "b", in: rollout.id) == .unreadable(error))
      #expect(error.next?.contains("instar-coordinator") == true)
      let report = try await hosts.fleet.report(hosts.fleet.rollout(of: "P"))
      #expect(report.hosts.map(\.state).sorted() == ["unreadable", "verified"])
    }
    try await hosts.report(rollout, "b", .verified)
    #expect(try await hosts.advance(hosts.fleet.rollout(of: "P"))?.rollout.state == .done)
    await hosts.client.close()
  }
}
