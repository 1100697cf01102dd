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
/// The files `Coordinator+….swift` have the parts of a step. No other file changes the properties.
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
  let etcd: EtcdClient
  let fleet: Fleet
  let daemon: DaemonLink
  let settings: CoordinatorSettings
  let host: String
  let log: CoordinatorLog

  var session: Session?
  var registration: HostRegistration?
  var registeredAt: ContinuousClock.Instant?
  /// The time since which another host has the name of this host.
  var nameTakenSince: ContinuousClock.Instant?
  /// By plan. A part stays when its rollout is gone.
  var parts: [String: PlanPart] = [:]
  /// A time just before the rollouts were last read. Permissions are counted from it, so that they never end too late.
  var rolloutsRead: ContinuousClock.Instant?
  var isReadDue = true
  /// The revision of etcd at which the rollouts were read.
  var revision: Int64 = 0
  /// The reports of this host, by the identifier of the rollout.
  var reports: [String: HostReport] = [:]
  var leader: FleetLeader
  var lastReply: (at: ContinuousClock.Instant, reply: Manager.PermitReply)?
  /// The permissions that instard has last taken, without their time.
  var permitted: Set<Manager.Permission> = []
  var isEtcdLost = false
  var backoff = Backoff()
  /// Whether the lease may have ended. The next renewal finds that out.
  var isLeaseInDoubt = false
  private let wakeUps: AsyncStream<Void>
  let wakeUp: AsyncStream<Void>.Continuation

  private static let stepInterval = Duration.seconds(1)

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
  static func rest() async { try? await Task.sleep(for: stepInterval) }

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

  var rollouts: [Fleet.Revised] { parts.values.compactMap(\.rollout) }

  var holdsSlot: Bool { parts.values.contains { $0.slot != nil } }

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

}
