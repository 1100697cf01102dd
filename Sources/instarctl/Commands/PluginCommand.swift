import ArgumentParser

/// `instarctl plugin`
struct PluginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plugin",
    abstract: "Build, inspect, check, list and sign migration plugins.",
    subcommands: [
      PluginBuildCommand.self, PluginInspectCommand.self, PluginCheckCommand.self,
      PluginListCommand.self, PluginSignCommand.self, PluginVerifyCommand.self,
      PluginKeygenCommand.self,
    ])
}
