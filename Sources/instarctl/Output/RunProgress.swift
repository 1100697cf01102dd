import InstarSchema
import InstarWire

/// What happens in a run, on standard error as it happens.
struct RunProgress: Sendable {
  /// Steps are left out; what the plugin prints, and SQL that was asked for, are not.
  var isQuiet: Bool

  func show(_ event: RunEvent) {
    if let text = text(of: event) { Console.note(text) }
  }

  private func text(of event: RunEvent) -> String? {
    switch event.step {
    case .sql:
      // Core Data's own form, so that whoever filters for it finds it.
      return event.text.map { $0.hasPrefix("CoreData: ") ? $0 : "CoreData: sql: \($0)" }
    case .output:
      return event.text.map { "plugin: \($0)" }
    default:
      return isQuiet ? nil : "\(event.store): \(description(of: event))\(details(of: event))"
    }
  }

  private func description(of event: RunEvent) -> String {
    switch event.step {
    case .started:
      let versions = [event.from, event.to].compactMap { $0?.description }
      return versions.isEmpty ? "started" : "started, \(versions.joined(separator: " → "))"
    case .locked: return "locked"
    case .backedUp: return "backed up"
    case .stageStarted: return "stage \(event.stage ?? "") began"
    case .stageFinished: return "stage \(event.stage ?? "") done"
    case .verified: return "verified"
    case .writtenBack: return "written back"
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
