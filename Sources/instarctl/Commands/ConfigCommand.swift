import ArgumentParser
import InstarSchema

/// `instarctl config`
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check the configuration of instard, and let the service write to its folders.",
    subcommands: [ConfigCheckCommand.self, ConfigApplyCommand.self])
}

/// The configuration that a command reads.
struct ConfigurationOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The configuration. The files conf.d/*.yml beside it are part of it. (default: /etc/instar/instard.yml)",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var file = "/etc/instar/instard.yml"

  var path: String { FilePath.absolute(file) }

  /// Completes an error for the commands that take the file as their argument; the other programs have `--config`.
  func completing(_ error: InstarError, command: String) -> InstarError {
    guard error.code == .missingFile else { return error }
    var error = error
    error.next = "create \(CommandText.quoted(path)), or run: instarctl config \(command) FILE"
    return error
  }
}
