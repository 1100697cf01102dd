import Foundation

/// Sizes, durations and times in units that people read.
public enum Quantity {
  /// `812 bytes`, `40 KiB`, `1.5 GiB`.
  ///
  /// - Parameter rule: `.up` for a text that never names less than the count, `.down` for one that never names more.
  public static func bytes(
    _ count: Int64, rounded rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
  ) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"]
    guard count >= 1024 else { return "\(count) bytes" }
    var value = Double(count) / 1024
    var unit = 0
    while value >= 1024, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    return "\(rounded(value, rule)) \(units[unit])"
  }

  /// `0.4 ms`, `83 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`.
  public static func duration(microseconds: Int64) -> String {
    let seconds = Double(microseconds) / 1_000_000
    if seconds < 1 { return "\(rounded(seconds * 1000)) ms" }
    if seconds < 60 { return "\(rounded(seconds)) s" }
    let whole = Int(seconds)
    return whole < 3600
      ? "\(whole / 60) min \(whole % 60) s" : "\(whole / 3600) h \(whole % 3600 / 60) min"
  }

  /// `40 s`, `3 min`, `5 h`, `3 days`: for an estimate.
  public static func roughDuration(seconds: Double) -> String {
    let units: [(length: Double, most: Double, name: String)] = [
      (1, 90, "s"), (60, 90, "min"), (3600, 48, "h"),
    ]
    for unit in units {
      let count = (seconds / unit.length).rounded()
      if count < unit.most { return "\(Int(max(1, count))) \(unit.name)" }
    }
    return "\(grouped(Int(min(seconds / 86_400, 1e6).rounded()))) days"
  }

  /// `2026-11-21 10:15:30 UTC`
  public static func time(secondsSince1970 seconds: Double) -> String {
    Date(timeIntervalSince1970: seconds).formatted(
      Date.ISO8601FormatStyle(dateTimeSeparator: .space).year().month().day()
        .time(includingFractionalSeconds: false)) + " UTC"
  }

  /// `12,345`
  public static func grouped(_ count: Int) -> String {
    let digits = Array(String(count.magnitude))
    let text = digits.indices.reduce(into: "") { text, index in
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digits[index])
    }
    return count < 0 ? "-" + text : text
  }

  /// One digit after the point for numbers below ten, none where it would be 0.
  private static func rounded(
    _ value: Double, _ rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
  ) -> String {
    let tenths = (value * 10).rounded(rule) / 10
    return tenths < 10 && tenths != tenths.rounded()
      ? "\(tenths)" : "\(Int(value.rounded(rule)))"
  }
}
