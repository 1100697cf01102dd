import ArgumentParser
import Foundation
import Glibc
import InstarConfiguration
import InstarDaemon
import InstarLinux
import InstarSchema
import InstarSystemd
import InstarWire
import Logging
import ServiceLifecycle
import UnixSignals

@main
struct Instard: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "instard",
    abstract: "Watch folders and migrate the SQLite stores in them that are behind.",
    discussion: """
      instard watches the folders of its configuration. It migrates every store in them that is \
      at an earlier version of a plugin's plan. It never goes into the background: the option --foreground only \
      sends the log to standard error. It tells the service manager when it is ready (sd_notify).

      Example: try a configuration in a terminal
        instard --config ./instard.yml --foreground

      An ordinary user's instard serves that user's stores only. If its configuration names no 'state', the state \
      folder is ~/.local/state/instar, and the control socket is instard.sock in it. instarctl asks the system's \
      instard, unless its option --socket names this socket.

      Log:
        If there is a journal, instard logs to it (journalctl -t instard),
        with fields. Otherwise it logs to standard error, one line per event.
        --foreground   log to standard error even if there is a journal
        --journal      log to the journal; with --foreground, to both
        If standard error is connected to the journal, instard logs to the
        journal only.

      Signals:
        SIGTERM, SIGINT   stop: finish runs in their cutover, roll back all
                          others
        SIGHUP            read the configuration again, rescan all folders
                          and plugins, and retry all stores but damaged
                          ones whose file is the same

      Exit status: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration.
      """,
    version: Release.version)

  @Option(
    help: ArgumentHelp("The configuration file.", valueName: "file"),
    completion: .file(extensions: ["yml"]))
  var config = "/etc/instar/instard.yml"

  @Option(
    help: ArgumentHelp(
      "The folder of the ledger and the phase journal. Replaces 'state' of the configuration.",
      valueName: "folder"),
    completion: .directory)
  var stateDir: String?

  @Option(
    help: ArgumentHelp(
      "A folder of plugins. Can be repeated. Replaces 'plugins' of the configuration.",
      valueName: "folder"),
    completion: .directory)
  var pluginDir: [String] = []

  @Flag(help: "Log to standard error.")
  var foreground = false

  @Flag(help: "Log to the journal.")
  var journal = false

  @Flag(help: "Log details too, such as stores that are current.")
  var verbose = false

  @Flag(help: "Check the configuration and exit.")
  var check = false

  func run() async throws {
    if check {
      let (configuration, mistakes) = Configuration.check(path: config)
      guard mistakes.isEmpty else {
        Self.complain(mistakes.map(\.description).joined(separator: "\n"))
        Glibc.exit(2)
      }
      let count = configuration.watches.count
      print("'\(config)' can be used: \(count.counted("watch", "watches"))")
      let folders =
        configuration.watches.map(\.folder) + withOptions(configuration).namedPluginFolders
      for folder in folders where !FileManager.default.fileExists(atPath: folder) {
        print("note: '\(folder)' does not exist yet")
      }
      return
    }
    let configuration = try readConfiguration()
    let outputs = try logOutputs()
    let service = DaemonService(
      configuration: configuration, configurationFile: absolute(config),
      installation: try Installation.locate(), passedSocket: Self.passedSocket,
      log: EventLog {
        EventLogHandler(identifier: $0, level: verbose ? .debug : .info, outputs: outputs)
      },
      readConfiguration: { () throws(InstarError) in try readConfiguration() })
    MemorySettings.shareArenas()
    // Writing to a keeper that died must not end the daemon.
    signal(SIGPIPE, SIG_IGN)
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
        ],
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "instard") {
          EventLogHandler(identifier: $0, level: .warning, outputs: outputs)
        }))
    // Trapped before the service can say that it is ready: a SIGHUP before that would end the daemon.
    let reloadSignals = await UnixSignalsSequence(trapping: .sighup)
    let reload = Task {
      for await _ in reloadSignals { service.reload() }
    }
    defer { reload.cancel() }
    try await group.run()
  }

  private func logOutputs() throws(InstarError) -> [EventLogHandler.Output] {
    guard !journal || Journal.isAvailable else {
      throw InstarError(
        .unsupported, "cannot log to the journal",
        cause: "/run/systemd/journal/socket does not exist", next: "run instard without --journal")
    }
    // A service's standard error is in the journal already, but without fields.
    let usesStandardError =
      foreground ? !Journal.receivesStandardError : !journal && !Journal.isAvailable
    let usesJournal = journal || !usesStandardError
    return (usesJournal ? [.journal] : []) + (usesStandardError ? [.standardError] : [])
  }

  private func readConfiguration() throws(InstarError) -> Configuration {
    withOptions(try Configuration.read(path: config))
  }

  /// Returns the configuration with what the options replace in it.
  private func withOptions(_ configuration: Configuration) -> Configuration {
    var configuration = configuration
    if let stateDir { configuration.stateFolder = absolute(stateDir) }
    if !pluginDir.isEmpty { configuration.pluginFolders = pluginDir.map(absolute) }
    return configuration
  }

  private func absolute(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  /// The descriptor of the control socket, if the service manager passed one: with `FileDescriptorName=control`, or the
  /// only one.
  nonisolated(unsafe) private static var passedSocket: Int32?

  static func main() async {
    StandardStreams.openMissing()
    // First, because it changes the environment, which other threads may read.
    let passed = PassedSocket.takeAll()
    passedSocket =
      (passed.first { $0.name == "control" } ?? (passed.count == 1 ? passed[0] : nil))?.descriptor
    do {
      let command = try parse()
      try await command.run()
    } catch let error as InstarError {
      complain(error.description)
      Glibc.exit([.invalidConfiguration, .missingFile].contains(error.code) ? 2 : 1)
    } catch {
      let code = exitCode(for: error)
      guard !code.isSuccess else {
        // --help and --version.
        print(fullMessage(for: error))
        Glibc.exit(0)
      }
      guard code == .validationFailure else {
        complain(fullMessage(for: error))
        Glibc.exit(1)
      }
      complain(InstarError(usageOf: "instard", problem: message(for: error)).description)
      Glibc.exit(2)
    }
  }

  private static func complain(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }
}
