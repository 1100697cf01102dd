import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// The runs that a command recovered first. A run that was cut off after its cutover may lack the copy of its backup.
final class Recoveries: Sendable {
  private let stores = Mutex<Set<String>>([])
  private let isBesideService: Bool

  init(_ state: StateOptions) { isBesideService = state.isBesideService }

  /// Tells the user of a recovered run.
  func note(_ report: RecoveryReport) {
    Console.note(report.line)
    for note in report.notes ?? [] { Console.note("\(note)") }
    // As in the state folder. The hold in instard does not know its run.
    if isBesideService, report.restoredRun != nil, report.outcome != .finished,
      report.backup == nil
    {
      ServiceHolds.removeHold(ofRun: report.run, from: report.store)
    }
    guard report.outcome == .finished else { return }
    stores.withLock { _ = $0.insert(report.store) }
  }

  /// Makes the missing copies, and tells the user of each.
  func makeCopies(with supervisor: Supervisor) async throws(InstarError) {
    guard let folder = supervisor.stateFolder else { return }
    for store in stores.withLock({ $0 }).sorted() {
      try await supervisor.makeCopies(of: try folder.backups(of: store)) { result in
        let report = BackupReport(result)
        Console.note(report.lines)
        if let error = report.error { Console.note(error) }
      }
    }
  }
}
