import InstarSchema
import InstarSupervisor
import InstarWire

/// A hold that was placed, listed or released, as `instarctl hold` and `release` write it.
struct HoldReport: CommandOutput {
  var store: String
  /// Where was searched, in words; not in the JSON.
  var places: String
  /// `nil` where there is none, or there was none to release.
  var hold: Hold?
  var isRelease = false
  var error: InstarError?

  private enum CodingKeys: String, CodingKey {
    case store, hold, error
  }

  var lines: [ConsoleLine] {
    guard error == nil else { return [] }
    switch (hold, isRelease) {
    case (let hold?, false): return ["\(store): \(hold.sentence)"]
    case (let hold?, true): return ["\(store): released; was \(hold.sentence)"]
    case (nil, _): return ["\(store): not held \(places)"]
    }
  }

  /// All holds, one a line.
  static func table(of holds: [Hold]) -> [ConsoleLine] {
    var table = Table(.left, .left, .left, .left, header: ["SINCE", "BY", "STORE", "WHY"])
    for hold in holds {
      let note = hold.isReplaced ? " (the file was moved or replaced since)" : ""
      table.add(
        "\(Quantity.time(secondsSince1970: hold.since))", "\(hold.by)", "\(hold.store)",
        "\(hold.why)\(note)")
    }
    return table.lines()
  }
}
