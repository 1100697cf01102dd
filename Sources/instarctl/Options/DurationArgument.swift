import ArgumentParser
import InstarWire

/// A duration from the command line: `250ms`, `30s`, `5m`, `1h`.
struct DurationArgument {
  let duration: Duration

  init(_ duration: Duration) {
    self.duration = duration
  }

  /// - Parameter bounds: The same as for the setting of that name in instard.yml.
  /// - Throws: `ValidationError`, a wrong usage, for another text and for a duration out of bounds.
  init(_ text: String, in bounds: ClosedRange<Duration>) throws {
    guard let duration = DurationText.parse(text) else {
      throw ValidationError("'\(text)' is not a duration; write for example 250ms, 30s, 5m or 1h")
    }
    guard bounds.contains(duration) else {
      throw ValidationError(
        "'\(text)' is not between \(DurationText.format(bounds.lowerBound)) and "
          + DurationText.format(bounds.upperBound))
    }
    self.init(duration)
  }
}
