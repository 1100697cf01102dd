import InstarConfiguration
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarCoordinator

@Suite("A rollout over hosts")
struct FleetRolloutTests {
  static let names = (0..<200).map { "web\($0).example.com" }

  static func rollout(
    _ steps: [String], hosts: [String] = names, id: String = "R", budget: Int? = nil,
    soak: Int64 = 0
  ) -> FleetRollout {
    let shares = steps.compactMap(RolloutSettings.Share.init)
    return FleetRollout(
      id: id, plan: "NotesPlan", version: Schema.Version(2, 0, 0), by: "anna", began: 0,
      steps: steps, bounds: FleetRollout.bounds(of: shares, hosts: hosts, id: id),
      hosts: hosts.count, slots: 4, soakSeconds: soak, budget: budget.map { "\($0)" },
      allowedFailures: budget)
  }

  static func results(
    _ rollout: FleetRollout, _ hosts: [String] = names, failed: Int = 0,
    _ state: (String) -> HostResult.State
  ) -> [String: HostResult] {
    Dictionary(
      uniqueKeysWithValues: hosts.map {
        var result = HostResult(wave: rollout.wave(of: $0), stores: 1, at: 0)
        result.state = state($0)
        result.failed = failed
        return ($0, result)
      })
  }

  static func next(
    _ rollout: FleetRollout, _ results: [String: HostResult], gone: Set<String> = [],
    isSoaked: Bool = true
  ) -> FleetRollout? {
    rollout.next(
      FleetRollout.Hosts(
        results: results, living: Set(results.keys).subtracting(gone), isSoaked: isSoaked))
  }

  @Test("each host is in one wave, and the waves have the sizes that were ordered")
  func sizes() {
    let rollout = Self.rollout(["1", "10%", "50%", "100%"])
    let counts = Dictionary(grouping: Self.names, by: rollout.wave(of:)).mapValues(\.count)
    #expect(counts == [1: 1, 2: 19, 3: 80, 4: 100])
    #expect(rollout.waves == 4)
    // Another rollout has other canaries.
    let canaries = Set(
      (0..<20).flatMap { number in
        let rollout = Self.rollout(["1", "100%"], id: "R\(number)")
        return Self.names.filter { rollout.wave(of: $0) == 1 }
      })
    #expect(canaries.count > 10)
  }

  @Test("slots of a former rollout that are still in use count for the next one")
  func slotsOfFormer() {
    var rollout = Self.rollout(["100%"])
    rollout.slots = 2
    #expect(rollout.freeSlots(taken: []) == [0, 1])
    #expect(rollout.freeSlots(taken: [1]) == [0])
    #expect(rollout.freeSlots(taken: [7]) == [0])
    #expect(rollout.freeSlots(taken: [1, 7]).isEmpty)
    #expect(rollout.freeSlots(taken: [6, 7, 8]).isEmpty)
    // Hosts that read at any moment take slots by turns, while those of the former rollout are given back.
    for seed in 0..<200 {
      var random = SeededGenerator(seed: UInt64(seed))
      rollout.slots = Int.random(in: 1...5, using: &random)
      var inUse = Set((0..<12).filter { _ in Bool.random(using: &random) })
      var former = inUse
      for _ in 0..<60 {
        let free = rollout.freeSlots(taken: inUse)
        if let one = former.randomElement(using: &random), Bool.random(using: &random) {
          former.remove(one)
          inUse.remove(one)
        }
        // The slots that were free when a host read them, and still are.
        for slot in free.subtracting(inUse).shuffled(using: &random).prefix(2) {
          inUse.insert(slot)
          #expect(inUse.count <= max(rollout.slots, former.count), "seed \(seed)")
        }
      }
      inUse.formUnion(rollout.freeSlots(taken: inUse))
      #expect(inUse.count == max(rollout.slots, former.count), "seed \(seed)")
    }
  }

  @Test("a host that comes later changes nobody's wave")
  func laterHost() {
    let rollout = Self.rollout(["1", "50%", "100%"])
    #expect((1...3).contains(rollout.wave(of: "new.example.com")))
    #expect(Self.names.count { rollout.wave(of: $0) == 1 } == 1)
  }

  @Test(
    "a wave ends when all its hosts are verified, not before, and the last one ends the rollout")
  func waves() throws {
    var rollout = Self.rollout(["1", "50%", "100%"])
    #expect(Self.next(rollout, Self.results(rollout) { _ in .migrating }) == nil)
    for wave in 1...3 {
      #expect(rollout.wave == wave)
      let open = rollout
      let unfinished = Self.names.first { open.wave(of: $0) == wave }
      let almost = Self.results(rollout) {
        open.wave(of: $0) <= wave && $0 != unfinished ? .verified : .waiting
      }
      #expect(Self.next(rollout, almost) == nil)
      let all = Self.results(rollout) { open.wave(of: $0) <= wave ? .verified : .waiting }
      rollout = try #require(Self.next(rollout, all))
    }
    #expect(rollout.state == .done)
    #expect(Self.next(rollout, Self.results(rollout) { _ in .verified }) == nil)
  }

  @Test("the next wave opens only after the soak")
  func soak() throws {
    let rollout = Self.rollout(["1", "100%"], soak: 60)
    let results = Self.results(rollout) { rollout.wave(of: $0) == 1 ? .verified : .waiting }
    let soaking = try #require(Self.next(rollout, results))
    #expect(soaking.isSoaking)
    #expect(soaking.wave == 1)
    let change = try #require(soaking.change(since: rollout))
    #expect(change.event == .waveDone)
    #expect(change.message.contains("the next one opens in 60 s"))
    let late = try #require(Self.names.first { rollout.wave(of: $0) == 2 })
    #expect(!soaking.hasReached(late))
    #expect(Self.next(soaking, results, isSoaked: false) == nil)
    let second = try #require(Self.next(soaking, results))
    #expect(second.wave == 2)
    #expect(second.hasReached(late))
  }

  @Test("the next wave waits for a host that was gone and came back during the soak")
  func backInSoak() throws {
    let rollout = Self.rollout(["2", "100%"], soak: 60)
    let canary = try #require(Self.names.first { rollout.wave(of: $0) == 1 })
    let half = Self.results(rollout) {
      $0 == canary ? .migrating : rollout.wave(of: $0) == 1 ? .verified : .waiting
    }
    let soaking = try #require(Self.next(rollout, half, gone: [canary]))
    #expect(soaking.isSoaking)
    #expect(Self.next(soaking, half) == nil)
    let all = Self.results(rollout) { rollout.wave(of: $0) == 1 ? .verified : .waiting }
    #expect(Self.next(soaking, all)?.wave == 2)
    #expect(Self.next(soaking, half, gone: [canary])?.wave == 2)
  }

  @Test("failures of all hosts beyond the budget halt the rollout, also during a soak")
  func budget() throws {
    var rollout = Self.rollout(["1", "100%"], budget: 3, soak: 60)
    let some = Array(Self.names.prefix(3))
    #expect(
      Self.next(rollout, Self.results(rollout, some, failed: 1) { _ in .migrating })?.state
        != .halted)
    let four = Self.results(rollout, Array(Self.names.prefix(4)), failed: 1) { _ in .migrating }
    let halted = try #require(Self.next(rollout, four))
    #expect(halted.state == .halted)
    #expect(halted.why == "4 stores failed across all hosts, and the budget is 3")
    #expect(Self.names.allSatisfy { !halted.hasReached($0) })
    rollout.isSoaking = true
    #expect(Self.next(rollout, four, isSoaked: false)?.state == .halted)
    // Resumed: these failures count no longer.
    rollout.forgivenFailures = 4
    #expect(Self.next(rollout, four, isSoaked: false) == nil)
  }

  @Test("no wave waits for a host that is gone, but none ends without a host that is verified")
  func goneHosts() throws {
    var rollout = Self.rollout(["2", "100%"])
    let canaries = Self.names.filter { rollout.wave(of: $0) == 1 }
    let dead = try #require(canaries.first)
    let one = Self.results(rollout) {
      $0 == dead ? .migrating : rollout.wave(of: $0) == 1 ? .verified : .waiting
    }
    #expect(Self.next(rollout, one) == nil)
    #expect(Self.next(rollout, one, gone: [dead])?.wave == 2)
    let none = Self.results(rollout) { _ in .waiting }
    #expect(Self.next(rollout, none, gone: Set(canaries)) == nil)
    // Nor where nobody can read what the hosts of the wave reported before they were gone.
    let others = none.filter { !canaries.contains($0.key) }
    let unread = FleetRollout.Hosts(
      results: others, unreadable: Set(canaries), living: Set(others.keys), isSoaked: true)
    #expect(rollout.next(unread) == nil)
    // A host of an ended wave that is back has its part in the next one.
    rollout.wave = 2
    let back = Self.results(rollout) { $0 == dead ? .migrating : .verified }
    #expect(Self.next(rollout, back) == nil)
  }

  @Test("a document that counts more hosts than any fleet has is refused")
  func tooManyHosts() {
    var rollout = Self.rollout(["100%"])
    #expect(rollout.isPlausible)
    rollout.hosts = 1 << 30
    #expect(!rollout.isPlausible)
  }

  @Test("nothing is decided while a rollout is paused, halted or done")
  func stopped() {
    var rollout = Self.rollout(["100%"], budget: 0)
    for state in [FleetRollout.State.paused, .halted, .done] {
      rollout.state = state
      #expect(Self.next(rollout, Self.results(rollout, failed: 1) { _ in .verified }) == nil)
    }
  }
}
