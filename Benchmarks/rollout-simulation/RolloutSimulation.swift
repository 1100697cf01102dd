import ArgumentParser
import Foundation
import InstarConfiguration
import InstarCoordinator
import InstarSchema
import InstarWire
import Synchronization

/// The hosts of `packaging/rollout-simulation`: each is a `Coordinator` as instar-coordinator runs it, with its own
/// connection to etcd. Only the answers of instard are simulated.
///
/// It prints a JSON line at the end of each phase: {"phase":"wave 2"}. The last one has the results of all hosts.
@main
struct RolloutSimulation: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the hosts of a fleet in one process. packaging/rollout-simulation starts this.")

  @Option(help: "The member of etcd.") var endpoint: String
  @Option(help: "The certificate of the authority.") var ca: String
  @Option(help: "The certificate of all hosts.") var certificate: String
  @Option(help: "The key of that certificate.") var key: String
  @Option(help: "The hosts.") var hosts = 200
  @Option(help: "The stores of each host.") var stores = 10_000
  @Option(help: "How many hosts may migrate at the same time.") var slots = 16
  @Option(help: "How many hosts have had their turn when each wave ends.")
  var waves = "10%,50%,100%"
  @Option(help: "The seconds between two waves.") var soak = 5.0
  @Option(help: "The seconds of the lease of each host.") var lease = 15.0
  @Option(help: "The seconds that a host takes to migrate its stores.") var work = 5.0
  @Option(help: "One store fails on each host whose number is a multiple of this.")
  var failing = 100
  @Option(help: "The seconds in which the hosts start.") var start = 10.0
  @Option(help: "The seconds of each phase in which nothing happens.") var idle = 10.0

  func run() async throws {
    let simulated = SimulatedFleet(self)
    let own = try EtcdClient(settings)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await simulated.runHosts() }
      do {
        try await observe(own, simulated)
      } catch {
        Self.say([
          "error": "\(error)", "errors": simulated.errors, "errorCount": simulated.errorCount,
        ])
      }
      group.cancelAll()
    }
    await own.close()
  }

  var settings: CoordinatorSettings {
    var settings = CoordinatorSettings()
    settings.endpoints = [endpoint]
    settings.authority = ca
    settings.certificate = certificate
    settings.key = key
    settings.lease = .seconds(lease)
    return settings
  }

  /// Begins a rollout, and says when each phase ends.
  private func observe(_ etcd: EtcdClient, _ simulated: SimulatedFleet) async throws {
    let fleet = Fleet(etcd)
    while try await again({ try await fleet.livingHosts().count }) < hosts {
      try await Task.sleep(for: .seconds(0.5))
    }
    end(of: "hosts start")
    try await Task.sleep(for: .seconds(idle))
    end(of: "no rollout")
    let steps = ["1"] + waves.split(separator: ",").map(String.init)
    var order = Fleet.Order(
      plan: SimulatedFleet.plan, steps: steps.compactMap(RolloutSettings.Share.init), slots: slots)
    order.soak = .seconds(soak)
    order.budget = .percent(1)
    let begun = try await fleet.begin(order, by: "packaging/rollout-simulation")
    end(of: "create")
    var name = Self.phase(of: begun)
    while true {
      try await Task.sleep(for: .seconds(0.2))
      let rollout = try await again { try await fleet.rollout(of: SimulatedFleet.plan).rollout }
      let next = Self.phase(of: rollout)
      if next != name {
        end(of: name)
        name = next
      }
      guard rollout.state == .running else { break }
    }
    try await Task.sleep(for: .seconds(idle))
    end(of: name)
    let rollout = try await fleet.rollout(of: SimulatedFleet.plan)
    let report = try await fleet.report(rollout)
    end(of: "show")
    Self.say([
      "state": report.state, "why": report.why ?? "", "hosts": report.hosts.count,
      "verified": report.hosts.count { $0.state == HostResult.State.verified.rawValue },
      "stores": report.stores, "migrated": report.migrated, "failed": report.failed,
      "mostAtOnce": simulated.mostAtOnce, "errors": simulated.errors,
      "errorCount": simulated.errorCount,
      "documentBytes": try JSONEncoder().encode(rollout.rollout).count,
    ])
  }

  /// Reads once more, if etcd is too busy with the hosts to answer in time: an operator would do so.
  private func again<Value>(_ read: () async throws -> Value) async throws -> Value {
    for _ in 1...10 {
      do {
        return try await read()
      } catch {
        try await Task.sleep(for: .seconds(1))
      }
    }
    return try await read()
  }

  private static func phase(of rollout: FleetRollout) -> String {
    switch rollout.state {
    case .running where rollout.isSoaking: "soak \(rollout.wave)"
    case .running: "wave \(rollout.wave)"
    default: rollout.state.rawValue
    }
  }

  private func end(of phase: String) { Self.say(["phase": phase]) }

  private static func say(_ line: [String: Any]) {
    do {
      let data = try JSONSerialization.data(withJSONObject: line, options: .sortedKeys)
      FileHandle.standardOutput.write(data + [UInt8(ascii: "\n")])
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
    }
  }
}

/// All hosts, and what is true of them together.
final class SimulatedFleet: Sendable {
  static let plan = "FleetPlan"
  static let version = Schema.Version(2, 0, 0)
  private struct Counts {
    var working = 0
    var mostAtOnce = 0
    var errors: [String] = []
  }

  private let options: RolloutSimulation
  private let counts = Mutex(Counts())
  var mostAtOnce: Int { counts.withLock(\.mostAtOnce) }
  /// The first errors that hosts have logged.
  var errors: [String] { counts.withLock { Array($0.errors.prefix(3)) } }
  var errorCount: Int { counts.withLock(\.errors.count) }

  init(_ options: RolloutSimulation) { self.options = options }

  /// Runs all hosts until the task is cancelled.
  func runHosts() async {
    await withTaskGroup(of: Void.self) { group in
      for number in 1...options.hosts {
        group.addTask { await self.runHost(number) }
      }
    }
  }

  private func runHost(_ number: Int) async {
    let name = String(format: "host-%05d.example.com", number)
    do {
      try await Task.sleep(for: .seconds(.random(in: 0...options.start)))
      let etcd = try EtcdClient(options.settings)
      let failures = number.isMultiple(of: options.failing) ? 1 : 0
      let daemon = SimulatedDaemon(
        stores: options.stores, failing: failures, seconds: options.work, fleet: self)
      let log = CoordinatorLog { entry in
        guard entry.event.priority.rawValue <= CoordinatorEvent.Priority.warning.rawValue else {
          return
        }
        self.counts.withLock { $0.errors.append("\(name): \(entry.message)") }
      }
      let coordinator = Coordinator(
        options.settings, host: name,
        daemon: DaemonLink { daemon.answer($0) },
        etcd: etcd, log: log)
      await coordinator.run()
      await etcd.close()
    } catch is CancellationError {
      return
    } catch {
      counts.withLock { $0.errors.append("\(name): \(error)") }
    }
  }

  func begin() {
    counts.withLock {
      $0.working += 1
      $0.mostAtOnce = max($0.mostAtOnce, $0.working)
    }
  }

  func end() { counts.withLock { $0.working -= 1 } }
}

/// The answers of one instard: its stores are migrated one after the other while it has the permission.
final class SimulatedDaemon: Sendable {
  private struct State {
    var done = 0.0
    var failed = 0
    var isWorking = false
    var answered = ContinuousClock.now
  }

  private let stores: Int
  private let failing: Int
  private let seconds: Double
  private let fleet: SimulatedFleet
  private let state = Mutex(State())

  init(stores: Int, failing: Int, seconds: Double, fleet: SimulatedFleet) {
    self.stores = stores
    self.failing = failing
    self.seconds = seconds
    self.fleet = fleet
  }

  func answer(_ permissions: [Manager.Permission]) -> Manager.PermitReply {
    let permission = permissions.first { $0.plan == SimulatedFleet.plan }
    return state.withLock { state in
      let now = ContinuousClock.now
      if state.isWorking {
        let passed = (now - state.answered) / .seconds(1)
        state.done = min(Double(stores), state.done + passed * Double(stores) / seconds)
        // The last stores fail, and each failure waits for the count of all hosts.
        if Int(state.done) == stores { state.failed = failing }
      }
      state.answered = now
      let isPermitted = permission.map { $0.failures ?? .max >= state.failed } ?? false
      let isWorking = isPermitted && Int(state.done) < stores
      if isWorking, !state.isWorking { fleet.begin() }
      if !isWorking, state.isWorking { fleet.end() }
      state.isWorking = isWorking
      let done = Int(state.done)
      let waiting = stores - done
      return Manager.PermitReply(
        isCounted: true, running: isWorking ? [SimulatedFleet.plan: 1] : [:],
        pause: nil,
        rollouts: [
          Manager.Rollout(
            plan: SimulatedFleet.plan, version: SimulatedFleet.version, wave: 1, waves: 1,
            stores: stores, waiting: waiting, admitted: 0, deferred: 0,
            migrated: done - state.failed, failed: state.failed, unapproved: 0,
            secondsToNextWave: nil, halt: nil, failures: [])
        ], failures: [])
    }
  }
}
