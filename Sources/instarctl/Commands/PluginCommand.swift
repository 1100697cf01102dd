import ArgumentParser

/// `instarctl plugin`
struct PluginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plugin",
    abstract: "Build, inspect and check migration plugins.",
    subcommands: [PluginBuildCommand.self, PluginInspectCommand.self, PluginCheckCommand.self])
}
