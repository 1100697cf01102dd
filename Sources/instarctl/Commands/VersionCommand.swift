import ArgumentParser
import InstarLinux
import InstarSchema

/// The release, and the ABI that a plugin has to have been built for.
let versionText = "instarctl \(releaseNumber), plugin ABI \(PluginNote.supportedABI)"

/// The number of the release; the newest entry of CHANGELOG.md.
private let releaseNumber = "0.1.0"

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
      JSONLine.write(Answer(version: releaseNumber, pluginABI: PluginNote.supportedABI))
    } else {
      Console.write(versionText)
    }
    return .done
  }
}
