import ArgumentParser
import InstarSchema

/// A schema as it is named on the command line: `a.store`, `Notes.so`, `Notes.so@1.0.0` or `Notes-1.0.0.json`.
struct SchemaArgument {
  enum Kind {
    case store
    /// Without a version, the last one of the plan.
    case plugin(Schema.Version?)
    case document
  }

  var kind: Kind
  /// As typed, without a version.
  var path: String

  /// - Throws: `ValidationError` for an empty path and for `Notes.so@text`.
  static func typed(_ text: String) throws -> SchemaArgument {
    let text = try FilePath.typed(text)
    if text.hasSuffix(".json") { return SchemaArgument(kind: .document, path: text) }
    if text.hasSuffix(".so") { return SchemaArgument(kind: .plugin(nil), path: text) }
    if let at = text.lastIndex(of: "@"), text[..<at].hasSuffix(".so") {
      let version = try Schema.Version.typed(String(text[text.index(after: at)...]))
      return SchemaArgument(kind: .plugin(version), path: String(text[..<at]))
    }
    return SchemaArgument(kind: .store, path: text)
  }
}

/// The plan to use of a plugin with several.
struct PlanOptions: ParsableArguments {
  @Option(
    name: .customLong("plan"),
    help: ArgumentHelp("The plan to use of a plugin that has several.", valueName: "name"))
  var name: String?
}
