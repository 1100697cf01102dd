import InstarSchema
import InstarSupervisor

/// How many of several verified backups are in which state.
struct VerifiedBackupsReport {
  private var counts: [BackupReport.State: Int] = [:]

  mutating func add(_ report: BackupReport) { counts[report.state, default: 0] += 1 }

  /// "5 backups: 3 sound, 1 damaged, 1 missing".
  var line: ConsoleLine {
    let total = counts.values.reduce(0, +)
    let parts = counts.sorted { Self.place($0.key) < Self.place($1.key) }.map {
      // Its file is there, but the check could not be done.
      "\($0.value) \($0.key == .present ? "not checked" : $0.key.phrase)"
    }
    return "\(total.counted("backup")): \(parts.joined(separator: ", "))"
  }

  private static func place(_ state: BackupReport.State) -> Int {
    [.sound, .damaged, .missing, .unreadable].firstIndex(of: state) ?? .max
  }
}
