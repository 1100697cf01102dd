import Foundation
public import InstarSchema

/// A calendar event as systemd's timers have it, such as "Mon..Fri 22:00" (systemd.time(7)).
///
/// systemd-analyze(1) parses it and computes its times: so it means the same here as in a timer, also at the ends of
/// summer time.
public struct CalendarEvent: Sendable, Hashable {
  /// The event as it was written.
  public let text: String

  /// - Throws: `invalidConfiguration` where systemd cannot parse the event; `incompleteInstallation` where the host has
  ///   no systemd-analyze.
  public init(_ text: String) throws(InstarError) {
    self.text = text
    _ = try next(after: 0)
  }

  /// Returns when the event next happens after a time, both in seconds since 1970; `nil` if it never does.
  ///
  /// Runs a program, which takes some milliseconds.
  ///
  /// - Throws: as `init`.
  public func next(after seconds: Double) throws(InstarError) -> Double? {
    let process = try ChildProcess.start(
      executable: "/usr/bin/systemd-analyze",
      arguments: [
        "calendar", "--iterations=1", "--base-time=@\(Int64(max(0, seconds)))", "--", text,
      ],
      environment: ProcessInfo.processInfo.environment.merging(["LC_ALL": "C"]) { $1 },
      output: .captured(limitBytes: 16 << 10))
    let end = try process.wait(deadline: .now + .seconds(30))
    let output = process.capturedOutput
    guard end == .exited(0), let time = Self.time(in: output) else {
      throw InstarError(
        .invalidConfiguration, "cannot use the calendar event '\(text)'",
        cause: output.split(separator: "\n").last.map(String.init)
          ?? "systemd-analyze gave no answer",
        next: "to try an event, run: systemd-analyze calendar \(CommandText.quoted(text))")
    }
    return time
  }

  /// The first time in the output: `.some(nil)` for "never", `nil` where there is no time.
  private static func time(in output: String) -> Double?? {
    let lines = output.split(separator: "\n").compactMap {
      line -> (name: Substring, value: String)? in
      guard let colon = line.firstRange(of: ": ") else { return nil }
      return (
        line[..<colon.lowerBound].drop { $0 == " " }, line[colon.upperBound...].description
      )
    }
    // In another time zone than UTC, a line with the time in UTC follows.
    let text =
      lines.first { $0.name == "(in UTC)" }?.value
      ?? lines.first { $0.name == "Next elapse" }?.value
    guard let text else { return nil }
    if text == "never" { return .some(nil) }
    // "Mon 2026-11-23 22:00:00 UTC"
    let words = text.split(separator: " ")
    let style = Date.ISO8601FormatStyle(dateTimeSeparator: .space).year().month().day()
      .time(includingFractionalSeconds: false)
    guard words.count == 4, words[3] == "UTC",
      let date = try? Date("\(words[1]) \(words[2])", strategy: style)
    else { return nil }
    return .some(date.timeIntervalSince1970)
  }
}
