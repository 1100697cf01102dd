import InstarSchema
import InstarWire

/// Shows the steps of runs on standard error, or as JSON on standard output.
struct RunProgress: Sendable {
  /// Which steps are shown.
  enum Extent {
    /// All, in words.
    case steps
    /// Only what the plugin prints, and the SQL that was asked for.
    case output
    /// All, each as one object on standard output.
    case events
  }
  var extent: Extent
  private let bar: ProgressLine
  private let waits: LockWatch

  init(_ extent: Extent) {
    self.extent = extent
    bar = ProgressLine()
    waits = LockWatch(bar)
  }

  /// A run begins, which first waits for its store where another process has it locked.
  func begin(_ store: String, _ access: LockWatch.Access) { waits.begin(store, access) }

  /// - Parameter locksLate: Whether the run locks the store only for the cutover.
  func show(_ event: RunEvent, locksLate: Bool = false) {
    waits.note(event, locksLate: locksLate)
    switch (extent, event.step) {
    case (.events, _): Console.write(json: event)
    case (.steps, .progress): bar.update(event)
    default:
      if ![.sql, .output].contains(event.step) { bar.end(event.run) }
      Console.note(lines(for: event))
    }
  }

  /// The run has ended, in any way.
  func end(_ run: String, of store: String) {
    waits.end(store)
    bar.end(run)
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
      return extent == .output
        ? [] : ["\(event.store): \(description(of: event))\(details(of: event))"]
    }
  }

  private func description(of event: RunEvent) -> String {
    switch event.step {
    case .started:
      // Only a restore starts from no version: it replaces whatever the store has.
      if event.from == nil, let version = event.to { return "started: restores \(version)" }
      let versions = [event.from, event.to].compactMap { $0?.description }
      return versions.isEmpty ? "started" : "started, \(versions.joined(separator: " → "))"
    case .locked: return "locked"
    case .backedUp: return "backed up"
    case .stageStarted: return "stage \(event.stage ?? "") started"
    case .stageFinished: return "stage \(event.stage ?? "") finished"
    case .verified: return "verified"
    case .cutOver:
      return event.cutover == .exchange ? "exchanged for its clone" : "content replaced"
    case .progress: return event.progress?.text ?? ""
    case .output, .sql: return ""
    }
  }

  private func details(of event: RunEvent) -> String {
    var parts: [String] = []
    if let rows = event.rows { parts.append(rows.counted("row")) }
    if let bytes = event.bytes { parts.append(Quantity.bytes(bytes)) }
    if let time = event.durationMicroseconds {
      parts.append(Quantity.duration(microseconds: time))
    }
    return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
  }
}
