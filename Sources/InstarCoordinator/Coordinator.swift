import Foundation
public import InstarConfiguration
import InstarSchema
import InstarWire

/// One host's part in the rollouts of its fleet. It takes slots in etcd, permits instard to migrate while it has them,
/// and reports the results of the stores.
///
/// The host works in steps, one each second and one after each change of a rollout. A step asks instard for its
/// progress, renews the lease and the permissions, reads the rollouts, and takes or returns slots.
///
/// States of the host in a rollout:
///
/// ```text
/// waiting ──slot──▶ migrating ──all stores found current or failed──▶ verified
///                       ▲                                                 │
///                       └──────────────── more stores behind ─────────────┘
/// ```
///
/// Invariants:
/// - instard has the permission for a plan only while this host has a slot of its rollout, or the rollout is done.
/// - With a budget, instard starts no run after a failure before the failures of all hosts were compared with it. So
///   the failures exceed the budget by the runs in progress at most.
/// - A permission ends before the lease of the slot does, both counted from before the lease was last renewed; so a
///   host that lost etcd starts no run after etcd has given its slot to another host. The policy `finishWave` is the
///   exception that an operator chooses.
/// - No clock is compared with another machine's.
/// - A rollout that cannot be read permits nothing.
/// - A host without instard does not renew its lease.
public actor Coordinator {
  private struct Session {
    var lease: Int64
    /// A time just before the last renewal was sent: etcd counts the lease from a later one.
    var renewed: ContinuousClock.Instant
    var isRegistered = false
  }

  /// This host's part in the rollouts of one plan.
  private struct PlanPart {
    /// The rollout as it was last read; `nil` if there is none, or none that can be read.
    var rollout: Fleet.Revised?
    /// The slot of this host. A new rollout of the plan inherits it, because runs of the former one may still be in
    /// progress.
    var slot: Int?
    /// A slot that this host has or may have. It permits nothing until etcd has deleted it.
    var returning: Int?
    /// When this host may next try to take a slot; `nil` for at once.
    var nextSlotAttempt: ContinuousClock.Instant?

    mutating func returnSlot() {
      returning = slot ?? returning
      slot = nil
    }
  }

  /// What this host and etcd know of this host's part in one rollout.
  private struct HostReport {
    /// What this host has last reported.
    var result: HostResult?
    /// Whether etcd has no report of this host, or none that can be read. Nobody writes one but this host, and whoever
    /// began the rollout, before its document.
    var isMissing = false
    /// Since when etcd has the report.
    var writtenAt: ContinuousClock.Instant?
    /// What all hosts have reported, if one of this host's stores failed.
    var known: KnownResults?
    /// Since when only stores that are retried later are left.
    var deferredSince: ContinuousClock.Instant?
  }

  private let etcd: EtcdClient
  private let fleet: Fleet
  private let daemon: DaemonLink
  private let settings: CoordinatorSettings
  private let host: String
  private let log: CoordinatorLog

  private var session: Session?
  private var registration: HostRegistration?
  private var registeredAt: ContinuousClock.Instant?
  /// The time since which another host has the name of this host.
  private var nameTakenSince: ContinuousClock.Instant?
  /// By plan. A part stays when its rollout is gone.
  private var parts: [String: PlanPart] = [:]
  /// A time just before the rollouts were last read. Permissions are counted from it, so that they never end too late.
  private var rolloutsRead: ContinuousClock.Instant?
  private var isReadDue = true
  /// The revision of etcd at which the rollouts were read.
  private var revision: Int64 = 0
  /// The reports of this host, by the identifier of the rollout.
  private var reports: [String: HostReport] = [:]
  private var leader: FleetLeader
  private var lastReply: (at: ContinuousClock.Instant, reply: Manager.PermitReply)?
  /// The permissions that instard has last taken, without their time.
  private var permitted: Set<Manager.Permission> = []
  private var isEtcdLost = false
  private var backoff = Backoff()
  /// Whether the lease may have ended. The next renewal finds that out.
  private var isLeaseInDoubt = false
  private let wakeUps: AsyncStream<Void>
  private let wakeUp: AsyncStream<Void>.Continuation

  private static let stepInterval = Duration.seconds(1)
  private static let watchLimit = Duration.seconds(60)
  /// How often etcd gets counts that are only for display. Each write stays in etcd's history until its compaction.
  private static let countInterval = Duration.seconds(10)
  /// How long a host waits for stores that are retried later, if another one was migrated. Others may use such a store
  /// for days. An error that may pass has been repeated often enough by then to count as a failure.
  private static let deferredPatience = Duration.seconds(300)

  /// A coordinator that has not begun.
  public init(
    _ settings: CoordinatorSettings, host: String, daemon: DaemonLink, etcd: EtcdClient,
    log: CoordinatorLog
  ) {
    self.settings = settings
    self.host = host
    self.daemon = daemon
    self.etcd = etcd
    self.log = log
    fleet = Fleet(etcd)
    leader = FleetLeader(fleet, host: host)
    (wakeUps, wakeUp) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Works until the task is cancelled. Then it revokes all permissions, and ends its lease.
  public func run() async {
    log.write(
      .started, "started for the host '\(host)', with \(settings.endpoints.count) members of etcd")
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [wakeUp] in
        while !Task.isCancelled {
          wakeUp.yield()
          await Self.rest()
        }
      }
      group.addTask { await self.watchRollouts() }
      for await _ in wakeUps { await step() }
      group.cancelAll()
    }
    // This task is cancelled by now, and a request of a cancelled task fails at once.
    await Task { await self.end() }.value
  }

  /// Waits for one step. A sleep fails only when the task is cancelled, which ends the loop that rests.
  private static func rest() async { try? await Task.sleep(for: stepInterval) }

  private func end() async {
    log.write(.stopping, "stopped; the slots of this host are free")
    do throws(InstarError) {
      _ = try await daemon.permit([], decidedAt: .now)
      // Only now: another host may take the slot at once.
      if let session { try await etcd.revokeLease(session.lease) }
    } catch {
      // The permissions and the lease end by themselves.
      log.note(error.code == .coordinationFailed ? .etcdLost : .daemonLost, error)
    }
  }

  /// While this host has a slot, starts a step at once after each change of a rollout, such as a halt. Without a slot,
  /// steps read the rollouts when they renew the lease: watches of all waiting hosts would be most of a fleet's load on
  /// etcd.
  private func watchRollouts() async {
    while !Task.isCancelled {
      // Without etcd each attempt is a new connection. The steps try it after growing times.
      if holdsSlot, !isEtcdLost {
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await self.watchUntilEnd() }
          group.addTask { await self.waitWhileSlotIsHeld() }
          await group.next()
          group.cancelAll()
        }
        isReadDue = true
      }
      // etcd may end watches at once, such as one from a revision that it has compacted.
      await Self.rest()
    }
  }

  private func watchUntilEnd() async {
    do throws(InstarError) {
      try await etcd.watch(
        below: FleetKeys.rollouts, from: revision + 1, limit: Self.watchLimit
      ) { await self.readSoon() }
    } catch {
      // The steps report that etcd is lost.
    }
  }

  private func waitWhileSlotIsHeld() async {
    while holdsSlot, !Task.isCancelled {
      await Self.rest()
    }
  }

  private func readSoon() {
    isReadDue = true
    // etcd answers: a halt waits for no further attempt.
    backoff.succeed()
    wakeUp.yield()
  }

  private var rollouts: [Fleet.Revised] { parts.values.compactMap(\.rollout) }

  private var holdsSlot: Bool { parts.values.contains { $0.slot != nil } }

  // MARK: One step

  /// Performs one step.
  func step() async {
    await sendPermissions()
    guard backoff.isDue(.now) else { return finishAlone() }
    do throws(InstarError) {
      try await workWithFleet()
      backoff.succeed()
      isEtcdLost = false
      if log.forget(.etcdLost) { log.write(.etcdReached, "reached etcd again") }
    } catch {
      if error.code == .coordinationFailed {
        isEtcdLost = true
        isLeaseInDoubt = true
        backoff.fail(.now, longest: settings.lease / 3)
      }
      log.note(error.code == .coordinationFailed ? .etcdLost : .documentRefused, error)
      finishAlone()
    }
    log.show(status)
    // A change that this step has found, such as a halt, takes effect at once.
    if Self.timeless(permissions(at: .now)) != permitted { await sendPermissions() }
  }

  /// Sends the permissions to instard.
  ///
  /// - Returns: The progress of instard; `nil` if it cannot be reached.
  @discardableResult
  private func sendPermissions() async -> Manager.PermitReply? {
    let now = ContinuousClock.now
    let permissions = permissions(at: now)
    do throws(InstarError) {
      let reply = try await daemon.permit(permissions, decidedAt: now)
      permitted = Self.timeless(permissions)
      lastReply = (.now, reply)
      if log.forget(.daemonLost) { log.write(.daemonReached, "reached instard again") }
      return reply
    } catch {
      log.note(.daemonLost, error)
      return nil
    }
  }

  private static func timeless(_ permissions: [Manager.Permission]) -> Set<Manager.Permission> {
    Set(
      permissions.map {
        Manager.Permission(plan: $0.plan, version: $0.version, until: nil, failures: $0.failures)
      })
  }

  /// With the policy `finishWave`, ends this host's part in a rollout while etcd is lost.
  private func finishAlone() {
    guard settings.onLoss == .finishWave, let reply = lastReply?.reply, reply.isCounted else {
      return
    }
    for rollout in rollouts.map(\.rollout) where parts[rollout.plan]?.slot != nil {
      let work = HostWork(
        reply, rollout, reports[rollout.id]?.result ?? newResult(of: rollout))
      if isDone(work, rollout) {
        parts[rollout.plan]?.returnSlot()
      }
    }
  }

  /// The status of the host, in one line.
  private var status: String {
    if isEtcdLost { return "cannot reach etcd" }
    if lastReply.map({ .now - $0.at >= settings.lease }) ?? true { return "cannot reach instard" }
    guard session?.isRegistered == true else { return "registering this host as '\(host)'" }
    let standings = rollouts.map(\.rollout).sorted { $0.plan < $1.plan }.map { rollout in
      "\(rollout.plan) to \(rollout.version) \(rollout.standing), \(standing(in: rollout))"
    }
    return "registered as '\(host)'; "
      + (standings.isEmpty ? "no rollouts" : standings.joined(separator: "; "))
  }

  /// How far this host is in a rollout: "this host waits for a slot".
  private func standing(in rollout: FleetRollout) -> String {
    let result = reports[rollout.id]?.result
    if let result, result.state == .verified { return "this host is done" }
    if parts[rollout.plan]?.slot != nil { return "this host has a slot" }
    if let obstacle = result?.obstacle { return obstacle }
    if result == nil { return "this host does not take part" }
    if rollout.hasReached(host) { return "this host waits for a slot" }
    return "this host is in wave \(rollout.wave(of: host))"
  }

  /// The permissions of instard, by plan.
  private func permissions(at now: ContinuousClock.Instant) -> [Manager.Permission] {
    rollouts.sorted { $0.rollout.plan < $1.rollout.plan }.compactMap { revised in
      let rollout = revised.rollout
      guard rollout.hasReached(host), rollout.state == .done || hasSlot(of: rollout) else {
        return nil
      }
      var until = rolloutsRead.map { $0 + settings.lease } ?? now
      if rollout.state == .running, let session {
        until = min(until, session.renewed + settings.lease)
      }
      let isHeld = isEtcdLost && settings.onLoss == .finishWave && rollout.state == .running
      guard isHeld || until > now else { return nil }
      let hasLimit = rollout.state == .running && rollout.allowedFailures != nil
      return Manager.Permission(
        plan: rollout.plan, version: rollout.version,
        until: isHeld ? nil : until.secondsSinceBoot,
        failures: hasLimit ? reports[rollout.id]?.result?.failed ?? 0 : nil)
    }
  }

  /// Whether this host has a slot that the rollout counts. One of a former rollout with more slots is only kept until
  /// the runs of the plan have ended.
  private func hasSlot(of rollout: FleetRollout) -> Bool {
    parts[rollout.plan]?.slot.map { $0 < rollout.slots } ?? false
  }

  private func workWithFleet() async throws(InstarError) {
    let now = ContinuousClock.now
    guard let seen = lastReply, now - seen.at < settings.lease else {
      // Nobody works here. The slots go to other hosts.
      if let lease = session?.lease {
        dropSession()
        try await etcd.revokeLease(lease)
      }
      return
    }
    try await keepSession(now)
    try await register(seen.reply, now)
    if isReadDue || rolloutsRead.map({ now - $0 >= settings.lease / 3 }) ?? true {
      try await readRollouts(now)
    }
    guard session?.isRegistered == true else { return }
    for plan in parts.keys.sorted() {
      guard let rollout = parts[plan]?.rollout else {
        // Somebody deleted it, or a newer release wrote it.
        try await giveBackSlot(ofPlan: plan)
        continue
      }
      try await takePart(in: rollout, seen.reply, now)
    }
    guard let lease = session?.lease else { return }
    var leader = leader
    defer { self.leader = leader }
    for changed in try await leader.lead(rollouts, lease: lease, now) {
      follow(changed)
    }
  }

  // MARK: The lease and the registration

  private func keepSession(_ now: ContinuousClock.Instant) async throws(InstarError) {
    if let current = session {
      guard isLeaseInDoubt || now - current.renewed >= settings.lease / 3 else { return }
      if try await etcd.renewLease(current.lease) != nil {
        session?.renewed = now
        isLeaseInDoubt = false
        return
      }
      log.write(.leaseLost, "the lease of this host has ended; its slots are free")
      dropSession()
    }
    let seconds = Int64(settings.lease.inSeconds.rounded(.up))
    session = Session(lease: try await etcd.grantLease(seconds: seconds), renewed: now)
    isLeaseInDoubt = false
  }

  private func dropSession() {
    session = nil
    registration = nil
    for plan in parts.keys {
      parts[plan]?.slot = nil
      parts[plan]?.returning = nil
    }
    leader.stop()
  }

  private func register(
    _ reply: Manager.PermitReply, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    guard var current = session, reply.isCounted else { return }
    let new = HostRegistration(
      release: Release.version,
      plans: reply.rollouts.map {
        HostRegistration.Plan(
          plan: $0.plan, version: $0.version, stores: $0.stores,
          behind: $0.waiting + $0.admitted + $0.deferred)
      })
    let isOld = registeredAt.map { now - $0 >= settings.lease / 3 } ?? true
    guard !current.isRegistered || new != registration && isOld else { return }
    let key = FleetKeys.host(host)
    // The key is absent, or has this lease (an attempt whose answer was lost). Otherwise this host's earlier process
    // has it until its lease ends, or another host uses the name.
    let conditions: [EtcdCondition] =
      current.isRegistered
      ? [.hasLease(key, current.lease)] : [.isAbsent(key), .hasLease(key, current.lease)]
    let change = EtcdChange.put(key, try Fleet.encoded(new), lease: current.lease)
    var isWritten = false
    for condition in conditions where !isWritten {
      isWritten = try await etcd.transaction(if: [condition], [change]) != nil
    }
    guard isWritten else {
      if current.isRegistered {
        // Somebody deleted it.
        session?.isRegistered = false
      } else {
        noteTakenName(now)
      }
      return
    }
    if !current.isRegistered { log.write(.hostRegistered, "registered this host as '\(host)'") }
    current.isRegistered = true
    session = current
    registration = new
    registeredAt = now
    nameTakenSince = nil
    log.forget(.hostNameTaken)
  }

  private func noteTakenName(_ now: ContinuousClock.Instant) {
    let since = nameTakenSince ?? now
    nameTakenSince = since
    guard now - since > settings.lease * 2 else { return }
    log.note(
      .hostNameTaken,
      InstarError(
        .rolloutRefused, "cannot register this host as '\(host)'",
        cause: "another host is registered under this name",
        next: "give each host its own 'coordinator.host' in instard.yml, then run: "
          + "systemctl restart instar-coordinator"))
  }

  // MARK: Rollouts

  private func readRollouts(_ now: ContinuousClock.Instant) async throws(InstarError) {
    isReadDue = false
    let read: (rollouts: [Fleet.Revised], unreadable: [InstarError], revision: Int64)
    do throws(InstarError) {
      read = try await fleet.rollouts()
    } catch {
      isReadDue = true
      throw error
    }
    log.forget(.documentRefused, but: read.unreadable)
    for error in read.unreadable { log.note(.documentRefused, error) }
    revision = read.revision
    rolloutsRead = now
    let plans = Set(read.rollouts.map(\.rollout.plan))
    for plan in parts.keys where !plans.contains(plan) { parts[plan]?.rollout = nil }
    for rollout in read.rollouts { follow(rollout) }
    let known = Set(rollouts.map(\.rollout.id))
    reports = reports.filter { known.contains($0.key) }
  }

  /// Stores the rollout as it was just read, and logs what changed in it.
  private func follow(_ new: Fleet.Revised) {
    let old = parts[new.rollout.plan]?.rollout
    // Another rollout is never the older one: an etcd that began empty counts revisions from 1 again.
    let isOther = old.map { $0.rollout.id != new.rollout.id } ?? true
    guard isOther || old.map({ $0.revision < new.revision }) ?? true else { return }
    parts[new.rollout.plan, default: PlanPart()].rollout = new
    if isOther { parts[new.rollout.plan]?.nextSlotAttempt = nil }
    let before = isOther ? nil : old?.rollout
    if let (event, line) = new.rollout.change(since: before) {
      log.write(event, line, plan: new.rollout.plan, wave: new.rollout.wave)
    }
  }

  private func newResult(of rollout: FleetRollout) -> HostResult {
    HostResult(
      wave: rollout.wave(of: host), stores: 0, at: Date().timeIntervalSince1970)
  }

  /// Takes or returns the slot, and reports the progress of this host.
  private func takePart(
    in revised: Fleet.Revised, _ reply: Manager.PermitReply, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    let rollout = revised.rollout
    guard rollout.state != .done else { return try await giveBackSlot(ofPlan: rollout.plan) }
    guard reply.isCounted else { return }
    guard let last = try await lastResult(of: rollout, reply) else { return }
    let work = HostWork(reply, rollout, last)
    let hasReached = rollout.hasReached(host)
    let isDone = hasReached && isDone(work, rollout)
    if hasReached, !isDone, work.obstacle == nil, parts[rollout.plan]?.slot == nil {
      try await takeSlot(of: revised, now)
    }
    var new = last
    new.stores = work.stores
    new.migrated = work.migrated
    new.failed = work.failed
    new.deferred = work.deferred
    new.lastError = work.failed > 0 ? work.lastError ?? last.lastError : nil
    new.obstacle = hasReached && !isDone ? work.obstacle : nil
    if hasSlot(of: rollout) { new.state = .migrating }
    if isDone { new.state = .verified }
    let isFormer = parts[rollout.plan]?.slot != nil && !hasSlot(of: rollout)
    let isOver = isDone || !hasReached || isFormer || work.obstacle != nil
    let returnsSlot = isOver && !Self.runs(rollout.plan, reply)
    // The counts with which a host returns its slot may be the last ones for days.
    let isFinal = returnsSlot && parts[rollout.plan]?.slot != nil && new != last
    if isFinal || isDue(new, after: last, of: rollout, now) {
      new.at = Date().timeIntervalSince1970
      // The condition: nobody changed the rollout since it was read, so no other one has replaced it.
      let isWritten = try await etcd.transaction(
        if: [.isUnchanged(FleetKeys.rollout(ofPlan: rollout.plan), since: revised.revision)],
        [.put(FleetKeys.result(rollout.id, host), try Fleet.encoded(new))])
      guard isWritten != nil else {
        isReadDue = true
        return
      }
      // Before instard gets a permission after a failure.
      if new.failed > last.failed, try await !countFailures(in: revised) { return }
      reports[rollout.id, default: HostReport()].result = new
      reports[rollout.id]?.writtenAt = now
      if new.state == .verified, last.state != .verified {
        log.write(
          .hostFinished,
          "finished the part of this host: \(new.migrated) migrated, \(new.failed) failed",
          plan: rollout.plan, wave: rollout.wave)
      }
    }
    // After the report: a wave must not end, and no other host begin, before the failures of this one count.
    if returnsSlot { try await giveBackSlot(ofPlan: rollout.plan) }
  }

  /// Whether etcd should have a result now. Counts of stores wait for a while, if they are all that changed.
  private func isDue(
    _ new: HostResult, after last: HostResult, of rollout: FleetRollout,
    _ now: ContinuousClock.Instant
  ) -> Bool {
    guard new != last else { return false }
    var counted = last
    counted.stores = new.stores
    counted.migrated = new.migrated
    counted.deferred = new.deferred
    let writtenAt = reports[rollout.id]?.writtenAt
    return new != counted || writtenAt.map { now - $0 >= Self.countInterval } ?? true
  }

  /// Halts the rollout if failures exceed its budget.
  ///
  /// - Returns: `false` where another host changed the rollout first. The failures count in the next step, and until
  ///   then instard starts no run.
  private func countFailures(in revised: Fleet.Revised) async throws(InstarError) -> Bool {
    let id = revised.rollout.id
    var known = reports[id]?.known ?? KnownResults()
    try await known.update(of: id, from: fleet)
    reports[id, default: HostReport()].known = known
    // Only the leader needs to know which hosts are gone. Here all count as living, and nothing ends too early.
    let hosts = Set(known.results.results.keys).union(known.results.unreadable)
    if let changed = try await fleet.advance(revised, known.results, living: hosts) {
      follow(changed)
      return true
    }
    let current = try await fleet.rollout(of: revised.rollout.plan)
    follow(current)
    return current.revision == revised.revision || current.rollout.state != .running
  }

  /// Whether the part of this host is over.
  private func isDone(_ work: HostWork, _ rollout: FleetRollout) -> Bool {
    guard work.isDeferred else {
      reports[rollout.id]?.deferredSince = nil
      return work.isDone
    }
    let since = reports[rollout.id]?.deferredSince ?? .now
    reports[rollout.id, default: HostReport()].deferredSince = since
    return .now - since >= Self.deferredPatience
  }

  /// What this host last reported; `nil` if it has no part in the rollout.
  private func lastResult(
    of rollout: FleetRollout, _ reply: Manager.PermitReply
  ) async throws(InstarError) -> HostResult? {
    let own = reports[rollout.id]
    if let known = own?.result { return known }
    if own?.isMissing != true {
      switch try await fleet.result(of: host, in: rollout.id) {
      case .result(let result):
        reports[rollout.id, default: HostReport()].result = result
        return result
      case .unreadable(let error):
        // Nothing counts twice: the numbers are those of instard, and go to the same key.
        log.note(.documentRefused, error, plan: rollout.plan)
      case .missing: break
      }
      reports[rollout.id, default: HostReport()].isMissing = true
    }
    let hasStores = reply.rollouts.contains {
      $0.plan == rollout.plan && $0.version == rollout.version && $0.stores > 0
    }
    // A host that came later has its turn too.
    return hasStores ? newResult(of: rollout) : nil
  }

  private func takeSlot(
    of revised: Fleet.Revised, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    let rollout = revised.rollout
    guard let lease = session?.lease,
      parts[rollout.plan]?.nextSlotAttempt.map({ $0 <= now }) ?? true
    else { return }
    let taken = try await etcd.entries(below: FleetKeys.slots(ofPlan: rollout.plan)).entries
    // An attempt whose answer was lost.
    if let own = taken.first(where: { $0.lease == lease }), let number = Self.number(of: own) {
      parts[rollout.plan]?.slot = number
      parts[rollout.plan]?.returning = nil
      return
    }
    let free = rollout.freeSlots(taken: Set(taken.compactMap(Self.number)))
    if let number = free.randomElement() {
      let key = FleetKeys.slot(ofPlan: rollout.plan, number)
      // Until the answer is here, etcd may have given the slot to this host.
      parts[rollout.plan]?.returning = number
      let revision = try await etcd.transaction(
        if: [
          .isUnchanged(FleetKeys.rollout(ofPlan: rollout.plan), since: revised.revision),
          .isAbsent(key), .hasLease(FleetKeys.host(host), lease),
        ], [.put(key, Data(host.utf8), lease: lease)])
      parts[rollout.plan]?.returning = nil
      if revision != nil {
        parts[rollout.plan]?.slot = number
        parts[rollout.plan]?.nextSlotAttempt = nil
        log.write(
          .slotTaken, "took slot \(number + 1) of \(rollout.slots) in wave \(rollout.wave)",
          plan: rollout.plan, wave: rollout.wave)
        return
      }
      isReadDue = true
    }
    // The more hosts wait, the less often each asks: together they ask some hundred times a second.
    let spread = max(1, Double(rollout.hosts) / 1000)
    parts[rollout.plan]?.nextSlotAttempt = now + .seconds(Double.random(in: 0.5...2) * spread)
  }

  private static func number(of entry: EtcdEntry) -> Int? { Int(FleetKeys.name(of: entry.key)) }

  private func giveBackSlot(ofPlan plan: String) async throws(InstarError) {
    parts[plan]?.returnSlot()
    guard let number = parts[plan]?.returning, let lease = session?.lease else { return }
    // First revoke the permission, because another host may take the slot at once. A run may have begun before that.
    guard let reply = await sendPermissions(), !Self.runs(plan, reply) else { return }
    let key = FleetKeys.slot(ofPlan: plan, number)
    let isDeleted = try await etcd.transaction(if: [.hasLease(key, lease)], [.delete(key)]) != nil
    parts[plan]?.returning = nil
    if isDeleted { log.write(.slotReturned, "returned slot \(number + 1)", plan: plan) }
  }

  /// Whether runs of a plan are in progress. A store whose plan is not known yet may be one of its stores.
  private static func runs(_ plan: String, _ reply: Manager.PermitReply) -> Bool {
    reply.running[plan] != nil || reply.running[""] != nil
  }
}
