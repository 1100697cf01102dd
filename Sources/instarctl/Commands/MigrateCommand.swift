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
    abstract: "Brings stores to the last version of their plan.",
    discussion: """
      Each store is cloned and backed up, migrated on the clone, verified, and only then written. \
      The backup stays in .instar/ beside the store. Whatever goes wrong before the writing, and \
      Ctrl-C, leave the store as it was.
      """)

  @Argument(help: "The stores.", completion: .file(), transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var state: StateOptions

  @Option(
    help: ArgumentHelp(
      "How long a stage may take, from 1s to 720h. (default: 1h)", valueName: "duration"),
    transform: { try DurationArgument($0, in: .seconds(1)...(.seconds(30 * 86_400))) })
  var stageTimeLimit = DurationArgument(.seconds(3600))

  @Option(
    help: ArgumentHelp(
      "How long to wait for others to let go of a store, up to 1h. (default: 5s)",
      valueName: "duration"),
    transform: { try DurationArgument($0, in: .zero...(.seconds(3600))) })
  var busyTimeout = DurationArgument(.seconds(5))

  @Flag(help: "Confirm that a store is adopted although it differs from --adopt's version.")
  var yes = false

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = Supervisor(
      installation: try .locate(), stateFolder: try StateFolder(path: state.path),
      rights: .ofCommandLine)
    let plugins = try plugins.paths()
    let progress = RunProgress(isQuiet: output.json)
    let interruption = Interruption {
      Console.note("interrupted: ending the run")
      supervisor.cancel()
    }

    try await supervisor.recoverAll(
      onReport: { Console.note($0.line) }, onError: { Console.note($0) })

    var status = ExitStatus.done
    for store in stores.map(FilePath.absolute) {
      var request = MigrationRequest(
        run: RunIdentifier.make(), store: store, plugins: plugins, adopt: adoption.version)
      request.sqlDebugLevel = LaunchArguments.ofThisProcess.sqlDebugLevel
      request.stageTimeLimitSeconds = stageTimeLimit.duration.inSeconds
      request.busyTimeoutSeconds = busyTimeout.duration.inSeconds
      request.adoptsDifferences = yes

      var report =
        interruption.hasHappened
        ? notBegun(request)
        : try await supervisor.migrate(request) { progress.show($0) }
      if let error = report.error, error.code == .unconfirmedAdoption, isConfirmed(error) {
        request.run = RunIdentifier.make()
        request.adoptsDifferences = true
        report = try await supervisor.migrate(request) { progress.show($0) }
      }
      status = .gravest(status, ExitStatus(for: report))
      output.write(report)
    }
    return status
  }

  /// Asks whether a store is to be adopted although it differs, where there is somebody to ask.
  private func isConfirmed(_ error: InstarError) -> Bool {
    guard !output.json, isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return false }
    Console.note(ConsoleLine.lines(of: error.cause))
    Console.note("Adopt '\(error.store ?? "the store")' nevertheless? Type yes:")
    return readLine() == "yes"
  }

  /// The report on a store whose turn had not come when the command was interrupted.
  private func notBegun(_ request: MigrationRequest) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: .failed,
      startedAt: Date().timeIntervalSince1970)
    report.error = InstarError(
      .interrupted, "cannot migrate '\(request.store)'", store: request.store,
      cause: "interrupted before its turn came", state: "unchanged",
      next: "run the command again")
    return report
  }
}
