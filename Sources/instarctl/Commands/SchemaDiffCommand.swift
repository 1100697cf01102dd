import ArgumentParser
import InstarSchema
import InstarSource
import InstarWire

/// `instarctl schema diff`
struct SchemaDiffCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Says what changes from one schema to another, and which stage that needs.",
    discussion: """
      Either side can be a store, a version of a plugin (Notes.so@1.0.0; without a version its \
      last), or a file that 'schema export' wrote. Ends with the stage to paste into the plan; what \
      only its author can know is a placeholder <#…#> in it. Exits with 0 whether or not the two \
      differ.
      """)

  @Argument(
    help: ArgumentHelp(
      "What there is: a store, a version of a plugin, or an exported schema.",
      valueName: "old"),
    completion: .file(), transform: SchemaSubject.typed)
  var old: SchemaSubject

  @Argument(
    help: ArgumentHelp("What there shall be.", valueName: "new"),
    completion: .file(), transform: SchemaSubject.typed)
  var new: SchemaSubject

  @OptionGroup var plan: PlanOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let reader = try SchemaReader(plan: plan.name)
    output.write(
      FoundDifference(from: try await reader.read(old), to: try await reader.read(new)))
    return .done
  }
}
