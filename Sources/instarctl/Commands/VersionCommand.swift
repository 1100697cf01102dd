import ArgumentParser
import InstarLinux
import InstarSchema
import InstarWire

/// The release, and the ABI that plugins must be built for.
let versionText = "instarctl \(Release.version), plugin ABI \(PluginNote.supportedABI)"

/// `instarctl version`
struct VersionCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "version", abstract: "Show the version of Instar.")

  @OptionGroup var output: OutputOptions

  private struct ProgramVersion: CommandOutput {
    var version = Release.version
    var pluginABI = PluginNote.supportedABI

    var lines: [ConsoleLine] { ["\(versionText)"] }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    output.write(ProgramVersion())
    return .done
  }
}
