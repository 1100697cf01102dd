import ArgumentParser
import Foundation
import InstarSchema

/// The administrator's and the developer's tool: what can be done to stores and plugins without a
/// daemon.
@main
struct Instarctl: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "instarctl",
    abstract: "Looks at, plans and migrates SQLite model stores, and builds migration plugins.",
    discussion: """
      A store is migrated on a private clone, with a verified backup, or left as it was.

        instarctl plugin build Sources/Notes -o Notes.so
        instarctl plan --plugin Notes.so a.store
        instarctl migrate --plugin Notes.so a.store b.store

      With --json, standard output holds one object a line, one for each store; a failure that is \
      about no store is {"error": {...}}. Progress and messages go to standard error.

      Exit status: 0 done, or nothing to do; 1 failed, the store is unchanged; 2 wrong usage; \
      3 refused by a check (also: newer than the plan, unknown, unversioned, corrupt or no store); \
      4 somebody else holds the store; 5 no such file; 6 the daemon cannot be reached. \
      With several stores it is the gravest of theirs, in the order 1, 3, 5, 4, 0.

      -com.apple.CoreData.SQLDebug LEVEL and -com.apple.coredata.swiftdata.debug 1 are accepted \
      anywhere, as Apple's frameworks accept them, and INSTAR_SQL_DEBUG=LEVEL in the environment: a \
      migration then shows its SQL statements on standard error, with their times and rows; from \
      level 3 also the values bound to them, from level 4 also how SQLite finds the rows.
      """,
    version: versionText,
    subcommands: [
      ProbeCommand.self, PlanCommand.self, MigrateCommand.self, PluginCommand.self,
      SchemaCommand.self, HistoryCommand.self, ConfigCommand.self, VersionCommand.self,
    ])

  static func main() async {
    do {
      var command = try parseAsRoot(LaunchArguments.ofThisProcess.remaining)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      end(with: error)
    }
  }

  /// Says what ArgumentParser has to say and exits. Its own status for a wrong usage, 64, becomes 2.
  private static func end(with error: any Error) -> Never {
    let message = fullMessage(for: error)
    let code = exitCode(for: error)
    if !message.isEmpty {
      let lines = ConsoleLine.lines(of: message)
      code == .success ? Console.write(lines) : Console.note(lines)
    }
    Foundation.exit(code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue)
  }
}

/// A command of instarctl: does its work, reports what went wrong in one shape, and ends with a
/// documented status.
protocol InstarCommand: AsyncParsableCommand {
  var output: OutputOptions { get }
  func perform() async throws(InstarError) -> ExitStatus
}

extension InstarCommand {
  func run() async throws {
    let status: ExitStatus
    do {
      status = try await perform()
    } catch {
      output.report(error)
      status = ExitStatus(for: error)
    }
    throw ExitCode(status.rawValue)
  }
}
