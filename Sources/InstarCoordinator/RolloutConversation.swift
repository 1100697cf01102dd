import Foundation
import InstarConfiguration
public import InstarLinux
public import InstarSchema
package import InstarWire

/// Answers one request of `instarctl rollout`.
public struct RolloutConversation: Sendable {
  private let fleet: Fleet
  /// How long a watch without a change is quiet.
  private static let watchLimit = Duration.seconds(2)

  /// - Parameter etcd: What the rollouts are in.
  public init(_ etcd: EtcdClient) { fleet = Fleet(etcd) }

  /// Answers the request of a channel: once, or until the other side closes it.
  ///
  /// - Throws: the error of the channel. Other errors are in the reply.
  public func serve(_ channel: LineChannel) async throws(InstarError) {
    guard case .line(let line) = try channel.receive(deadline: .now + .seconds(10)) else { return }
    let request = try WireCoder.message(RolloutRequest.self, from: line)
    guard request.action == .watch else {
      return try channel.send(WireCoder.line(await reply(to: request)))
    }
    var last: RolloutReply?
    while true {
      if case .closed = try channel.receive(deadline: .now) { return }
      let reply = await reply(to: request)
      if reply != last {
        last = reply
        try channel.send(WireCoder.line(reply))
      }
      // Results have keys of their own, so a change of the documents alone would not do.
      // It fails only when the task is cancelled, which nobody does: the program ends with the channel.
      try? await Task.sleep(for: Self.watchLimit)
    }
  }

  private func reply(to request: RolloutRequest) async -> RolloutReply {
    do throws(InstarError) {
      switch request.action {
      case .show, .watch: return try await reports(of: request.plan)
      case .create:
        _ = try await fleet.begin(
          try Self.order(of: request), by: "\(request.by) on \(ProcessInfo.processInfo.hostName)")
      case .pause:
        _ = try await fleet.stop(
          try Self.plan(of: request), as: .paused, by: request.by, why: request.why)
      case .halt:
        _ = try await fleet.stop(
          try Self.plan(of: request), as: .halted, by: request.by, why: request.why)
      case .resume: _ = try await fleet.resume(try Self.plan(of: request))
      }
      return try await reports(of: request.plan)
    } catch {
      return RolloutReply(rollouts: nil, error: error)
    }
  }

  private static func plan(of request: RolloutRequest) throws(InstarError) -> String {
    if let plan = request.plan { return plan }
    throw InstarError(
      .protocolViolation, "cannot change a rollout", cause: "no plan is named",
      next: InstarError.adviceOnOtherVersion)
  }

  private static func order(of request: RolloutRequest) throws(InstarError) -> Fleet.Order {
    let plan = try plan(of: request)
    let steps = request.order.map { $0.steps.compactMap(RolloutSettings.Share.init) }
    guard let order = request.order, let steps, steps.count == order.steps.count else {
      throw InstarError(
        .protocolViolation, "cannot begin a rollout of '\(plan)'",
        cause: "the request has no order that this release knows",
        next: InstarError.adviceOnOtherVersion)
    }
    var result = Fleet.Order(plan: plan, steps: steps, slots: order.slots)
    result.version = order.version
    result.soak = .seconds(order.soakSeconds)
    result.budget = order.budget.flatMap(RolloutSettings.Share.init)
    return result
  }

  private func reports(of plan: String?) async throws(InstarError) -> RolloutReply {
    if let plan {
      return RolloutReply(rollouts: [try await fleet.report(fleet.rollout(of: plan))])
    }
    let (rollouts, unreadable, _) = try await fleet.rollouts()
    var reports: [RolloutReport] = []
    for rollout in rollouts { reports.append(try await fleet.report(rollout)) }
    return RolloutReply(rollouts: reports, error: unreadable.first)
  }
}

extension Fleet {
  /// What operators see of a rollout.
  package func report(_ revised: Revised) async throws(InstarError) -> RolloutReport {
    let rollout = revised.rollout
    let results = try await results(of: rollout.id)
    let living = try await livingHosts()
    let slots = try await etcd.entries(below: FleetKeys.slots(ofPlan: rollout.plan)).entries
    let holders = Set(slots.map { String(decoding: $0.value, as: UTF8.self) })
    var hosts = results.results.map { name, result in
      RolloutReport.Host(
        host: name, wave: rollout.wave(of: name),
        state: state(
          of: result, in: rollout, isLiving: living.contains(name),
          hasSlot: holders.contains(name)),
        stores: result.stores, migrated: result.migrated, failed: result.failed,
        deferred: result.deferred, lastError: result.lastError, obstacle: result.obstacle)
    }
    hosts += results.unreadable.map { name in
      let error = Self.unreadableResult(of: name, in: rollout.id)
      return RolloutReport.Host(
        host: name, wave: rollout.wave(of: name), state: "unreadable", stores: 0, migrated: 0,
        failed: 0, deferred: 0, lastError: "\(error.what): \(error.cause)", obstacle: nil)
    }
    return RolloutReport(
      id: rollout.id, plan: rollout.plan, version: rollout.version, state: rollout.state.rawValue,
      why: rollout.why, wave: rollout.wave, waves: rollout.waves, isSoaking: rollout.isSoaking,
      slots: rollout.slots, slotsTaken: slots.count, budget: rollout.budget,
      allowedFailures: rollout.allowedFailures, by: rollout.by, began: rollout.began,
      hosts: hosts.sorted { ($0.wave, $0.host) < ($1.wave, $1.host) })
  }

  /// How far a host is, in one word. A host that returned its slot before its part was over still reports `migrating`.
  private func state(
    of result: HostResult, in rollout: FleetRollout, isLiving: Bool, hasSlot: Bool
  ) -> String {
    if result.state == .verified { return result.state.rawValue }
    guard isLiving else { return "gone" }
    guard result.state == .migrating, !hasSlot else { return result.state.rawValue }
    return [.paused, .halted].contains(rollout.state)
      ? rollout.state.rawValue : HostResult.State.waiting.rawValue
  }
}
