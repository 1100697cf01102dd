import ArgumentParser
import InstarControl
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl history`
struct HistoryCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "List the runs in the ledger, oldest first.",
    discussion: """
        instarctl history a.store
        instarctl history --result failed --result refused --limit 10

      The ledger records the runs of instard and of 'instarctl migrate' with the same state folder. \
      If you may not read the service's state folder, the list also has instard's runs on your stores.
      """)

  @Argument(
    help: "List only the runs of this store.", completion: .stores, transform: FilePath.typed)
  var store: String?

  @Option(
    help: ArgumentHelp(
      "List only runs with this result: "
        + "\(Self.recordedResults.map(\.rawValue).joined(separator: ", ")). Repeat for several.",
      valueName: "result"),
    completion: .list(Self.recordedResults.map(\.rawValue)), transform: Self.recordedResult)
  var result: [RunReport.Result] = []

  @Option(
    help: ArgumentHelp("List only runs of this plan.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("List only the newest COUNT runs.", valueName: "count"))
  var limit: Int?

  @OptionGroup var records: RecordOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let limit, limit < 1 { throw ValidationError("--limit must be at least 1") }
  }

  private static let recordedResults: [RunReport.Result] = [
    .migrated, .restored, .refused, .failed, .busy,
  ]

  private static func recordedResult(_ name: String) throws -> RunReport.Result {
    switch RunReport.Result(rawValue: name) {
    case .rehearsed: throw ValidationError("rehearsals are not in the ledger")
    case .current:
      throw ValidationError("runs that found their store current are not in the ledger")
    case .migrated, .restored, .refused, .failed, .busy, nil:
      return try RunReport.Result(named: name, among: recordedResults)
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let filter = Manager.RunFilter(
      store: store.map(FilePath.ofStore), results: result.isEmpty ? nil : result, plan: plan,
      limit: limit)
    var reports: [RunReport] = []
    let instard = try records.instard()
    if let instard { reports = try runs(of: instard, filter) }
    if !records.namesInstard {
      try records.state.requireNamed("cannot list runs")
      let (own, unreadableLines) = try records.state.forReading
        .history(store: filter.store, limit: limit ?? .max, where: filter.allows)
      reports = reports.isEmpty ? own : (reports + own).sorted { $0.startedAt < $1.startedAt }
      note(unreadableLines, in: "the ledger in '\(records.state.path)'")
    }
    if reports.isEmpty, !output.json, let reason = try reasonForNone(from: instard) {
      Console.note("\(reason)")
      return .done
    }
    write(reports.suffix(limit ?? .max))
    return .done
  }

  /// Why there is no run, where nothing has the plan.
  private func reasonForNone(from instard: DaemonConnection?) throws(InstarError) -> String? {
    guard let plan, store == nil, result.isEmpty else { return nil }
    if let instard { return try instard.reasonForNone(ofPlan: plan, in: "plugin or run") }
    var known: Set<String> = []
    _ = try records.state.forReading.history { run in
      if let plan = run.plan { known.insert(plan) }
      return false
    }
    return PlanSelection.reason(
      forMissing: plan, in: "run in '\(records.state.path)'", known: known)
  }

  /// The runs that instard has recorded of the stores that this user may see.
  private func runs(
    of instard: DaemonConnection, _ filter: Manager.RunFilter
  ) throws(InstarError) -> [RunReport] {
    var runs: [RunReport] = []
    var unreadableLines = 0
    do throws(InstarError) {
      try instard.stream(.history, filter) { (reply: Manager.RunsReply) in
        runs += reply.runs
        unreadableLines = reply.unreadableLines
      }
    } catch  where error.code == .notPermitted && !records.namesInstard {
      // Another user's store, of which this user's own ledger may have runs.
      return []
    }
    if runs.count == Manager.historyLimit, limit != runs.count {
      Console.note("instard lists the newest \(Quantity.grouped(runs.count)) runs only")
    }
    note(unreadableLines, in: "instard's ledger")
    return runs
  }

  private func note(_ unreadableLines: Int, in ledger: String) {
    guard unreadableLines > 0 else { return }
    Console.note("skipped \(unreadableLines) unreadable lines of \(ledger)")
  }

  private func write(_ reports: ArraySlice<RunReport>) {
    if output.json {
      reports.forEach { Console.write(json: $0) }
    } else if reports.isEmpty {
      let isChosen = store != nil || !result.isEmpty || plan != nil
      let place = records.namesInstard ? "of instard" : "in '\(records.state.path)'"
      Console.note("no \(isChosen ? "such runs" : "runs") \(place)")
    } else {
      Console.write(RunReport.table(of: Array(reports)))
    }
  }
}
