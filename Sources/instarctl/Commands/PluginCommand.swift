import ArgumentParser

/// `instarctl plugin`
struct PluginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plugin",
    abstract: "Make, build, test, inspect, check, list and sign migration plugins.",
    subcommands: [
      PluginNewCommand.self, PluginBuildCommand.self, PluginTestCommand.self,
      PluginInspectCommand.self, PluginCheckCommand.self,
      PluginListCommand.self, PluginSignCommand.self, PluginVerifyCommand.self,
      PluginKeygenCommand.self,
    ])
}
