import ArgumentParser
import InstarLinux
import InstarSchema
import InstarWire

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
      --swift-version 6, instarctl explains after each such error what it means for a plan, and how to \
      fix it.

      The module gets its name from the file of the plugin. Sources that name their own module, as in \
      Notes.Folder.self, need --module-name Notes.

      Every file can use the SDK, even one that imports only Foundation.

      instarctl gives the plugin its name only when it is complete, so you can build it into a folder that \
      instard watches.

      While you write a plan, build, check and rehearse it at each save:

        instarctl plugin build Sources -o Notes.so --watch --rehearse a.store

      If each version has its own file, such a build takes a second when only a closure has changed. It is not optimized: build the plugin without --watch before you install it.
      """)

  @Argument(
    help: ArgumentHelp(
      "A Swift file, or a folder of Swift files. If the folder has a folder Sources, instarctl uses that; it leaves out the folder Tests.",
      valueName: "source"),
    completion: .file(extensions: ["swift"]), transform: FilePath.typed)
  var sources: [String]

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write the plugin to this file.", valueName: "file.so"),
    completion: .file(extensions: ["so"]), transform: FilePath.typed)
  var plugin: String

  @Flag(
    help: ArgumentHelp(
      "Build without optimization and with debug information. Keeps what it compiled in .NAME.so.objects beside the "
        + "plugin, so that the next such build compiles only what changed."))
  var debug = false

  @Flag(
    help:
      "Build with --debug, check the plans, and do so again whenever a source changes, until Ctrl-C."
  )
  var watch = false

  @Option(
    help: ArgumentHelp(
      "With --watch: rehearse the plans on this store after each build. Repeat for several.",
      valueName: "store"),
    completion: .file(), transform: FilePath.typed)
  var rehearse: [String] = []

  @Option(
    help: ArgumentHelp("Compile with the rules of this version of Swift.", valueName: "version"))
  var swiftVersion = PluginBuilder.LanguageMode.swift5

  @Option(
    help: ArgumentHelp(
      "Compile the sources as the module of this name.", valueName: "name"))
  var moduleName: String?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if !rehearse.isEmpty, !watch { throw ValidationError("--rehearse needs --watch") }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let installation = try Installation.locate()
    try installation.requireSDK()
    var builder = PluginBuilder(
      installation: installation, sources: sources, output: FilePath.absolute(plugin),
      isDebugBuild: debug || watch, languageMode: swiftVersion, moduleName: moduleName)
    guard watch else {
      output.write(try await builder.build())
      return .done
    }
    // A wrong path would be waited for without end.
    _ = try builder.files()
    for store in rehearse { try FilePath.requireStore(FilePath.ofStore(store), to: "rehearse") }
    builder.checksPlans = true
    var changes = try SourceWatch(sources: sources)
    Cancellation.observe()
    repeat {
      do throws(InstarError) {
        output.write(try await builder.build())
        try await rehearseStores(with: builder.output)
      } catch {
        if Cancellation.isRequested { break }
        output.report(error)
      }
      Console.note("waiting for changes of the sources; Ctrl-C ends")
    } while try await changes.waitForChange()
    return .done
  }

  private func rehearseStores(with plugin: String) async throws(InstarError) {
    guard !rehearse.isEmpty else { return }
    let runs = try StoreRuns(state: state, shows: .output)
    let requests = rehearse.map { store in
      var request = MigrationRequest(
        run: RunIdentifier.make(), store: FilePath.ofStore(store), plans: [plugin])
      request.rehearses = true
      return request
    }
    try await runs.perform(requests) { (_, result) throws(InstarError) in
      output.write(try result.get())
    }
  }
}
