import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire

/// The status of an instard, with commands that reach the same one.
struct ShownStatus: CommandOutput {
  var status: Manager.Status
  /// What each command needs for that, such as " --socket 'PATH'".
  var option: String

  var lines: [ConsoleLine] { status.lines(option: option) }

  func encode(to encoder: any Encoder) throws {
    let same = CommandText.Completion.instard(option: option)
    var status = status
    for index in status.failures.indices { status.failures[index].error?.completeNext(same) }
    for index in status.folders.indices { status.folders[index].error?.completeNext(same) }
    for index in status.refusedPlugins.indices {
      status.refusedPlugins[index].error.completeNext(same)
    }
    try status.encode(to: encoder)
  }
}

extension Manager.Status {
  fileprivate func lines(option: String) -> [ConsoleLine] {
    var lines: [ConsoleLine] = [
      "instard \(version) is \(phase.rawValue) (pid \(pid), started \(Quantity.time(secondsSince1970: startedAt)))"
    ]
    if let pause {
      lines.append(
        "  paused   by \(pause.by) at \(Quantity.time(secondsSince1970: pause.since))"
          + (pause.why.map { ": \($0)" } ?? ""))
      lines.append("           to go on, run: instarctl resume\(option)")
    }
    for folder in folders {
      lines.append(
        "  folder   \(folder.folder)\(folder.window)\(folder.error.map { ": \($0.cause)" } ?? "")")
      if let warning = folder.warning { lines.append("           \(warning)") }
    }
    lines += plugins.map { "  plugin   \($0)" }
    if plugins.isEmpty, refusedPlugins.isEmpty, let pluginFolders {
      let places = pluginFolders.map { "'\($0)'" }.joined(separator: " or ")
      lines.append("  plugin   none in \(places)")
    }
    for plugin in refusedPlugins {
      lines.append(
        "  refused  \(plugin.plugin): \(plugin.error.cause) [\(plugin.error.code.rawValue)]")
      if let next = plugin.error.next {
        lines.append("           \(CommandText.completing(next, .instard(option: option)))")
      }
    }
    lines.append("  stores   \(stores)\(Self.counts(namedStates, after: ": "))")
    let work = activities.filter { $0.key != Manager.Activity.idle.rawValue }
    let left = secondsLeft.map { ", about \(Quantity.roughDuration(seconds: $0)) left" } ?? ""
    lines.append("  work     \(work.isEmpty ? "nothing to do" : Self.counts(work) + left)")
    for rollout in rollouts { lines += rollout.lines(option: option) }
    for run in runs {
      let progress = run.progress.map { ": stage \(run.stage ?? ""): \($0.text)" } ?? ""
      lines.append("  running  \(run.store)\(progress)")
    }
    let advice = adviceOnDamage
    for store in failures {
      let next = store.error == nil ? advice[store.store] : store.error?.next
      lines += Self.failure(
        store, next.map { CommandText.completing($0, .instard(option: option)) })
    }
    if failures.count == Self.failureLimit {
      lines += [
        "  More stores may have failed. To list them, run: instarctl stores --activity quarantined\(option)",
        "                                            and: instarctl stores --activity retrying\(option)",
      ]
    }
    return lines
  }

  private var namedStates: [String: Int] {
    var named: [String: Int] = [:]
    for (state, count) in states { named[StoreState(rawValue: state)?.text ?? state] = count }
    return named
  }

  /// "150 behind, 9800 current".
  private static func counts(_ counts: [String: Int], after start: String = "") -> String {
    guard !counts.isEmpty else { return "" }
    return start
      + counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
  }

  /// - Parameter next: What to do about it.
  private static func failure(_ store: Manager.Store, _ next: String?) -> [ConsoleLine] {
    guard let error = store.error else { return unusable(store, next) }
    var lines: [ConsoleLine] = [
      "  failed   \(store.store): \(error.cause) [\(error.code.rawValue)]"
    ]
    if let seconds = store.secondsToRetry {
      lines.append(
        "           instard retries in \(Quantity.duration(microseconds: Int64(seconds * 1_000_000)))"
      )
    } else if let next {
      lines.append("           \(next)")
    }
    return lines
  }
}

extension Manager.Status {
  /// What to do about each damaged store, with the state folder of this instard; empty where that is not known.
  fileprivate var adviceOnDamage: [String: String] {
    let damaged = failures.filter { $0.error == nil && $0.state == .corrupt }.map(\.store)
    guard !damaged.isEmpty, let stateFolder else { return [:] }
    let folder = StateFolder(
      reading: stateFolder, defaults: ServiceConfiguration.defaultStateFolders)
    return folder.adviceOnDamage(of: damaged)
  }

  /// "unusable a.store: corrupt: the file is truncated".
  private static func unusable(_ store: Manager.Store, _ next: String?) -> [ConsoleLine] {
    guard let state = store.state else { return [] }
    let reason = store.reason.map { ": \($0)" } ?? ""
    let line: ConsoleLine = "  unusable \(store.store): \(state.text)\(reason)"
    return [line] + (next.map { ["           \($0)"] } ?? [])
  }
}

extension Manager.Store {
  static var table: Table {
    Table(
      .left, .left, .left, .left, .right, .left, .left,
      header: ["STORE", "STATE", "VERSION", "PLAN", "WAVE", "ACTIVITY", "REASON"])
  }

  func add(to table: inout Table) {
    table.add(
      "\(store)", "\(state?.text ?? "")", "\(version?.description ?? "")", "\(plan ?? "")",
      "\(wave.map(String.init) ?? "")", "\(activity.rawValue)",
      "\(error?.cause ?? reason ?? (state == .unknown ? "no plugin knows the store" : ""))")
  }
}

extension Manager.Folder {
  /// ", window closed until 2026-11-21 22:00:00 UTC".
  fileprivate var window: String {
    guard let windowIsOpen else { return "" }
    let until =
      windowChangesAt.map { " until \(Quantity.time(secondsSince1970: $0))" }
      ?? (windowIsOpen ? "" : "; it never opens again")
    return ", window \(windowIsOpen ? "open" : "closed")\(until)"
  }
}

extension Manager.Rollout {
  /// "BoxPlan to 2.0.0: wave 1 of 2; 12 of 40 stores migrated, 28 waiting".
  var summary: String { "\(plan) to \(version): \(place); \(counts)" }

  /// - Parameter option: What each command needs to reach the same instard.
  func lines(option: String) -> [ConsoleLine] {
    var lines: [ConsoleLine] = ["  rollout  \(summary)"]
    if let halt {
      lines.append(
        "           halted by \(halt.by) at \(Quantity.time(secondsSince1970: halt.since))"
          + (halt.why.map { ": \($0)" } ?? ""))
      lines += failures.map { "           failed: \($0)" }
      if failed > failures.count {
        lines.append(
          "           to list all, run: instarctl stores --turn failed --plan \(plan)\(option)"
        )
      }
      lines.append("           to go on, run: instarctl resume --plan \(plan)\(option)")
    }
    if let closedWindow {
      lines.append("           waits until the window of '\(closedWindow)' opens")
    }
    if unapproved > 0 {
      let stores = unapproved.counted("store waits", "stores wait")
      lines.append(
        "           \(stores) for an approval: instarctl approve --plan \(plan)\(option)")
    }
    return lines
  }

  private var place: String {
    guard wave > 0 else { return "counting the stores" }
    // An earlier release does not send it. Without it, only a rollout in its last wave can be known to be finished.
    let isOver =
      isFinished ?? (wave == waves && stores > 0 && admitted + deferred + waiting == 0)
    if isOver, halt == nil { return "finished" }
    let next = secondsToNextWave.map {
      ", the next one opens in \(Quantity.duration(microseconds: Int64($0 * 1_000_000)))"
    }
    return "wave \(wave) of \(waves)\(next ?? "")"
  }

  /// "12 of 40 stores migrated, 1 failed, 27 waiting".
  private var counts: String {
    let others = [
      (failed, "failed"), (admitted, "running or queued"), (deferred, "retrying"),
      (waiting, "waiting"),
    ]
    return
      (["\(migrated) of \(stores.counted("store")) migrated"]
      + others.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }).joined(separator: ", ")
  }
}
