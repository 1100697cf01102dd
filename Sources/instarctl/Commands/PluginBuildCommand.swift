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

      Sources that compile as Swift 5 may break the concurrency rules of Swift 6. With \
      --swift-version 6, the compiler's errors about them are followed by what they mean for a plan \
      and how to fix them.

      The module gets its name from the file of the plugin. Sources that name their own module, as in \
      Notes.Folder.self, need --module-name Notes.

      Every file can use the SDK, also one that imports Foundation only.

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

  @Option(
    help: ArgumentHelp("Compile with the rules of this version of Swift.", valueName: "version"))
  var swiftVersion = PluginBuilder.LanguageMode.swift5

  @Option(
    help: ArgumentHelp(
      "Compile the sources as the module of this name.", valueName: "name"))
  var moduleName: String?

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let installation = try Installation.locate()
    try installation.requireSDK()
    let builder = PluginBuilder(
      installation: installation, sources: sources, output: FilePath.absolute(plugin),
      isDebugBuild: debug, languageMode: swiftVersion, moduleName: moduleName)
    output.write(try await builder.build())
    return .done
  }
}
