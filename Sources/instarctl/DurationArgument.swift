import ArgumentParser

/// A length of time as people type it: `250ms`, `30s`, `5m`, `1h`.
struct DurationArgument: ExpressibleByArgument {
  var seconds: Double
  var defaultValueDescription: String

  init(seconds: Double, written text: String) {
    self.seconds = seconds
    defaultValueDescription = text
  }

  private static let units: [(suffix: String, seconds: Double)] = [
    ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600),
  ]

  /// `nil` for anything but a positive number and a unit.
  init?(argument: String) {
    for unit in Self.units where argument.hasSuffix(unit.suffix) {
      let number = argument.dropLast(unit.suffix.count)
      guard number.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }),
        let value = Double(number), value > 0, value.isFinite
      else { continue }
      self.init(seconds: value * unit.seconds, written: argument)
      return
    }
    return nil
  }
}
