import ArgumentParser
import InstarSchema

/// `instarctl schema show`
struct SchemaShowCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Shows the entities of a store or of a plugin's version, in words.",
    discussion: """
      Of a plugin the last version is shown, unless one is named: Notes.so@1.0.0. Of a store that \
      carries no model, only what its tables tell is known.
      """)

  @Argument(
    help: ArgumentHelp(
      "A store, a plugin, or a file that 'schema export' wrote.",
      valueName: "store|plugin.so[@version]|schema.json"),
    completion: .file(), transform: SchemaSubject.typed)
  var subject: SchemaSubject

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    output.write(try await SchemaReader(plan: plan.name).read(subject))
    return .done
  }
}
