import ArgumentParser
import Foundation
import InstarSchema
import InstarWire

/// `instarctl schema export`
struct SchemaExportCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes the versions of a plugin's plan as JSON, to be kept under version control.",
    discussion: """
      With --output, one file for each version: PLAN-VERSION.json. A file whose content is the same \
      is left alone; others are replaced. Without it, the documents go to standard output. The same \
      schema always gives the same text, so that a change of a released version shows up in review; \
      'schema diff' takes such files on either side.
      """)

  @Argument(help: "The plugin.", completion: .file(extensions: ["so"]), transform: FilePath.typed)
  var plugin: String

  @Option(
    name: .customLong("version"),
    help: ArgumentHelp("Only this version.", valueName: "version"),
    transform: Schema.Version.typed)
  var version: Schema.Version?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder to write to. It is made where it is missing.", valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  /// One file.
  private struct WrittenFile: Answer {
    var file: String
    var version: Schema.Version
    var changed: Bool

    var lines: [ConsoleLine] { ["\(file)  \(changed ? "written" : "unchanged")"] }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let reader = try SchemaReader(plan: plan.name)
    let path = FilePath.absolute(plugin)
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
          changed: try OutputFile.replace(file, by: try document.text)))
    }
    return .done
  }
}
