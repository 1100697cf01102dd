import Foundation
import InstarSchema
import InstarWire

extension FleetReport: CommandOutput {
  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = [
      "fleet report of \(Quantity.time(secondsSince1970: madeAt))",
      "  ledger   \(ledgerText)",
    ]
    if totals.runs > 0 { lines += runLines }
    if let daemon {
      lines.append(
        "  instard  \(daemon.version) is \(daemon.phase.rawValue), started \(Quantity.time(secondsSince1970: daemon.startedAt))"
      )
      if let pause = daemon.pause {
        lines.append("  paused   by \(pause.by)\(pause.why.map { ": \($0)" } ?? "")")
      }
    }
    lines += storeLines
    for plan in plans { lines += plan.lines(option: option) }
    lines += failures.prefix(Self.failuresInText).flatMap(\.lines)
    if failures.count > Self.failuresInText {
      lines.append(
        "  \(failures.count - Self.failuresInText) more kinds of failures: instarctl report --json\(option)"
      )
    }
    lines += missing.map { Style.warning("  missing  \($0)") }
    return lines
  }

  private static let failuresInText = 10

  /// "812 runs from 2026-11-20 10:00:00 UTC to …, in '/var/lib/instar'".
  var ledgerText: String {
    let place = stateFolder.map { "in '\($0)'" } ?? "of instard"
    guard let first = totals.firstAt, let last = totals.lastAt else { return "no runs \(place)" }
    return "\(Quantity.runs(totals.runs)) from \(Quantity.time(secondsSince1970: first)) to "
      + "\(Quantity.time(secondsSince1970: last)), \(place)"
  }

  private var runLines: [ConsoleLine] {
    let results = RunReport.Result.allCases.compactMap { result in
      totals.results[result.rawValue].map { "\(Quantity.grouped($0)) \(result.rawValue)" }
    }
    var lines: [ConsoleLine] = ["  runs     \(results.joined(separator: ", "))"]
    if let durations {
      lines.append(
        "  migrated \(Quantity.grouped(totals.rows)) rows, \(Quantity.bytes(totals.bytes))")
      lines.append(
        "  took     median \(Self.duration(durations.median)), 90 % within \(Self.duration(durations.ninetyPercent)), "
          + "maximum \(Self.duration(durations.most))")
    }
    return lines
  }

  private var storeLines: [ConsoleLine] {
    guard daemon != nil else { return [] }
    let count = stores.map(\.stores).reduce(0, +)
    var lines: [ConsoleLine] = ["  stores   \(Quantity.grouped(count))"]
    for group in stores {
      lines.append(
        "           \(Quantity.grouped(group.stores)) \(group.state?.text ?? "not probed yet")\(group.plan.map { ", \($0)" } ?? "")"
      )
    }
    return lines
  }

  static func duration(_ seconds: Double) -> String {
    Quantity.duration(microseconds: Int64(seconds * 1e6))
  }
}

extension FleetReport.Plan {
  fileprivate func lines(option: String) -> [ConsoleLine] {
    // The daemon's own words, where it knows the rollout.
    if let progress { return progress.lines(option: option) }
    var lines: [ConsoleLine] = [
      "  plan     \(plan): \(Quantity.stores(migrated)) migrated, \(failed) failed, \(Quantity.runs(runs))"
    ]
    if let rollout {
      lines.append(
        "           rollout to \(rollout.version): \(rollout.isFinished ? "finished" : "wave \(rollout.wave)")"
      )
    }
    if let halt = rollout?.halt {
      lines.append(
        Style.bad("           halted by \(halt.by)\(halt.why.map { ": \($0)" } ?? "")"))
    }
    return lines
  }
}

extension FleetReport.Failure {
  fileprivate var lines: [ConsoleLine] {
    let solved = unsolved == 0 ? "all resolved since" : "\(unsolved) still unresolved"
    var lines: [ConsoleLine] = [
      Style.bad(
        "  failed, refused or not readable: \(Quantity.stores(stores)), \(solved): \(causeText)   [\(error.code.rawValue)]"
      )
    ]
    if let stage = error.stage { lines.append("           stage: \(stage)") }
    lines += examples.map { "           \($0)" }
    if stores > examples.count { lines.append("           and \(stores - examples.count) more") }
    return lines
  }
}

extension Quantity {
  /// "1 run", "12,345 runs".
  static func runs(_ count: Int) -> String { "\(grouped(count)) \(count.noun("run"))" }
  /// "1 store", "12,345 stores".
  static func stores(_ count: Int) -> String {
    "\(grouped(count)) \(count.noun("store"))"
  }
}
