import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema

/// The command-line tool of administrators and developers. Most of it works without the daemon.
@main
struct Instarctl: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "instarctl",
    abstract: "Probe, plan and migrate SQLite model stores, and build migration plugins.",
    discussion: """
        instarctl plugin build Sources/Notes -o Notes.so
        instarctl plan --plugin Notes.so a.store
        instarctl migrate --plugin Notes.so a.store b.store
        instarctl restore a.store

      A migration keeps a verified backup. A store is either migrated as \
      a whole or left unchanged.

      With --json, standard output has one JSON object per line, one for each store. An error that \
      concerns no store is {"error": {...}}. Progress and messages go to standard error.

      To show the SQL of a migration on standard error, add -com.apple.CoreData.SQLDebug LEVEL, as for \
      Apple's frameworks, or set INSTAR_SQL_DEBUG=LEVEL: 1 shows statements, times and rows, 3 also \
      bound values, 4 also query plans. -com.apple.coredata.swiftdata.debug 1 is level 1.

      Exit status:

        0   done, or nothing to do
        1   failed; the error says which state the store is in
        2   wrong usage
        3   refused by a check or by a hold, too little free space for the
            run, or the store is ahead, unknown, unversioned, unreadable,
            corrupt, encrypted or not a store
        4   busy: another process has the store locked or open
        5   a store, backup, plugin, configuration or other file that was
            named does not exist
        6   instard or etcd cannot be reached, or etcd refused a request

      For several stores, instarctl returns the most severe status. From most to least severe: \
      1, 6, 3, 5, 4, 0.
      """,
    version: versionText,
    subcommands: [
      ProbeCommand.self, PlanCommand.self, RehearseCommand.self, MigrateCommand.self,
      VerifyCommand.self, RestoreCommand.self,
      BackupsCommand.self, HoldCommand.self, ReleaseCommand.self, PluginCommand.self,
      SchemaCommand.self,
      StatusCommand.self, StoresCommand.self, RetryCommand.self, PauseCommand.self,
      ResumeCommand.self, ApproveCommand.self, RescanCommand.self, HistoryCommand.self,
      JournalCommand.self,
      ReportCommand.self, RolloutCommand.self,
      ConfigCommand.self,
      VersionCommand.self,
    ])

  static func main() async {
    StandardStreams.openMissing()
    do {
      if let argument = LaunchArguments.malformed {
        throw ValidationError(
          "the argument '\(argument)' is not valid UTF-8; give the file or folder a name in UTF-8"
        )
      }
      if LaunchArguments.beginsInMalformedFolder {
        throw ValidationError(
          "the path of the working folder is not valid UTF-8; change to another folder, or rename this one"
        )
      }
      // ArgumentParser shows the help of the commands before it, as if nothing were wrong.
      if LaunchArguments.remaining.first == "help", let problem = named.problem {
        throw ValidationError(problem)
      }
      var command = try parseAsRoot(PackedPaths.pack(LaunchArguments.remaining))
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      end(with: error)
    }
  }

  /// Prints what ArgumentParser says and exits. Its status for a wrong usage, 64, becomes 2.
  private static func end(with error: any Error) -> Never {
    let code = exitCode(for: error)
    if code == .validationFailure {
      let (command, problem) = named
      let failure = InstarError(
        usageOf: command,
        problem: problem
          ?? Self.message(for: error)
          .replacingOccurrences(of: ". Did you mean", with: "; did you mean"))
      // The options of the command could not be parsed.
      let isJSON = LaunchArguments.remaining.prefix { $0 != "--" }.contains("--json")
      if isJSON { Console.write(json: ["error": failure]) }
      Console.note(failure)
    } else {
      let lines = ConsoleLine.lines(of: fullMessage(for: error))
      code == .success ? Console.write(lines) : Console.note(lines)
    }
    Console.endIfOutputIsLost()
    Foundation.exit(code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue)
  }
}

extension Instarctl {
  /// The command that the command line names, such as "instarctl plugin build", and the problem where a further name is
  /// not a command. ArgumentParser takes such a name for an argument.
  private static var named: (command: String, problem: String?) {
    var command: any ParsableCommand.Type = Self.self
    var path = "instarctl"
    let names = LaunchArguments.remaining
    for name in names.first == "help" ? names.dropFirst() : names[...] {
      let commands = command.configuration.subcommands
      if commands.isEmpty || name.hasPrefix("-") { break }
      guard let next = commands.first(where: { $0.configuration.commandName == name }) else {
        let names = commands.compactMap { $0.configuration.commandName }
        let hint = Suggestion.nearest(to: name, among: names).map { "; did you mean '\($0)'?" }
        return (path, "unknown command '\(name)'\(hint ?? "")")
      }
      command = next
      path += " \(name)"
    }
    return (path, nil)
  }
}

/// A command of instarctl. It reports an error in one form and exits with a documented status.
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
