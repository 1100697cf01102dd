import ArgumentParser

/// The one plugin that a command works on.
struct PluginArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A plugin.", valueName: "plugin"), completion: .file(extensions: ["so"]),
    transform: FilePath.typed)
  var file: String
}
