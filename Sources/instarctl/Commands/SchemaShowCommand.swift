import ArgumentParser
import InstarSchema

/// `instarctl schema show`
struct SchemaShowCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show the entities of a store or of a plugin's version.",
    discussion: """
        instarctl schema show Notes.so@1.0.0

      For a plugin without @VERSION it shows the last version. For a store that contains no model it \
      shows what can be read from the tables.
      """)

  @Argument(
    help: ArgumentHelp(
      "A store, a plugin, or a file that 'schema export' wrote.",
      valueName: "store|plugin.so[@version]|schema.json"),
    completion: .file(), transform: SchemaArgument.typed)
  var subject: SchemaArgument

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    output.write(try await SchemaReader(plan: plan.name).read(subject))
    return .done
  }
}
