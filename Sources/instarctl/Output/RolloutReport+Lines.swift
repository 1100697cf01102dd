import InstarWire

extension RolloutReport: CommandOutput {
  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(plan) to \(version) is \(state): \(place); \(counts)"]
    if let why { lines.append("  \(why)") }
    if state == "halted" || state == "paused" {
      lines.append("  to go on, run: instarctl rollout resume --plan \(plan)")
    }
    guard !hosts.isEmpty else { return lines }
    var table = Table(
      .left, .right, .left, .right, .right, .right, .right, .left,
      header: ["HOST", "WAVE", "STATE", "STORES", "MIGRATED", "FAILED", "LATER", "PROBLEM"])
    for host in hosts {
      table.add(
        "\(host.host)", "\(host.wave)", "\(host.state)", "\(host.stores)", "\(host.migrated)",
        "\(host.failed)", "\(host.deferred)", "\(host.obstacle ?? host.lastError ?? "")")
    }
    return lines + table.lines(indent: "  ")
  }

  /// "wave 2 of 4 is open, 3 of 16 slots are taken".
  private var place: String {
    let wave =
      state == "done"
      ? "all \(waves) waves have ended"
      : "wave \(wave) of \(waves) \(isSoaking ? "has ended, and the next one opens later" : "is open")"
    return "\(wave), \(slotsTaken) of \(slots) slots are taken"
  }

  /// "12 of 40 stores migrated, 1 failed (2 may)".
  private var counts: String {
    let allowed = allowedFailures.map { " (\($0) may)" } ?? ""
    return "\(migrated) of \(stores) stores migrated, \(failed) failed\(allowed)"
  }
}
