import ArgumentParser

/// `instarctl plugin`
struct PluginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plugin",
    abstract: "Builds migration plugins and looks into them.",
    subcommands: [PluginBuildCommand.self, PluginInspectCommand.self])
}
