import InstarSchema

/// The one host that opens and ends waves, and halts rollouts whose failures exceed their budget.
///
/// Hosts elect it by a key that ends with the lease of the host that has it. Two leaders would do no harm, because each
/// change is a transaction that compares what was read. One leader only saves etcd the reads of all the others.
struct FleetLeader {
  private struct Seen {
    var results: [String: HostResult] = [:]
    var revision: Int64?
  }

  private let fleet: Fleet
  private let host: String
  private var isLeader = false
  private var nextElection: ContinuousClock.Instant?
  private var living: (at: ContinuousClock.Instant, hosts: Set<String>)?
  /// What the hosts reported, by the identifier of the rollout.
  private var seen: [String: Seen] = [:]
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
    try await elect(lease, now)
    guard isLeader else { return [] }
    let running = rollouts.filter { $0.rollout.state == .running }
    guard !running.isEmpty else { return [] }
    let hosts: Set<String>
    if let living, now - living.at < Self.livingInterval {
      hosts = living.hosts
    } else {
      hosts = try await fleet.livingHosts()
      living = (now, hosts)
    }
    var changed: [Fleet.Revised] = []
    for rollout in running {
      let results = try await results(of: rollout.rollout.id)
      if let new = try await fleet.advance(rollout, results, living: hosts) { changed.append(new) }
    }
    let ids = Set(running.map(\.rollout.id))
    for id in seen.keys where !ids.contains(id) { seen[id] = nil }
    return changed
  }

  /// What the hosts reported until now. Only what is new is read.
  private mutating func results(of id: String) async throws(InstarError) -> [String: HostResult] {
    var known = seen[id] ?? Seen()
    let new = try await fleet.results(of: id, since: known.revision)
    known.results.merge(new.results) { $1 }
    known.revision = new.revision + 1
    seen[id] = known
    return known.results
  }

  private mutating func elect(
    _ lease: Int64, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    guard nextElection.map({ $0 <= now }) ?? true else { return }
    nextElection = now + Self.electionInterval
    let isElected = try await fleet.etcd.transaction(
      if: [.isAbsent(FleetKeys.leader)], [.put(FleetKeys.leader, Fleet.name(host), lease: lease)])
    guard isElected == nil else {
      isLeader = true
      return
    }
    isLeader = try await fleet.etcd.entry(FleetKeys.leader)?.lease == lease
  }
}
