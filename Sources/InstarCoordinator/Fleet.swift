import Foundation
package import InstarConfiguration
package import InstarSchema
import InstarWire

/// The data that the hosts of a fleet share in etcd: rollouts, and the results of each host.
///
/// Each change of a rollout is one transaction that compares the revision at which the rollout was read. So two
/// hosts that decide at the same time never undo each other's decision: the second one reads again.
package struct Fleet: Sendable {
  let etcd: EtcdClient
  private static let attempts = 5

  package init(_ etcd: EtcdClient) { self.etcd = etcd }

  /// A rollout as it was read.
  package struct Revised: Sendable, Hashable {
    package var rollout: FleetRollout
    /// The revision of etcd that wrote it.
    var revision: Int64
  }

  // MARK: Reading

  /// Reads all rollouts, by plan, and the revision of etcd.
  ///
  /// - Returns: rollouts; and an error for each document that this release cannot read.
  func rollouts() async throws(InstarError) -> (
    rollouts: [Revised], unreadable: [InstarError], revision: Int64
  ) {
    let range = try await etcd.entries(below: FleetKeys.rollouts)
    var rollouts: [Revised] = []
    var unreadable: [InstarError] = []
    for entry in range.entries {
      do throws(InstarError) {
        rollouts.append(try Self.revised(entry))
      } catch {
        unreadable.append(error)
      }
    }
    return (rollouts, unreadable, range.revision)
  }

  /// Reads the rollout of a plan.
  ///
  /// - Throws: `rolloutRefused` if there is none, or a newer release wrote it.
  package func rollout(of plan: String) async throws(InstarError) -> Revised {
    guard let entry = try await etcd.entry(FleetKeys.rollout(ofPlan: plan)) else {
      throw InstarError(
        .rolloutRefused, "cannot find the rollout of '\(plan)'",
        cause: "this plan has no rollout",
        next: "to see all rollouts, run: instarctl rollout show")
    }
    return try Self.revised(entry)
  }

  private struct FormatOnly: Decodable {
    var format: Int
  }

  private static func revised(_ entry: EtcdEntry) throws(InstarError) -> Revised {
    let plan = FleetKeys.name(of: entry.key)
    let key = entry.key.escapedForTerminal
    func refused(_ cause: String, _ next: String) -> InstarError {
      InstarError(
        .rolloutRefused, "cannot read the rollout of '\(plan.escapedForTerminal)'", cause: cause,
        next: next)
    }
    let format = try? JSONDecoder().decode(FormatOnly.self, from: entry.value).format
    if let format, format > FleetRollout.currentFormat {
      throw refused(
        "the document has format \(format); this release reads formats up to \(FleetRollout.currentFormat)",
        "in the folder with the packages of the release that began it, run as root: "
          + "apt-get install ./instar_*.deb ./instar-coordinator_*.deb"
      )
    }
    guard let rollout = try? JSONDecoder().decode(FleetRollout.self, from: entry.value),
      rollout.plan == plan, rollout.isPlausible
    else {
      throw refused(
        "the key '\(key)' of etcd is not a rollout document",
        "stop the program that writes this key, then run on a member of etcd, with its certificates: "
          + "etcdctl del '\(key)'")
    }
    return Revised(rollout: rollout, revision: entry.modified)
  }

  /// The results of hosts.
  struct Results: Sendable {
    /// By the name of the host.
    var results: [String: HostResult] = [:]
    /// The hosts whose report cannot be read: it is damaged, or a newer release wrote it.
    var unreadable: Set<String> = []
    /// The revision of etcd at which they were read.
    var revision: Int64 = 0
  }

  /// Reads the results that hosts reported at a revision or later.
  func results(
    of id: String, since revision: Int64? = nil
  ) async throws(InstarError) -> Results {
    let range = try await etcd.entries(below: FleetKeys.results(id), since: revision)
    var results = Results(revision: range.revision)
    for entry in range.entries {
      let host = FleetKeys.name(of: entry.key)
      if let result = Self.result(entry) {
        results.results[host] = result
      } else {
        results.unreadable.insert(host)
      }
    }
    return results
  }

  /// What etcd has of one host's part in a rollout.
  enum StoredResult: Hashable {
    case result(HostResult)
    case missing
    case unreadable(InstarError)
  }

  /// Reads the result of one host.
  func result(of host: String, in id: String) async throws(InstarError) -> StoredResult {
    guard let entry = try await etcd.entry(FleetKeys.result(id, host)) else { return .missing }
    if let result = Self.result(entry) { return .result(result) }
    return .unreadable(Self.unreadableResult(of: host, in: id))
  }

  private static func result(_ entry: EtcdEntry) -> HostResult? {
    // `unreadableResult` says that it cannot be read; the position in the text would help nobody.
    guard let result = try? JSONDecoder().decode(HostResult.self, from: entry.value) else {
      return nil
    }
    return result.isPlausible ? result : nil
  }

  static func unreadableResult(of host: String, in id: String) -> InstarError {
    InstarError(
      .rolloutRefused, "cannot read the report of the host '\(host.escapedForTerminal)'",
      cause:
        "the key '\(FleetKeys.result(id, host).escapedForTerminal)' of etcd is not a report of a host",
      next: "to have the host write it again, run there: systemctl restart instar-coordinator")
  }

  /// Reads the hosts that live, by name.
  func hosts() async throws(InstarError) -> [String: HostRegistration] {
    Self.decoded(HostRegistration.self, try await etcd.entries(below: FleetKeys.hosts))
      .filter(\.value.isPlausible)
  }

  /// Reads the names of the hosts that live.
  package func livingHosts() async throws(InstarError) -> Set<String> {
    let range = try await etcd.entries(below: FleetKeys.hosts, keysOnly: true)
    return Set(range.entries.map { FleetKeys.name(of: $0.key) })
  }

  /// The value of a key that has the name of a host.
  static func name(_ host: String) -> Data { Data(host.utf8) }

  private static func decoded<Value: Decodable>(
    _ type: Value.Type, _ range: EtcdRange
  ) -> [String: Value] {
    var values: [String: Value] = [:]
    for entry in range.entries {
      // Damaged, or written by a newer release. It is ignored here; the key alone shows that the host lives.
      guard let value = try? JSONDecoder().decode(type, from: entry.value) else { continue }
      values[FleetKeys.name(of: entry.key)] = value
    }
    return values
  }

  // MARK: Deciding

  /// Changes a rollout, unless somebody else did since it was read.
  ///
  /// - Returns: the rollout with its new revision; `nil` if somebody else was first.
  func replace(
    _ old: Revised, by new: FleetRollout, _ more: [EtcdChange] = [],
    if conditions: [EtcdCondition] = []
  ) async throws(InstarError) -> Revised? {
    let key = FleetKeys.rollout(ofPlan: new.plan)
    let revision = try await etcd.transaction(
      if: [.isUnchanged(key, since: old.revision)] + conditions,
      [.put(key, try Self.encoded(new))] + more)
    return revision.map { Revised(rollout: new, revision: $0) }
  }

  static func encoded(_ value: some Encodable) throws(InstarError) -> Data {
    do {
      return try WireCoder.encoder().encode(value)
    } catch {
      throw InstarError(.internalError, "cannot write to etcd", cause: String(describing: error))
    }
  }

  /// Halts the rollout, or opens or ends a wave, according to the results of the hosts.
  ///
  /// The end of a soak is the end of a lease, so it does not depend on anybody's clock: a lease never ends early, and
  /// ends later if etcd elects another leader meanwhile.
  ///
  /// - Parameters:
  ///   - results: As they are now.
  ///   - living: The hosts whose lease had not ended when they were last read. They are read again before a wave opens
  ///     or ends.
  /// - Returns: the changed rollout; `nil` if nothing changed, or somebody else was first.
  func advance(
    _ old: Revised, _ results: Results, living: Set<String>
  ) async throws(InstarError) -> Revised? {
    let soak = FleetKeys.soak(old.rollout.id)
    let isSoaked = old.rollout.isSoaking ? try await etcd.entry(soak) == nil : true
    var hosts = FleetRollout.Hosts(
      results: results.results, unreadable: results.unreadable, living: living, isSoaked: isSoaked)
    guard var new = old.rollout.next(hosts) else { return nil }
    if new.state != .halted {
      // No wave waits for a host that is gone. One of them may be back since, with stores that it has not migrated.
      hosts.living.formUnion(try await livingHosts())
      guard let checked = old.rollout.next(hosts) else { return nil }
      new = checked
    }
    guard new.isSoaking, !old.rollout.isSoaking else {
      let conditions = old.rollout.isSoaking && !new.isSoaking ? [EtcdCondition.isAbsent(soak)] : []
      return try await replace(old, by: new, if: conditions)
    }
    let timer = try await etcd.grantLease(seconds: new.soakSeconds)
    let changed = try await replace(
      old, by: new, [.put(soak, Data("\(new.wave)".utf8), lease: timer)])
    if changed == nil { try await etcd.revokeLease(timer) }
    return changed
  }
}

// MARK: - Orders

extension Fleet {
  /// How a rollout begins.
  package struct Order: Sendable {
    package var plan: String
    /// Its last version; `nil` for the one that all hosts have.
    package var version: Schema.Version?
    /// How many hosts have had their turn when each wave ends.
    package var steps: [RolloutSettings.Share]
    /// How many hosts may migrate at the same time.
    package var slots: Int
    /// How long to wait between two waves.
    package var soak: Duration
    /// How many stores may fail; `nil` for no limit.
    package var budget: RolloutSettings.Share?

    /// One wave with all hosts.
    package init(plan: String, steps: [RolloutSettings.Share] = [.percent(100)], slots: Int = 16) {
      self.plan = plan
      self.steps = steps
      self.slots = slots
      soak = .zero
    }
  }

  /// Begins a rollout over the hosts that live and have stores of the plan. It replaces one of the plan that is halted
  /// or done.
  ///
  /// - Throws: `rolloutRefused`, if no host has such stores, if hosts have several versions and none is named, if there
  ///   are too many waves, or if a rollout of the plan goes on.
  package func begin(_ order: Order, by user: String) async throws(InstarError) -> FleetRollout {
    let what = "cannot begin a rollout of '\(order.plan)'"
    guard order.steps.count <= FleetRollout.waveLimit else {
      throw InstarError(
        .rolloutRefused, what,
        cause:
          "\(order.steps.count) waves were named; a rollout has at most \(FleetRollout.waveLimit)",
        next: "name fewer waves with --waves")
    }
    let key = FleetKeys.rollout(ofPlan: order.plan)
    let last = try await etcd.entry(key)
    if let last {
      let old = try Self.revised(last).rollout
      guard [.halted, .done].contains(old.state) else {
        throw InstarError(
          .rolloutRefused, what,
          cause: "the plan's rollout to \(old.version) is \(old.state.rawValue)",
          next: "to end that rollout first, run: instarctl rollout halt --plan \(order.plan)")
      }
    }
    let hosts = try await hosts()
    let version = try Self.version(of: order, on: hosts, what)
    var stores: [String: Int] = [:]
    for (name, host) in hosts {
      let count = host.plans.first { $0.plan == order.plan && $0.version == version }?.stores ?? 0
      if count > 0 { stores[name] = count }
    }
    let rollout = Self.rollout(order, version, Array(stores.keys), stores.values.reduce(0, +), user)
    var results: [EtcdChange] = []
    for (name, count) in stores {
      let result = HostResult(
        wave: rollout.wave(of: name), stores: count, at: Date().timeIntervalSince1970)
      results.append(.put(FleetKeys.result(rollout.id, name), try Self.encoded(result)))
    }
    for start in stride(from: 0, to: results.count, by: EtcdClient.operationLimit) {
      let end = min(start + EtcdClient.operationLimit, results.count)
      try await etcd.transaction(if: [], Array(results[start..<end]))
    }
    // The document is last: nobody acts on a rollout whose hosts are not all known.
    let condition: EtcdCondition =
      last.map { .isUnchanged(key, since: $0.modified) } ?? .isAbsent(key)
    var changes: [EtcdChange] = [.put(key, try Self.encoded(rollout))]
    if let old = try last.map({ entry throws(InstarError) in try Self.revised(entry).rollout.id }) {
      changes += [.deleteAll(FleetKeys.results(old)), .delete(FleetKeys.soak(old))]
    }
    guard try await etcd.transaction(if: [condition], changes) != nil else {
      // Nobody else knows this identifier, so nobody else would ever delete them.
      try await etcd.transaction(if: [], [.deleteAll(FleetKeys.results(rollout.id))])
      throw InstarError(
        .rolloutRefused, what, cause: "another rollout of this plan has just begun",
        next: "to see it, run: instarctl rollout show")
    }
    return rollout
  }

  private static func version(
    of order: Order, on hosts: [String: HostRegistration], _ what: String
  ) throws(InstarError) -> Schema.Version {
    var counts: [Schema.Version: Int] = [:]
    for host in hosts.values {
      for plan in host.plans where plan.plan == order.plan && plan.stores > 0 {
        counts[plan.version, default: 0] += 1
      }
    }
    if let version = order.version, counts[version] != nil { return version }
    if order.version == nil, counts.count == 1, let version = counts.keys.first { return version }
    let found = counts.sorted { $0.key < $1.key }
      .map { "\($0.key) on \($0.value.counted("host"))" }
      .joined(separator: ", ")
    guard !counts.isEmpty else {
      throw InstarError(
        .rolloutRefused, what,
        cause: "none of \(hosts.count) registered hosts has a store that is behind this plan",
        next: "install the plugin on the hosts; to see what a host has, run there: instarctl status"
      )
    }
    throw InstarError(
      .rolloutRefused, what,
      cause: (order.version.map { "no host has version \($0) of the plan; " } ?? "")
        + "the hosts have \(found)",
      next: "name one of these versions with --plan-version, or install one plugin on all hosts")
  }

  private static func rollout(
    _ order: Order, _ version: Schema.Version, _ hosts: [String], _ stores: Int, _ user: String
  ) -> FleetRollout {
    let id = "\(order.plan)-\(version)-\(RunIdentifier.make())"
    return FleetRollout(
      id: id, plan: order.plan, version: version, by: user, began: Date().timeIntervalSince1970,
      steps: order.steps.map(\.description),
      bounds: FleetRollout.bounds(of: order.steps, hosts: hosts, id: id),
      hosts: hosts.count, slots: order.slots,
      soakSeconds: Int64(order.soak.inSeconds.rounded(.up)),
      budget: order.budget?.description, allowedFailures: order.budget?.failures(of: stores))
  }

  /// Stops a rollout until it is resumed. Runs in progress finish.
  ///
  /// - Throws: `rolloutRefused` if there is none, if it is done, or if it is halted and is to be paused.
  package func stop(
    _ plan: String, as state: FleetRollout.State, by user: String, why: String?
  ) async throws(InstarError) -> FleetRollout {
    let verb = state == .paused ? "pause" : "halt"
    return try await change(plan, verb) { rollout throws(InstarError) in
      guard rollout.state != .done else {
        throw InstarError(
          .rolloutRefused, "cannot \(verb) the rollout of '\(plan)'", cause: "the rollout is done",
          next: "to stop one host, run there: instarctl pause --plan \(plan)")
      }
      // A resume after a pause keeps the counted failures, so the rollout would halt again.
      guard state != .paused || rollout.state != .halted else {
        throw InstarError(
          .rolloutRefused, "cannot pause the rollout of '\(plan)'",
          cause: "the rollout is already halted",
          next: "to see why, run: instarctl rollout show --plan \(plan)")
      }
      rollout.state = state
      rollout.why = why.map { "\($0) (by \(user))" } ?? "by \(user)"
    }
  }

  /// Resumes a paused or halted rollout. After a halt, the failures until now no longer count.
  ///
  /// - Throws: `rolloutRefused` if there is none, or it is neither paused nor halted.
  package func resume(_ plan: String) async throws(InstarError) -> FleetRollout {
    let id = try await rollout(of: plan).rollout.id
    let failed = try await results(of: id).results.values.reduce(0) { $0 + $1.failed }
    return try await change(plan, "resume") { rollout throws(InstarError) in
      guard [.paused, .halted].contains(rollout.state) else {
        throw InstarError(
          .rolloutRefused, "cannot resume the rollout of '\(plan)'",
          cause: "the rollout is \(rollout.state.rawValue)",
          next: "to see it, run: instarctl rollout show")
      }
      // After a pause, the failures still count: nobody has dealt with them yet.
      if rollout.state == .halted { rollout.forgivenFailures = failed }
      rollout.state = .running
      rollout.why = nil
    }
  }

  private func change(
    _ plan: String, _ verb: String, _ body: (inout FleetRollout) throws(InstarError) -> Void
  ) async throws(InstarError) -> FleetRollout {
    for _ in 1...Self.attempts {
      let old = try await rollout(of: plan)
      var new = old.rollout
      try body(&new)
      if let changed = try await replace(old, by: new) { return changed.rollout }
    }
    throw InstarError(
      .rolloutRefused, "cannot \(verb) the rollout of '\(plan)'",
      cause: "the rollout was changed during each of \(Self.attempts) attempts",
      next: "to see it, run: instarctl rollout show")
  }
}
