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

      Copies each store to a backup and a clone, runs the stages on the clone, verifies the clone, and \
      replaces the store's content by it in one transaction. The backup stays in .instar/ beside the \
      store. A run that fails, or is interrupted with Ctrl-C, before that transaction leaves the store \
      unchanged.

      Several stores are migrated at once, one for each processor. It first recovers the runs of these \
      stores that a crash cut off.
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var state: StateOptions

  @Option(
    help: ArgumentHelp(
      "Stop a stage that takes longer, from 1s to 720h. (default: 1h)", valueName: "duration"),
    transform: { try DurationArgument($0, in: .seconds(1)...(.seconds(30 * 86_400))) })
  var stageTimeLimit = DurationArgument(.seconds(3600))

  @OptionGroup var busy: BusyOptions

  @Option(
    help: ArgumentHelp(
      "What to do with a store that other processes use. wait: wait for its lock, and keep it. migrate: let them "
        + "write until the cutover. skip: leave the store alone. (default: wait)",
      valueName: "policy"),
    transform: { try BusyPolicy(named: $0) })
  var whenBusy = BusyPolicy.wait

  @Option(
    help: ArgumentHelp(
      "How a store gets its new content. exchange: the clone takes the place of the file, if nobody has it open. "
        + "writeBack: in one transaction; the file keeps its inode. automatic: exchange from 32 MiB on. "
        + "(default: automatic)",
      valueName: "way"),
    transform: { try CutoverPolicy(named: $0) })
  var cutover = CutoverPolicy.automatic

  @Option(
    help: ArgumentHelp(
      "End a plugin that uses more memory, from 256MiB to 1024GiB. (default: 4GiB)",
      valueName: "size"),
    transform: { text in
      guard let bytes = SizeText.parse(text), SizeText.workerMemory.contains(bytes) else {
        throw ValidationError("'\(text)' is not a size from 256MiB to 1024GiB")
      }
      return bytes
    })
  var workerMemory = MigrationRequest.defaultWorkerMemoryBytes

  @Option(
    help: ArgumentHelp(
      "Also copy each backup to this folder, and verify the copy.", valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var backupFolder: String?

  @Option(
    help: ArgumentHelp(
      "How the copies in --backup-folder are packed: none or zstd. (default: none)",
      valueName: "compression"),
    transform: { try BackupCompression(named: $0) })
  var backupCompression = BackupCompression.none

  @Flag(help: "Adopt a store even if it differs from the version that --adopt names.")
  var yes = false

  @Flag(
    help: "Migrate even if a change of type loses values that no code of the plan writes.")
  var acceptLoss = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard backupFolder != nil || backupCompression == .none else {
      throw ValidationError("--backup-compression needs --backup-folder")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let folder = try StateFolder(path: state.path)
    let supervisor = try Supervisor(stateFolder: folder)
    let plugins = try plugins.paths()
    let progress = RunProgress(isQuiet: output.json)
    let interruption = Interruption {
      Console.note("interrupted: stopping the run")
      supervisor.cancel()
    }

    for error in try supervisor.storesWithOpenRuns().unreadable { Console.note(error) }

    let copies = backupFolder.map {
      BackupFolder(path: FilePath.absolute($0), compression: backupCompression)
    }
    let recoveries = Recoveries()
    let requests = stores.paths.map { request(for: $0, plugins: plugins) }
    var runs: [Task<Result<RunReport, InstarError>, Never>] = []
    var status = ExitStatus.done
    // Reports are in the order of the arguments.
    for (index, request) in requests.enumerated() {
      for next in requests[runs.count..<max(runs.count, min(index + runsAtOnce, requests.count))] {
        runs.append(
          Task {
            guard !interruption.hasHappened else { return .success(notStarted(next, folder)) }
            do throws(InstarError) {
              let report = try await supervisor.migrate(
                next, copyingBackupTo: copies, onRecovery: { recoveries.note($0) },
                onEvent: { progress.show($0) })
              return .success(await supervisor.addingCopy(to: report))
            } catch {
              return .failure(error)
            }
          })
      }
      var report = try await runs[index].value.get()
      if let error = report.error, error.code == .unconfirmedAdoption, isConfirmed(error) {
        var request = request
        request.run = RunIdentifier.make()
        request.adoptsDifferences = true
        report = try await supervisor.migrate(request, copyingBackupTo: copies) {
          progress.show($0)
        }
        report = await supervisor.addingCopy(to: report)
      }
      status = .gravest(status, ExitStatus(for: report))
      output.write(report)
    }
    try await recoveries.makeCopies(with: supervisor)
    return status
  }

  /// One for each processor. A store that is named twice is migrated once, so nothing runs beside it. The statements
  /// of two runs would be mixed up.
  private var runsAtOnce: Int {
    Set(stores.paths).count == stores.paths.count && LaunchArguments.debug.level == 0
      ? max(ProcessInfo.processInfo.activeProcessorCount, 1) : 1
  }

  private func request(for store: String, plugins: [String]) -> MigrationRequest {
    var request = MigrationRequest(
      run: RunIdentifier.make(), store: store, plugins: plugins, adopt: adoption.version)
    request.sqlDebugLevel = LaunchArguments.debug.level
    request.stageTimeLimitSeconds = stageTimeLimit.duration.inSeconds
    request.busyTimeoutSeconds = busy.timeoutSeconds
    request.whenBusy = whenBusy
    request.cutover = cutover
    request.workerMemoryBytes = workerMemory
    request.adoptsDifferences = yes
    request.acceptsLoss = acceptLoss
    return request
  }

  /// Asks a person at the terminal whether to adopt a store that differs.
  private func isConfirmed(_ error: InstarError) -> Bool {
    guard !output.json, isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return false }
    Console.note(ConsoleLine.lines(of: error.cause))
    Console.note("Adopt '\(error.store ?? "the store")' despite these differences? Type yes:")
    return readLine() == "yes"
  }

  /// The report on a store whose run had not started when the command was interrupted.
  private func notStarted(_ request: MigrationRequest, _ folder: StateFolder) -> RunReport {
    var report = RunReport(
      run: request.run, store: request.store, result: .failed,
      startedAt: Date().timeIntervalSince1970)
    report.error = folder.completing(
      InstarError(
        .interrupted, "cannot migrate '\(request.store)'", store: request.store,
        cause: "interrupted before the run started", state: "unchanged",
        next: "run: " + CommandText.migrate(request.store, plugins: request.plugins)))
    return report
  }
}

extension RawRepresentable where Self: CaseIterable, RawValue == String {
  /// - Throws: A usage error that lists the names.
  init(named name: String) throws {
    guard let value = Self(rawValue: name) else {
      let names = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValidationError("'\(name)' is not one of \(names)")
    }
    self = value
  }
}
