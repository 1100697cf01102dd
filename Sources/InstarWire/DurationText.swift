import InstarSchema

/// Durations as the configuration, the command line and messages show them: one number and one unit.
///
/// ```swift
/// DurationText.parse("250ms")                 // .milliseconds(250)
/// DurationText.format(.seconds(90))           // "90 s"
/// ```
public enum DurationText {
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000),
  ]

  /// Reads `250ms`, `2s`, `5m` or `1h`. Returns `nil` for anything else, also for a number without a unit and for more
  /// than 366 days.
  public static func parse(_ text: String) -> Duration? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    guard let number = Int64(digits),
      let unit = units.first(where: { $0.name == text.dropFirst(digits.count) })
    else { return nil }
    let (milliseconds, overflow) = number.multipliedReportingOverflow(by: unit.milliseconds)
    guard !overflow, milliseconds <= 366 * 24 * 3_600_000 else { return nil }
    return .milliseconds(milliseconds)
  }

  /// Returns the duration as `parse` reads it, such as `90s`.
  package static func argument(_ duration: Duration) -> String {
    let milliseconds = duration.inMicroseconds / 1000
    let unit = units.last {
      milliseconds.isMultiple(of: $0.milliseconds) && $0.milliseconds <= max(milliseconds, 1000)
    }
    return unit.map { "\(milliseconds / $0.milliseconds)\($0.name)" } ?? "\(milliseconds)ms"
  }

  /// Returns the duration in its largest whole unit: `250 ms`, `90 s`, `5 min`, `1 h`.
  public static func format(_ duration: Duration) -> String {
    let milliseconds = duration.inMicroseconds / 1000
    switch milliseconds {
    case let value where value > 0 && value.isMultiple(of: 3_600_000):
      return "\(value / 3_600_000) h"
    case let value where value > 60_000 && value.isMultiple(of: 60_000):
      return "\(value / 60_000) min"
    case let value where value.isMultiple(of: 1000):
      return "\(value / 1000) s"
    default:
      return "\(milliseconds) ms"
    }
  }
}
