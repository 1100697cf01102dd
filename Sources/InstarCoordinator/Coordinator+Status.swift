import InstarConfiguration

/// What systemd shows of the host.
extension Coordinator {
  /// The status of the host, in one line.
  var status: String {
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
}
