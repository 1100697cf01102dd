import InstarSchema

/// The one host that opens and ends waves, and halts rollouts whose failures exceed their budget.
///
/// Hosts elect it by a key that ends with the lease of the host that has it. Two leaders would do no harm, because each
/// change is a transaction that compares what was read. One leader only saves etcd the reads of all the others.
struct FleetLeader {
  private let fleet: Fleet
  private let host: String
  private var isLeader = false
  private var nextElection: ContinuousClock.Instant?
  private var living: (at: ContinuousClock.Instant, hosts: Set<String>)?
  /// What the hosts reported, by the identifier of the rollout.
  private var seen: [String: KnownResults] = [:]
  private static let electionInterval = Duration.seconds(5)
  private static let livingInterval = Duration.seconds(2)

  init(_ fleet: Fleet, host: String) {
    self.fleet = fleet
    self.host = host
  }

  /// Forgets that this host leads: its lease has ended.
  mutating func stop() {
    isLeader = false
    seen = [:]
  }

  /// Changes the rollouts, if this host leads.
  ///
  /// - Parameter lease: That of this host.
  /// - Returns: the rollouts that were changed.
  mutating func lead(
    _ rollouts: [Fleet.Revised], lease: Int64, _ now: ContinuousClock.Instant
  ) async throws(InstarError) -> [Fleet.Revised] {
    let running = rollouts.filter { $0.rollout.state == .running }
    guard let hosts = running.map(\.rollout.hosts).max() else { return [] }
    try await elect(lease, of: hosts, now)
    guard isLeader else { return [] }
    let living = try await livingHosts(now)
    var changed: [Fleet.Revised] = []
    for rollout in running {
      let results = try await results(of: rollout.rollout.id)
      if let new = try await fleet.advance(rollout, results, living: living) { changed.append(new) }
    }
    let ids = Set(running.map(\.rollout.id))
    for id in seen.keys where !ids.contains(id) { seen[id] = nil }
    return changed
  }

  /// What the hosts reported until now.
  private mutating func results(of id: String) async throws(InstarError) -> Fleet.Results {
    var known = seen[id] ?? KnownResults()
    try await known.update(of: id, from: fleet)
    seen[id] = known
    return known.results
  }

  private mutating func livingHosts(
    _ now: ContinuousClock.Instant
  ) async throws(InstarError) -> Set<String> {
    if let living, now - living.at < Self.livingInterval { return living.hosts }
    let hosts = try await fleet.livingHosts()
    living = (now, hosts)
    return hosts
  }

  private mutating func elect(
    _ lease: Int64, of hosts: Int, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    guard nextElection.map({ $0 <= now }) ?? true else { return }
    // The more hosts there are, the less often each asks: all together some 200 times a second.
    let spread = max(1, Double(hosts) / 1000) * Double.random(in: 0.5...1.5)
    nextElection = now + Self.electionInterval * (isLeader ? 1 : spread)
    // A transaction that writes goes through etcd's log, also if its condition does not hold. So all but one only read.
    if let elected = try await fleet.etcd.entry(FleetKeys.leader) {
      isLeader = elected.lease == lease
      return
    }
    isLeader =
      try await fleet.etcd.transaction(
        if: [.isAbsent(FleetKeys.leader)],
        [.put(FleetKeys.leader, Fleet.name(host), lease: lease)]) != nil
  }
}

/// What the hosts of a rollout have reported. Only what is new is read.
struct KnownResults {
  private(set) var results = Fleet.Results()
  private var revision: Int64?

  /// Reads what hosts have reported since the last update.
  mutating func update(of id: String, from fleet: Fleet) async throws(InstarError) {
    let new = try await fleet.results(of: id, since: revision)
    // The last report of a host that could be read still counts: its failures happened.
    results.results.merge(new.results) { $1 }
    results.unreadable.subtract(new.results.keys)
    results.unreadable.formUnion(new.unreadable)
    revision = new.revision + 1
  }
}
