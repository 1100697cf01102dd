import ArgumentParser
import InstarLinux
import InstarSchema
import InstarWire

/// The release, and the ABI that a plugin has to have been built for.
let versionText = "instarctl \(Release.version), plugin ABI \(PluginNote.supportedABI)"

/// `instarctl version`
struct VersionCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "version", abstract: "Shows the version of Instar.")

  @OptionGroup var output: OutputOptions

  private struct Answer: Encodable {
    var version: String
    var pluginABI: UInt32
  }

  func perform() async throws(InstarError) -> ExitStatus {
    if output.json {
      JSONLine.write(Answer(version: Release.version, pluginABI: PluginNote.supportedABI))
    } else {
      Console.write(versionText)
    }
    return .done
  }
}
