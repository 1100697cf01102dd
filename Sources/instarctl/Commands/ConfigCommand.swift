import ArgumentParser

/// `instarctl config`
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Checks the daemon's configuration, and opens its folders to the service.",
    subcommands: [ConfigCheckCommand.self, ConfigApplyCommand.self])
}

/// Which configuration a command is about.
struct ConfigurationOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The configuration. The files *.yml of the folder conf.d beside it belong to it.",
      valueName: "file"),
    completion: .file(extensions: ["yml"]))
  var file = "/etc/instar/instard.yml"

  var path: String { FilePath.absolute(file) }
}
