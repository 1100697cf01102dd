import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl migrate`
struct MigrateCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Migrate stores to the last version of their plan.",
    usage: "instarctl migrate [<option> ...] <store> ...",
    discussion: """
        instarctl migrate --plugin Notes.so a.store b.store

      instarctl runs the stages on a clone of each store, verifies the clone, and replaces the store's content with it \
      in one step. It may change a small store in one transaction instead, and verifies the change before the commit. A \
      checked backup of the old content stays in .instar/ beside the store. A run that fails or is interrupted with \
      Ctrl-C before that step or commit leaves the store unchanged.

      instarctl migrates several stores at the same time. Before that, it recovers the runs of these \
      stores that a crash interrupted.
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var state: StateOptions

  @OptionGroup var limits: StageLimitOptions

  @OptionGroup var busy: BusyOptions

  @Option(
    help: ArgumentHelp(
      "What to do with a store that other processes use. wait: wait for its lock, and keep it. migrate: let them "
        + "write until the cutover. skip: leave the store alone. (default: wait)",
      valueName: "policy"),
    completion: .names(of: BusyPolicy.self), transform: { try BusyPolicy(named: $0) })
  var whenBusy = BusyPolicy.wait

  @Option(
    help: ArgumentHelp(
      "How a store gets its new content. exchange: the clone takes the place of the file, if nobody has it open. "
        + "writeBack: in one transaction; the file keeps its inode. automatic: exchange from 32 MiB on. "
        + "(default: automatic)",
      valueName: "way"),
    completion: .names(of: CutoverPolicy.self), transform: { try CutoverPolicy(named: $0) })
  var cutover = CutoverPolicy.automatic

  @Option(
    help: ArgumentHelp(
      "How much of the store and its clone to read before the cutover. full: also all links and foreign keys, and "
        + "SQLite's integrity_check; about ten seconds for each GiB. (default: standard)",
      valueName: "extent"),
    completion: .names(of: VerificationPolicy.self),
    transform: { try VerificationPolicy(named: $0) })
  var verify = VerificationPolicy.standard

  @OptionGroup var copies: BackupFolderOptions

  @OptionGroup var risks: RiskOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var events: EventOptions

  func validate() throws {
    try events.validate(with: output)
  }

  func perform() async throws(InstarError) -> ExitStatus {
    try copies.requireUsable()
    let runs = try StoreRuns(
      state: state, shows: events.extent(json: output.json), copies: copies.folder)
    let plans = try await plugins.selection()
    let requests = stores.paths.map { request(for: $0, plans: plans) }
    var status = ExitStatus.done
    try await runs.perform(requests) {
      (request, result) async throws(InstarError) in
      var report = try result.get()
      if let error = report.error, error.code == .unconfirmedAdoption, isConfirmed(error) {
        var request = request
        request.run = RunIdentifier.make()
        request.adoptsDifferences = true
        report = try await runs.run(request).get()
      }
      status = .gravest(status, ExitStatus(for: report))
      output.write(report)
    }
    return status
  }

  private func request(for store: String, plans: PlanSelection) -> MigrationRequest {
    var request = MigrationRequest(of: store, plans: plans, adoption, limits, busy, risks)
    request.whenBusy = whenBusy
    request.cutover = cutover
    request.verification = verify
    return request
  }

  /// Asks a person at the terminal whether to adopt a store that differs.
  private func isConfirmed(_ error: InstarError) -> Bool {
    guard !output.json, isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return false }
    Console.note(ConsoleLine.lines(of: error.cause))
    Console.note("Adopt '\(error.store ?? "the store")' despite these differences? Type yes:")
    return readLine() == "yes"
  }
}
