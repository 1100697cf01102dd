import ArgumentParser
import InstarLinux
import InstarSchema

/// `instarctl plugin build`
struct PluginBuildCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "build",
    abstract: "Compiles Swift sources to a plugin.",
    discussion: """
      Runs the 'swiftc' in PATH against Instar's SDK. The plugin appears under its name only when it \
      is whole, so it can be built right into a folder that a daemon watches. What the compiler \
      says goes to standard error unchanged.

      At its end the build loads the plugin in a confined worker, as 'plugin inspect' does. Where a \
      plan is invalid, the build fails with that error and leaves no plugin behind.
      """)

  @Argument(
    help: ArgumentHelp(
      "Swift files, or folders of them; of a package its Sources.", valueName: "source"),
    completion: .file(extensions: ["swift"]))
  var sources: [String]

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The plugin to write.", valueName: "file.so"),
    completion: .file(extensions: ["so"]))
  var plugin: String

  @Flag(help: "Build for a debugger: not optimized, with debug information.")
  var debug = false

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let installation = try Installation.locate()
    try installation.requireSDK()
    let builder = PluginBuilder(
      installation: installation, sources: sources, output: FilePath.absolute(plugin),
      isDebugBuild: debug)
    output.write(try await builder.build())
    return .done
  }
}
