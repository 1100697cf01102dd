import ArgumentParser
import InstarLinux
import InstarSchema

/// `instarctl plugin build`
struct PluginBuildCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "build",
    abstract: "Compile Swift sources into a plugin.",
    discussion: """
        instarctl plugin build Sources/Notes -o Notes.so

      Compiles against Instar's SDK with the 'swiftc' in PATH, then inspects the plugin: a confined \
      worker loads it and checks its plans. A build that fails in either step leaves no new plugin \
      behind, and keeps an earlier one. Compiler messages go to standard error unchanged.

      The plugin gets its name when it is complete, so it can be built into a folder that instard \
      watches.
      """)

  @Argument(
    help: ArgumentHelp(
      "A Swift file or a folder of them; of a package, the folder Sources is used.",
      valueName: "source"),
    completion: .file(extensions: ["swift"]))
  var sources: [String]

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write the plugin to this file.", valueName: "file.so"),
    completion: .file(extensions: ["so"]))
  var plugin: String

  @Flag(help: "Build without optimization and with debug information.")
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
