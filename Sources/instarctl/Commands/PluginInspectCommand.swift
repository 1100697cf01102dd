import ArgumentParser
import InstarSchema

/// `instarctl plugin inspect`
struct PluginInspectCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show the versions and stages of a plugin.",
    discussion: """
        instarctl plugin inspect Notes.so

      Reads the plugin's note without loading it, then loads the plugin in a confined worker and shows \
      its plans. If the plugin was built for another ABI, it shows only the note and exits with 3.
      """)

  @OptionGroup var plugin: PluginArgument
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let inspection = try await PluginInspection.read(plugin)
    output.write(inspection)
    return inspection.error.map { ExitStatus(for: $0) } ?? .done
  }
}
