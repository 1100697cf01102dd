import ArgumentParser
import InstarSchema

/// What a schema command is about, as typed: `a.store`, `Notes.so`, `Notes.so@1.0.0` or `Notes-1.0.0.json`.
struct SchemaSubject {
  enum Kind {
    case store
    /// The last version, where none was typed.
    case plugin(Schema.Version?)
    case document
  }

  var kind: Kind
  /// As typed, without a version.
  var path: String

  /// - Throws: `ValidationError` for an empty path and for `Notes.so@text`.
  static func typed(_ text: String) throws -> SchemaSubject {
    let text = try FilePath.typed(text)
    if text.hasSuffix(".json") { return SchemaSubject(kind: .document, path: text) }
    if text.hasSuffix(".so") { return SchemaSubject(kind: .plugin(nil), path: text) }
    if let at = text.lastIndex(of: "@"), text[..<at].hasSuffix(".so") {
      let version = try Schema.Version.typed(String(text[text.index(after: at)...]))
      return SchemaSubject(kind: .plugin(version), path: String(text[..<at]))
    }
    return SchemaSubject(kind: .store, path: text)
  }
}

/// Which plan of a plugin is meant.
struct PlanOptions: ParsableArguments {
  @Option(
    name: .customLong("plan"),
    help: ArgumentHelp("Of a plugin with several plans, the one that is meant.", valueName: "name"))
  var name: String?
}
