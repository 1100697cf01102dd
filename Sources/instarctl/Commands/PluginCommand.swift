import ArgumentParser

/// `instarctl plugin`
struct PluginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plugin",
    abstract: "Build and inspect migration plugins.",
    subcommands: [PluginBuildCommand.self, PluginInspectCommand.self])
}
