import InstarSchema
import InstarWire

extension RunReport: CommandOutput {
  /// The report without its error.
  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(store)"]
    let took = "in \(Quantity.duration(microseconds: durationMicroseconds))"
    switch result {
    case .migrated, .restored:
      lines.append("  \(result.styled): \(versions) \(took)")
    case .rehearsed:
      lines.append("  \(result.styled): \(versions) \(took); the store was not changed")
    case .current:
      lines.append("  \(result.styled): nothing to do\(to.map { ", at \($0)" } ?? "")")
    case .refused, .failed, .busy:
      lines.append("  \(result.styled)")
    }
    for stage in stages {
      let duration = Quantity.duration(microseconds: stage.durationMicroseconds)
      let label = stage.label.map { ", \($0)" } ?? ""
      lines.append(
        "  stage   \(stage.from) → \(stage.to), \(stage.kind.rawValue)\(label), \(duration)")
    }
    var counts = Table(.left, .right, .left, .right, .left)
    for entity in entities {
      counts.add(
        "\(entity.name)", count(entity.rowsBefore), "→", count(entity.rowsAfter), "rows")
    }
    for relationship in relationships {
      counts.add(
        "\(relationship.name)", count(relationship.linksBefore), "→",
        count(relationship.linksAfter), "links")
    }
    lines += counts.lines(indent: "  ")
    lines += rehearsal.map(spaceLines) ?? []
    lines += (rehearsal?.wholeFetches ?? []).map { "  note    \($0.sentence); \($0.advice)" }
    if let cutover { lines.append("  cutover \(cutover == .exchange ? "exchange" : "write-back")") }
    if let backup { lines.append("  backup  \(backup)") }
    if let backupCopy { lines.append("  copy    \(backupCopy)") }
    lines += (invariants ?? []).map { "  holds   \($0)" }
    lines += notes.map { "  note    \($0)" }
    lines += (leftovers ?? []).map { "  note    could not remove '\($0)'" }
    return lines
  }

  /// The ledger's runs, one a line.
  static func table(of reports: [RunReport]) -> [ConsoleLine] {
    var table = Table(
      .left, .left, .left, .left, .left, .right, .left,
      header: ["RUN", "STARTED", "RESULT", "VERSIONS", "CODE", "TOOK", "STORE"])
    for report in reports {
      table.add(
        "\(report.run)", "\(Quantity.time(secondsSince1970: report.startedAt))",
        "\(report.result.rawValue)",
        "\(report.versions)", "\(report.error?.code.rawValue ?? "")",
        "\(Quantity.duration(microseconds: report.durationMicroseconds))", "\(report.store)")
    }
    return table.lines()
  }

  private func spaceLines(of rehearsal: Rehearsal) -> [ConsoleLine] {
    var lines: [ConsoleLine] = []
    if let bytes, let after = rehearsal.cloneBytes {
      lines.append("  size    \(Quantity.bytes(bytes)) → \(Quantity.bytes(after))")
    }
    if let needed = rehearsal.neededBytes {
      lines.append(
        "  space   the migration needs \(Quantity.bytes(needed)) of free space beside the store")
    }
    return lines
  }

  private var versions: String {
    [from, to].compactMap { $0?.description }.joined(separator: " → ")
  }

  private func count(_ count: Int?) -> ConsoleLine { "\(count.map(String.init) ?? "-")" }
}

extension RunReport.Result {
  fileprivate var styled: ConsoleLine {
    switch self {
    case .migrated, .restored, .rehearsed, .current: Style.good("\(rawValue)")
    case .busy: Style.warning("\(rawValue)")
    case .refused, .failed: Style.bad("\(rawValue)")
    }
  }
}

extension RecoveryReport {
  var line: ConsoleLine {
    switch outcome {
    case .discarded where leftovers != nil:
      "\(leftoversInWords ?? "")"
    case .discarded where backup != nil:
      "discarded the interrupted run \(run): another process has changed '\(store)' since; backup kept at '\(backup ?? "")'"
    case .discarded:
      "discarded the interrupted run \(run): '\(store)' is unchanged"
    case .finished:
      "finished the interrupted run \(run): '\(store)' has its new content"
    case .storeMissing:
      "the run \(run) was interrupted, and its store '\(store)' no longer exists"
    }
  }
}
