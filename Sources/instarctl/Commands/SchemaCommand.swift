import ArgumentParser

/// `instarctl schema`
struct SchemaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Show, compare, export and import the schemas of stores and plugins.",
    subcommands: [
      SchemaShowCommand.self, SchemaDiffCommand.self, SchemaExportCommand.self,
      SchemaImportCommand.self,
    ])
}
