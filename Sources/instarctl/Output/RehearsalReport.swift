import InstarSchema
import InstarWire

/// What the rehearsals of several stores found.
struct RehearsalReport {
  private let stores: Int
  private var possible = 0
  private var current = 0
  private var busy = 0
  private var interrupted = 0
  private var impossible: [String] = []
  /// Of the rehearsals that came to their end.
  private var durationMicroseconds: Int64 = 0
  private var neededBytes: Int64 = 0
  /// How many stores that cannot be migrated are named.
  private static let namedLimit = 10

  /// - Parameter stores: How many stores were named.
  init(stores: Int) { self.stores = stores }

  mutating func add(_ report: RunReport) {
    switch report.result {
    case .rehearsed:
      possible += 1
      durationMicroseconds = durationMicroseconds.saturatingAdd(report.durationMicroseconds)
    case .current: current += 1
    case .busy: busy += 1
    case .refused, .failed, .migrated, .restored:
      if report.error?.code == .interrupted {
        interrupted += 1
      } else {
        impossible.append(report.store)
      }
    }
    neededBytes = max(neededBytes, report.rehearsal?.neededBytes ?? 0)
  }

  var lines: [ConsoleLine] {
    let counts = [
      (possible, "can be migrated"), (current, "current"), (busy, "busy"),
      (impossible.count, "cannot be migrated"), (interrupted, "interrupted"),
    ]
    let rehearsed = counts.map(\.0).reduce(0, +) - interrupted
    let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    var text = "rehearsed \(rehearsed) of \(stores) stores: \(parts.joined(separator: ", "))"
    if possible > 0 {
      let time = Quantity.duration(microseconds: durationMicroseconds / Int64(possible))
      text += "; a migration takes \(time) on average"
      text += " and needs up to \(Quantity.bytes(neededBytes)) of free space"
    }
    var lines: [ConsoleLine] = ["\(text)"]
    lines += impossible.prefix(Self.namedLimit).map { "  cannot be migrated: \($0)" }
    let others = impossible.count - Self.namedLimit
    if others > 0 { lines.append("  and \(others) more") }
    return lines
  }
}
