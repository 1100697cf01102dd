import ArgumentParser
import Foundation
import Glibc
import InstarConfiguration
import InstarDaemon
import InstarLinux
import InstarSchema
import InstarWire
import Logging
import ServiceLifecycle
import UnixSignals

@main
struct Instard: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "instard",
    abstract: "Watches folders and migrates the SQLite stores in them that are behind.",
    discussion: """
      instard reads its configuration, watches the folders named there, and migrates every store \
      that a plugin knows at an earlier version. It stays in the foreground, and notifies a service \
      manager when it is ready (sd_notify).

      Events go to the journal (journalctl -t instard); where there is none, to standard error, one \
      line each. --foreground sends them to standard error, --journal to the journal, both flags to \
      both. Standard error is not used where it is connected to the journal, so that no event is \
      logged twice.

      Signals:

        SIGTERM, SIGINT   stop: finish runs in their cutover, roll back all others
        SIGHUP            read the configuration again, rescan all folders, and
                          retry the stores that instard had stopped retrying

      Exit status: 0 stopped as told, 1 failed, 2 wrong usage or configuration.
      """,
    version: Release.version)

  @Option(
    help: ArgumentHelp("The configuration.", valueName: "file"),
    completion: .file(extensions: ["yml"]))
  var config = "/etc/instar/instard.yml"

  @Option(
    help: ArgumentHelp(
      "Keep ledger and phase journal here, whatever 'state' says.", valueName: "folder"),
    completion: .directory)
  var stateDir: String?

  @Option(
    help: ArgumentHelp(
      "A folder of plugins; may be repeated. Replaces 'plugins' of the configuration.",
      valueName: "folder"),
    completion: .directory)
  var pluginDir: [String] = []

  @Flag(help: "Report to standard error.")
  var foreground = false

  @Flag(help: "Report to the journal.")
  var journal = false

  @Flag(help: "Report also what is only of interest when something is looked into.")
  var verbose = false

  @Flag(help: "Say whether the configuration can be used, and end.")
  var check = false

  func run() async throws {
    let configuration = try readConfiguration()
    if check {
      print("'\(config)' can be used: \(configuration.watches.count) watches")
      for watch in configuration.watches
      where !FileManager.default.fileExists(atPath: watch.folder) {
        print("note: '\(watch.folder)' does not exist (yet)")
      }
      return
    }
    let outputs = try LogOutputs(foreground: foreground, journal: journal)
    let service = DaemonService(
      configuration: configuration, installation: try Installation.locate(),
      log: EventLog { outputs.handler($0, level: verbose ? .debug : .info) },
      readConfiguration: { () throws(InstarError) in try readConfiguration() })
    // A keeper that dies while it is written to must not take the daemon along.
    signal(SIGPIPE, SIG_IGN)
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
        ],
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "instard") { outputs.handler($0, level: .warning) }))
    let reload = Task {
      for await _ in await UnixSignalsSequence(trapping: .sighup) { service.reload() }
    }
    defer { reload.cancel() }
    try await group.run()
  }

  private func readConfiguration() throws(InstarError) -> Configuration {
    var configuration = try Configuration.read(path: config)
    if let stateDir { configuration.stateFolder = absolute(stateDir) }
    if !pluginDir.isEmpty { configuration.pluginFolders = pluginDir.map(absolute) }
    return configuration
  }

  private func absolute(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  static func main() async {
    do {
      let command = try parse()
      try await command.run()
    } catch let error as InstarError {
      complain(error.description)
      Glibc.exit(error.code == .invalidConfiguration ? 2 : 1)
    } catch {
      let code = exitCode(for: error)
      guard !code.isSuccess else {
        // --help and --version.
        print(fullMessage(for: error))
        Glibc.exit(0)
      }
      complain(fullMessage(for: error))
      Glibc.exit(code == .validationFailure ? 2 : 1)
    }
  }

  private static func complain(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }
}
