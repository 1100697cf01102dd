import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema
import InstarSource

/// `instarctl plugin new`
struct PluginNewCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Make a folder with a new plugin, its tests and a sample store.",
    usage: "instarctl plugin new [<option> ...] <name>",
    discussion: """
        instarctl plugin new Notes
        instarctl plugin new Notes --from default.store

      The folder has a plan with two versions of a model and the stage between them, tests that pass, a \
      store at the first version, and a README with the next commands. Replace the models and the \
      stage by your own.

      With --from, the first versions are those of the stores, as 'schema import' reads them, and the \
      last version adds a property as an example. Give it a store of each version that users have. \
      A store that declares no version becomes 1.0.0, the next one 2.0.0, and so on. The stores are \
      only read; the sample store has random rows.

      The plugin is compiled once, so 'swiftc' must be in PATH. A folder that exists is not changed.
      """)

  @Argument(
    help: ArgumentHelp(
      "The name of the plugin, its module and its folder; or the path of the folder.",
      valueName: "name"),
    completion: .directory, transform: FilePath.typed)
  var name: String

  @Option(
    help: ArgumentHelp(
      "A store to read a version from; may be given several times.", valueName: "store"),
    completion: .file(), transform: FilePath.typed)
  var from: [String] = []

  @OptionGroup var output: OutputOptions

  private struct NewPlugin: CommandOutput {
    var folder: String
    var plan: String
    var versions: [Schema.Version]
    var sampleStore: String
    var notes: [String]

    var lines: [ConsoleLine] {
      [
        "made '\(folder)': \(plan), versions \(versions.map(\.description).joined(separator: ", "))",
        "next: cd \(CommandText.quoted(folder)) && instarctl plugin test",
      ]
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let installation = try Installation.locate()
    try installation.requireSDK()
    let path = URL(fileURLWithPath: FilePath.absolute(name)).standardizedFileURL.path
    let module = URL(fileURLWithPath: path).lastPathComponent
    try requireName(module, installation)
    guard !FilePath.exists(path) else {
      throw InstarError(
        .outputFailed, "cannot make plugin '\(name)'", cause: "'\(path)' exists",
        next: "choose another name, or remove '\(path)'")
    }
    var template = PluginTemplate.example(name: module, buildFolder: installation.buildFolder)
    var notes: [String] = []
    if !from.isEmpty {
      (template, notes) = try await PluginTemplate.imported(
        name: module, from: from, buildFolder: installation.buildFolder)
    }
    try await PluginGenerator(template: template, path: path, installation: installation).make()
    output.write(
      NewPlugin(
        folder: path, plan: template.planName, versions: template.versions.map(\.number),
        sampleStore: "\(path)/\(template.samplePath)", notes: notes))
    if !output.json { Console.note(notes.map { "note: \($0)" }) }
    return .done
  }

  /// The name becomes that of a module and, with a suffix, of types.
  private func requireName(
    _ module: String, _ installation: Installation
  ) throws(InstarError) {
    let what = "cannot make plugin '\(name)'"
    guard SwiftName.isIdentifier(module), SwiftName.declared(module) == module else {
      throw InstarError(
        .wrongUsage, what, cause: "'\(module)' cannot be the name of a Swift module",
        next: "use letters, digits and '_', such as \(SwiftName.type(module))")
    }
    let isTaken = FileManager.default.fileExists(
      atPath: installation.modulesFolder + "/\(module).swiftmodule")
    let isTakenInPackage = FileManager.default.fileExists(
      atPath: installation.modulesFolder + "/\(module).swiftinterface")
    let known = ["Swift", "Foundation", "Glibc", "Testing", "XCTest", "Observation", "Dispatch"]
    guard !isTaken, !isTakenInPackage, !known.contains(module) else {
      throw InstarError(
        .wrongUsage, what, cause: "'\(module)' is the name of another module",
        next: "choose another name, such as \(module)Plugin")
    }
  }
}
