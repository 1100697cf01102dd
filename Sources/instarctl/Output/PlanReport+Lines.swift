import InstarSchema
import InstarWire

extension PlanReport: CommandOutput {
  /// The report without its error.
  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(store)"]
    if let migration {
      let stages = migration.stages.count.counted("stage")
      lines.append(
        "  \(migration.plan): \(migration.from) → \(migration.to), \(stages)"
      )
      for (index, stage) in migration.stages.enumerated() {
        let label = stage.label.map { "  \($0)" } ?? ""
        lines.append("  \(index + 1)  \(stage.from) → \(stage.to)  \(stage.kind.rawValue)\(label)")
        lines += stage.planned.flatMap(\.lines)
      }
      if migration.stages.contains(where: { $0.planned.contains { $0.kind == .destructive } }) {
        lines.append("  ! removes rows, values or links; only the backup keeps them")
      }
      lines += (invariants ?? []).map { "  invariant: \($0.name)" }
      lines += migration.notes.map { "  \(Finding.Severity.note.styled): \($0)" }
    } else if probe.state == .current {
      lines.append("  nothing to do: at \(probe.version?.description ?? "the last version")")
    } else if error != nil {
      lines.append("  no migration")
    } else {
      lines.append("  no migration: the store is \(probe.state.styled)")
      if let reason = probe.reason { lines.append("  \(reason)") }
    }
    return lines + findings.flatMap(\.lines)
  }
}

extension Finding {
  var lines: [ConsoleLine] {
    let code = code.map { "   [\($0.rawValue)]" } ?? ""
    return ["  \(severity.styled): \(message)\(code)"] + (fix.map { ["    fix: \($0)"] } ?? [])
  }
}

extension PlannedChange {
  /// The change, marked where it loses something, and below it the statements that make it.
  fileprivate var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = [
      kind == .destructive ? "     ! \(Style.bad("\(reason)"))" : "       \(reason)"
    ]
    for statement in statements {
      let comment = "-- \(statement.position): \(statement.comment)"
      lines += ConsoleLine.lines(of: comment + "\n" + statement.sql).map {
        "         \(Style.faint($0))"
      }
    }
    return lines
  }
}

extension Finding.Severity {
  fileprivate var styled: ConsoleLine {
    switch self {
    case .error: Style.bad("error")
    case .warning: Style.warning("warning")
    case .note: Style.faint("note")
    }
  }
}
