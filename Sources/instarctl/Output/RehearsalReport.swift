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
  private var impossible: [String] = []
  /// How many stores that cannot be migrated are named.
  private static let namedLimit = 10

  /// - Parameter stores: How many stores were named.
  init(stores: Int) { self.stores = stores }

  mutating func add(_ report: RunReport) {
    rehearsed += 1
    if report.result == .rehearsed { possible += 1 }
    if report.result == .current { current += 1 }
    if report.error != nil { impossible.append(report.store) }
    durationMicroseconds += report.durationMicroseconds
    neededBytes = max(neededBytes, report.rehearsal?.neededBytes ?? 0)
  }

  var lines: [ConsoleLine] {
    var parts: [String] = []
    if possible > 0 { parts.append("\(possible) can be migrated") }
    if current > 0 { parts.append("\(current) current") }
    if !impossible.isEmpty { parts.append("\(impossible.count) cannot be migrated") }
    let time = Quantity.duration(microseconds: durationMicroseconds / Int64(max(rehearsed, 1)))
    let space =
      neededBytes > 0 ? ", and up to \(Quantity.bytes(neededBytes)) of free space" : ""
    var lines: [ConsoleLine] = [
      "rehearsed \(rehearsed) of \(stores) stores: \(parts.joined(separator: ", ")); \(time) for each\(space)"
    ]
    lines += impossible.prefix(Self.namedLimit).map { "  cannot be migrated: \($0)" }
    let others = impossible.count - Self.namedLimit
    if others > 0 { lines.append("  and \(others) more") }
    return lines
  }
}
