import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The runs of one command: several at once, each reported in the order in which its store was named.
///
/// Ctrl-C stops the runs in progress, and no further one starts.
struct StoreRuns: Sendable {
  private let folder: StateFolder
  private let supervisor: Supervisor
  private let interruption: Interruption
  private let recoveries: Recoveries
  private let progress: RunProgress
  private let copies: BackupFolder?

  /// Tells the user of phase records that cannot be read.
  ///
  /// - Parameters:
  ///   - shows: Which steps of the runs are shown.
  ///   - copies: Where copies of backups go.
  init(
    state: StateOptions, shows extent: RunProgress.Extent, copies: BackupFolder? = nil
  ) throws(InstarError) {
    folder = try state.open()
    recoveries = Recoveries(state)
    let supervisor = try Supervisor(stateFolder: folder)
    self.supervisor = supervisor
    self.copies = copies
    progress = RunProgress(extent)
    interruption = try Interruption {
      Console.note("interrupted: stopping the run")
      supervisor.cancel()
    }
    for error in try supervisor.storesWithOpenRuns().unreadable { Console.note(error) }
  }

  /// Makes several runs at once, and reports each in the order of the requests. Then makes the copies that recovered
  /// runs lack.
  ///
  /// - Throws: The first error of `report`. No further run is started then. Those in progress end and are reported
  ///   first.
  func perform(
    _ requests: [MigrationRequest],
    report: (MigrationRequest, Result<RunReport, InstarError>) async throws(InstarError) -> Void
  ) async throws(InstarError) {
    try await inOrder(requests, report: report)
    try await recoveries.makeCopies(with: supervisor)
  }

  /// Makes one run.
  func run(_ request: MigrationRequest) async -> Result<RunReport, InstarError> {
    guard !interruption.hasHappened else { return .success(notStarted(request)) }
    let locksLate = request.whenBusy == .migrate
    progress.begin(request.store, request.rehearses || locksLate ? .reads : .writes)
    defer { progress.end(request.run, of: request.store) }
    var request = request
    request.reportsSteps = progress.extent != .output
    do throws(InstarError) {
      let report = try await supervisor.migrate(
        request, copyingBackupTo: copies, onRecovery: { recoveries.note($0) },
        onEvent: { progress.show($0, locksLate: locksLate) })
      return .success(await supervisor.addingCopy(to: report))
    } catch {
      return .failure(error)
    }
  }

  private func inOrder(
    _ requests: [MigrationRequest],
    report: (MigrationRequest, Result<RunReport, InstarError>) async throws(InstarError) -> Void
  ) async throws(InstarError) {
    let limit = Self.limit(requests.map(\.store))
    var failure: InstarError?
    await withTaskGroup(of: (Int, Result<RunReport, InstarError>).self) { group in
      var started = 0
      var reported = 0
      var ended: [Int: Result<RunReport, InstarError>] = [:]
      while true {
        while failure == nil, started < requests.count, started - reported - ended.count < limit {
          let (index, request) = (started, requests[started])
          group.addTask { (index, await run(request)) }
          started += 1
        }
        guard let (index, result) = await group.next() else { return }
        ended[index] = result
        while let next = ended.removeValue(forKey: reported) {
          do throws(InstarError) {
            try await report(requests[reported], next)
          } catch {
            failure = failure ?? error
          }
          reported += 1
        }
      }
    }
    if let failure { throw failure }
  }

  /// One for each processor, and more for many small stores, whose runs wait for the disk most of the time. Each run at
  /// once needs a keeper, whose start takes time too.
  ///
  /// One at a time where a store is named twice, because its second run depends on the first one, and where SQL is
  /// shown, because the statements of two runs would be mixed up.
  private static func limit(_ stores: [String]) -> Int {
    guard Set(stores).count == stores.count, LaunchArguments.debug.level == 0 else { return 1 }
    let processors = max(ProcessInfo.processInfo.activeProcessorCount, 1)
    let weights = FilePath.reader.answers(about: stores, RunWeight.init(ofStore:))
    guard weights.count == stores.count, weights.allSatisfy({ $0 == .small }) else {
      return processors
    }
    let most = processors * RunWeight.large.rawValue / RunWeight.small.rawValue
    return min(max(stores.count / storesForKeeper, processors), most)
  }

  /// The start of a keeper takes as long as the processor's work on so many small stores.
  private static let storesForKeeper = 10

  /// The report on a store whose run had not started when the command was interrupted.
  private func notStarted(_ request: MigrationRequest) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: .failed,
      startedAt: Date().timeIntervalSince1970)
    if request.rehearses { report.rehearsal = RunReport.Rehearsal() }
    report.error = folder.completing(
      InstarError(
        .interrupted, request.what, store: request.store,
        cause: "interrupted before the run started", state: "unchanged",
        next: "run: \(request.command.text)"))
    return report
  }
}
