import ArgumentParser
import InstarSchema
import InstarSource
import InstarWire

/// `instarctl schema diff`
struct SchemaDiffCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Show what changes between two schemas, and which stage that needs.",
    discussion: """
        instarctl schema diff a.store Notes.so
        instarctl schema diff Notes.so@1.0.0 Notes.so@2.0.0

      Each side is a store, a version of a plugin (without @VERSION the last one), or a file that \
      'schema export' wrote. The output ends with the stage to paste into the plan; a placeholder \
      <#…#> marks a value that only the author of the plan knows. The exit status is 0 whether or not \
      the schemas differ.
      """)

  @Argument(
    help: ArgumentHelp(
      "The schema to migrate from: a store, PLUGIN.so[@VERSION] or an exported schema.",
      valueName: "old"),
    completion: .file(), transform: SchemaArgument.typed)
  var old: SchemaArgument

  @Argument(
    help: ArgumentHelp("The schema to migrate to, likewise.", valueName: "new"),
    completion: .file(), transform: SchemaArgument.typed)
  var new: SchemaArgument

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let reader = SchemaReader(plan: plan.name)
    output.write(
      SchemaDiff(from: try await reader.read(old), to: try await reader.read(new)))
    return .done
  }
}
