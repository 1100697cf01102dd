import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The runs of one command: several at once, each reported in the order in which its store was named.
struct StoreRuns {
  /// How many runs are made at once.
  private let limit: Int

  init(stores: [String]) { limit = Self.limit(stores) }

  /// Makes several runs at once, and reports each in the order of the requests.
  ///
  /// - Throws: The first error of `report`. No further run is started then. Those in progress end and are reported
  ///   first.
  func perform(
    _ requests: [MigrationRequest],
    _ run: @escaping @Sendable (MigrationRequest) async -> Result<RunReport, InstarError>,
    report: (MigrationRequest, Result<RunReport, InstarError>) async throws(InstarError) -> Void
  ) async throws(InstarError) {
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
  /// A store that is named twice is migrated once, so nothing runs beside it. The statements of two runs would be mixed
  /// up.
  private static func limit(_ stores: [String]) -> Int {
    guard Set(stores).count == stores.count, LaunchArguments.debug.level == 0 else { return 1 }
    let processors = max(ProcessInfo.processInfo.activeProcessorCount, 1)
    guard stores.allSatisfy({ RunWeight(ofStore: $0) == .small }) else { return processors }
    let most = processors * RunWeight.large.rawValue / RunWeight.small.rawValue
    return min(max(stores.count / storesForKeeper, processors), most)
  }

  /// The start of a keeper takes as long as the processor's work on so many small stores.
  private static let storesForKeeper = 10

  /// The report on a store whose run had not started when the command was interrupted.
  func notStarted(_ request: MigrationRequest, _ folder: StateFolder) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: .failed,
      startedAt: Date().timeIntervalSince1970)
    if request.rehearses { report.rehearsal = RunReport.Rehearsal() }
    report.error = folder.completing(
      InstarError(
        .interrupted, request.what, store: request.store,
        cause: "interrupted before the run started", state: "unchanged",
        next: "run: \(request.command)"))
    return report
  }
}
