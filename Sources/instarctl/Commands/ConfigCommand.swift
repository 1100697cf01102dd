import ArgumentParser

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
      "The configuration. The files conf.d/*.yml beside it are part of it.",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var file = "/etc/instar/instard.yml"

  var path: String { FilePath.absolute(file) }
}
