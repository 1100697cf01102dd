import InstarSchema
import InstarWire

/// What the rehearsals of several stores found.
struct RehearsalReport {
  private let stores: Int
  private var rehearsed = 0
  private var possible = 0
  private var current = 0
  private var durationMicroseconds: Int64 = 0
  private var neededBytes: Int64 = 0

  /// - Parameter stores: How many stores were named.
  init(stores: Int) { self.stores = stores }

  mutating func add(_ report: RunReport) {
    rehearsed += 1
    if report.result == .rehearsed { possible += 1 }
    if report.result == .current { current += 1 }
    durationMicroseconds += report.durationMicroseconds
    neededBytes = max(neededBytes, report.rehearsal?.neededBytes ?? 0)
  }

  var line: ConsoleLine {
    var parts: [String] = []
    if possible > 0 { parts.append("\(possible) can be migrated") }
    if current > 0 { parts.append("\(current) current") }
    let failed = rehearsed - possible - current
    if failed > 0 { parts.append("\(failed) cannot be migrated") }
    let time = Quantity.duration(
      microseconds: durationMicroseconds / Int64(max(rehearsed, 1)))
    let space =
      neededBytes > 0 ? ", and up to \(Quantity.bytes(neededBytes)) of free space" : ""
    return
      "rehearsed \(rehearsed) of \(stores) stores: \(parts.joined(separator: ", ")); \(time) for each\(space)"
  }
}
