import ArgumentParser
import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl rehearse`
struct RehearseCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse",
    abstract: "Run a plan on clones of stores, and remove the clones.",
    usage: "instarctl rehearse [<option> ...] <store> ...",
    discussion: """
        instarctl rehearse --plugin Notes.so --sample 5% /srv/stores/*.store

      Does all that 'instarctl migrate' does before it replaces a store's content: copies the store to a \
      clone in .instar/ beside it, checks the copy, runs every stage, and verifies the clone. Then it \
      removes the clone. The store is not changed. Apps can use it meanwhile; a store with a rollback \
      journal cannot be written while it is copied.

      Reports how each store's migration would end, how long it takes, which size the store gets, and how much \
      free space the migration needs. If a store cannot be migrated, the exit status says so: 1, or 3 if \
      a check refuses it.
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var state: StateOptions

  @Option(
    help: ArgumentHelp(
      "Rehearse only some of the stores, evenly spread over the list: a number, or a share such as 5%.",
      valueName: "sample"),
    transform: { try StoreSample($0) })
  var sample: StoreSample?

  @OptionGroup var limits: StageLimitOptions
  @OptionGroup var busy: BusyOptions

  @OptionGroup var risks: RiskOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var events: EventOptions

  func validate() throws {
    try events.validate(with: output)
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let runs = try StoreRuns(state: state, shows: events.extent(json: output.json))
    let plans = try await plugins.selection()
    let all = stores.paths
    let paths = sample?.chosen(from: all) ?? all
    var summary = RehearsalReport(stores: all.count)
    var status = ExitStatus.done
    try await runs.perform(paths.map { request(for: $0, plans: plans) }) {
      (_, result) throws(InstarError) in
      let report = try result.get()
      summary.add(report)
      status = .gravest(status, ExitStatus(for: report))
      output.write(report)
    }
    if !output.json, all.count > 1 { Console.note(summary.lines) }
    return status
  }

  private func request(for store: String, plans: PlanSelection) -> MigrationRequest {
    var request = MigrationRequest(of: store, plans: plans, adoption, limits, busy, risks)
    request.rehearses = true
    return request
  }
}
