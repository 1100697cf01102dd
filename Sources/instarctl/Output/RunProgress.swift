import InstarSchema
import InstarWire

/// Shows the steps of a run on standard error.
struct RunProgress: Sendable {
  /// Shows only what the plugin prints, and the SQL that was asked for.
  var isQuiet: Bool

  func show(_ event: RunEvent) {
    Console.note(lines(for: event))
  }

  private func lines(for event: RunEvent) -> [ConsoleLine] {
    switch event.step {
    case .sql:
      // Core Data's own form, so that filters for it work.
      let text = event.text ?? ""
      return ConsoleLine.lines(of: text.hasPrefix("CoreData: ") ? text : "CoreData: sql: \(text)")
    case .output:
      return ConsoleLine.lines(of: event.text ?? "").map { "plugin: \($0)" }
    default:
      return isQuiet ? [] : ["\(event.store): \(description(of: event))\(details(of: event))"]
    }
  }

  private func description(of event: RunEvent) -> String {
    switch event.step {
    case .started:
      let versions = [event.from, event.to].compactMap { $0?.description }
      return versions.isEmpty ? "started" : "started, \(versions.joined(separator: " → "))"
    case .locked: return "locked"
    case .backedUp: return "backed up"
    case .stageStarted: return "stage \(event.stage ?? "") started"
    case .stageFinished: return "stage \(event.stage ?? "") finished"
    case .verified: return "verified"
    case .cutOver:
      return event.cutover == .exchange ? "exchanged for its clone" : "replaced by its clone"
    case .output, .sql: return ""
    }
  }

  private func details(of event: RunEvent) -> String {
    var parts: [String] = []
    if let rows = event.rows { parts.append("\(rows) rows") }
    if let bytes = event.bytes { parts.append(Quantity.bytes(bytes)) }
    if let time = event.durationMicroseconds {
      parts.append(Quantity.duration(microseconds: time))
    }
    return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
  }
}
