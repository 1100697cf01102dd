extension FleetRollout {
  /// What is known of the hosts of a rollout at one time.
  struct Hosts {
    /// What each host reported, by name.
    var results: [String: HostResult]
    /// The hosts whose report cannot be read. No wave ends without them.
    var unreadable: Set<String> = []
    /// The hosts whose lease has not ended.
    var living: Set<String>
    /// The soak is over, or none was begun.
    var isSoaked: Bool
  }

  /// The rollout after its next change; `nil` while there is nothing to decide.
  ///
  /// A host that is gone counts as neither migrated nor failed, and no wave waits for it. But a wave ends only if one
  /// of its hosts is verified: a plugin that takes whole hosts down never gets beyond its canary.
  func next(_ hosts: Hosts) -> FleetRollout? {
    guard state == .running else { return nil }
    var next = self
    let failed = hosts.results.values.reduce(0) { $0 + $1.failed }
    if let allowed = allowedFailures, failed - forgivenFailures > allowed {
      let more = forgivenFailures > 0 ? " more" : ""
      next.state = .halted
      next.why =
        "\(failed - forgivenFailures)\(more) stores failed across all hosts, and the budget is "
        + (budget ?? "\(allowed)")
      return next
    }
    if isSoaking {
      // A host that was gone when its wave ended may be back meanwhile, with stores that it has not migrated.
      guard hosts.isSoaked, isVerified(hosts) else { return nil }
      next.isSoaking = false
      next.wave += 1
      return next
    }
    guard isVerified(hosts) else { return nil }
    if wave >= waves {
      next.state = .done
    } else if soakSeconds > 0 {
      next.isSoaking = true
    } else {
      next.wave += 1
    }
    return next
  }

  /// Whether the wave that is open has ended.
  private func isVerified(_ hosts: Hosts) -> Bool {
    var ofWave = 0
    var verified = 0
    for name in hosts.unreadable where wave(of: name) <= wave {
      if hosts.living.contains(name) { return false }
      if wave(of: name) == wave, hosts.results[name] == nil { ofWave += 1 }
    }
    for (name, result) in hosts.results {
      let wave = wave(of: name)
      guard wave <= self.wave else { continue }
      if result.state != .verified, hosts.living.contains(name) { return false }
      guard wave == self.wave else { continue }
      ofWave += 1
      if result.state == .verified { verified += 1 }
    }
    return verified > 0 || ofWave == 0
  }
}
