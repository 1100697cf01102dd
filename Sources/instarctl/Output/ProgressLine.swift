import Foundation
import Glibc
import InstarSchema
import InstarWire
import Synchronization

/// The progress of runs: one line at the bottom of a terminal, or a line every few seconds where standard error
/// goes elsewhere. While no run reports progress, the line of a terminal has the store that is waited for.
final class ProgressLine: Sendable {
  private struct Shown {
    var events: [String: RunEvent] = [:]
    var nextLine: [String: ContinuousClock.Instant] = [:]
    /// The store whose lock is waited for.
    var waiting: String?
  }
  private let shown = Mutex(Shown())
  private let isOnTerminal = isatty(STDERR_FILENO) == 1
  private static let lineInterval = Duration.seconds(5)
  private static let barWidth = 20

  /// Shows how far a run is.
  func update(_ event: RunEvent) {
    guard let progress = event.progress else { return }
    if isOnTerminal {
      shown.withLock { shown in
        shown.events[event.run] = event
        redraw(shown)
      }
    } else if isLineDue(event.run) {
      Console.note("\(event.store): stage \(event.stage ?? ""): \(progress.text)")
    }
  }

  /// Stops showing a run.
  func end(_ run: String) {
    shown.withLock { shown in
      shown.nextLine[run] = nil
      if shown.events.removeValue(forKey: run) != nil { redraw(shown) }
    }
  }

  /// Shows that a store is waited for, because another process has it locked; `nil` for none.
  func showWaiting(for store: String?) {
    shown.withLock { shown in
      guard shown.waiting != store else { return }
      shown.waiting = store
      redraw(shown)
    }
  }

  private func isLineDue(_ run: String) -> Bool {
    shown.withLock { shown in
      let now = ContinuousClock.now
      let due = shown.nextLine[run] ?? now
      guard due <= now else { return false }
      shown.nextLine[run] = now + Self.lineInterval
      return true
    }
  }

  /// Shows the run that will take longest.
  private func redraw(_ shown: Shown) {
    let progress = shown.events.values.ofLongestRun.flatMap {
      line(for: $0, others: shown.events.count - 1)
    }
    Console.status = progress ?? shown.waiting.flatMap(waitingLine)
  }

  private func waitingLine(for store: String) -> ConsoleLine? {
    let name = store.lastName
    return Self.longest(of: [
      "waiting for '\(store)': another process has locked the store",
      "waiting for '\(name)': another process has locked the store",
      "waiting for '\(name)'", "waiting for a lock",
    ])
  }

  /// The most that fits into one line of the terminal.
  private func line(for event: RunEvent, others: Int) -> ConsoleLine? {
    guard let progress = event.progress else { return nil }
    let name = event.store.lastName
    let left = [progress.percentText ?? "\(progress.done)", progress.timeLeftText].compactMap { $0 }
      .joined(separator: ", ")
    let share = progress.total.map { "\(progress.percentText ?? "") of \($0) \(progress.what)" }
    let bar = progress.fraction.map { " \(Self.bar($0))" } ?? ""
    let more = others > 0 ? ", and \(others) more" : ""
    return Self.longest(of: [
      "\(name): stage \(event.stage ?? "")\(bar) \(progress.text)\(more)",
      "\(name):\(bar) \([share ?? progress.amount, progress.timeLeftText].compactMap { $0 }.joined(separator: ", "))",
      "\(name): \(left)",
      "\(left)", "\(progress.percentText ?? "\(progress.done)")",
    ])
  }

  /// The first line that fits, of some that become shorter.
  private static func longest(of lines: [ConsoleLine]) -> ConsoleLine? {
    let columns = WindowSize(of: STDERR_FILENO).columns
    return lines.first { $0.width < columns }
  }

  private static func bar(_ fraction: Double) -> String {
    let full = Int(fraction * Double(barWidth))
    return "[" + String(repeating: "#", count: full)
      + String(repeating: "-", count: barWidth - full) + "]"
  }
}
