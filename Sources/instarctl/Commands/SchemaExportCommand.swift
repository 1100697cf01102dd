import ArgumentParser
import Foundation
import InstarSchema
import InstarWire

/// `instarctl schema export`
struct SchemaExportCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the versions of a plugin's plan as JSON files for version control.",
    usage: "instarctl schema export [<option> ...] <plugin>",
    discussion: """
        instarctl schema export Notes.so -o schemas

      With --output, writes a file PLAN-VERSION.json for each version, and leaves files with the same \
      content alone. Without it, prints the documents. Equal schemas give equal text, so that a change \
      of a released version shows up in review. 'schema diff' reads these files.
      """)

  @OptionGroup var plugin: PluginArgument

  @Option(
    name: .customLong("version"),
    help: ArgumentHelp("Export only this version.", valueName: "version"),
    transform: Schema.Version.typed)
  var version: Schema.Version?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "Write to this folder, and create it if it is missing.", valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  /// One file.
  private struct WrittenFile: CommandOutput {
    var file: String
    var version: Schema.Version
    var changed: Bool

    var lines: [ConsoleLine] { ["\(file)  \(changed ? "written" : "unchanged")"] }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let reader = SchemaReader(plan: plan.name)
    let path = FilePath.absolute(plugin.file)
    let all = try await reader.versions(of: path)
    let chosen = version == nil ? all : all.filter { $0.schema.version == version }
    guard !chosen.isEmpty else { throw reader.unknown(version, of: path, known: all) }
    guard let folder else {
      for document in chosen {
        output.json ? Console.write(json: document) : Console.write(json: try document.text)
      }
      return .done
    }
    for document in chosen {
      let file = "\(FilePath.absolute(folder))/\(document.plan)-\(document.schema.version).json"
      output.write(
        WrittenFile(
          file: file, version: document.schema.version,
          changed: try OutputFile.replace(file, by: try document.text, makesFolders: true)))
    }
    return .done
  }
}
