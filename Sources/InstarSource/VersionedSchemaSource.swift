public import InstarSchema

/// The Swift source of a `VersionedSchema` with its `@Model` classes that reproduces a schema.
///
/// The source compiles on its own in Swift 5 and 6 mode. Types that a model hides, as a model named `Data` does, are
/// written with their module.
public struct VersionedSchemaSource {
  /// The source.
  public let text: String
  /// What the source cannot express, one sentence each. The source contains them as comments.
  public let notes: [String]

  /// Generates the source of a schema.
  ///
  /// - Parameters:
  ///   - name: The name of the `VersionedSchema`.
  ///   - comment: The comment above it.
  ///   - notes: What the schema cannot express.
  ///   - comments: Comments above properties, by "Entity.property".
  public init(
    _ schema: Schema, name: String, comment: String, notes: [String] = [],
    comments: [String: String] = [:]
  ) {
    let names = SourceNames(schema)
    let schema = names.schema
    let notes = notes + names.notes
    let scope = SourceScope(schema, name: name, comments: comments)
    var lines = ["import Instar", ""] + Self.wrapped(comment, prefix: "/// ")
    if !(notes + scope.notes).isEmpty { lines.append("///") }
    for note in notes + scope.notes {
      lines += Self.wrapped(note, prefix: "/// - ", next: "///   ")
    }
    let version = schema.version
    lines.append("enum \(SwiftName.declared(name)): \(scope.type("VersionedSchema")) {")
    lines.append(
      "  static var versionIdentifier: \(scope.type("Schema")).Version { "
        + "\(scope.type("Schema")).Version(\(version.major), \(version.minor), \(version.patch)) }")
    lines.append("  static var models: [any \(scope.type("PersistentModel")).Type] {")
    let models = schema.entities.map { "\(SwiftName.declared($0.name)).self" }
    let list = "    [\(models.joined(separator: ", "))]"
    lines += list.count <= 100 ? [list] : ["    ["] + models.map { "      \($0)," } + ["    ]"]
    lines.append("  }")
    let superentities = Set(schema.entities.compactMap(\.superentityName))
    for entity in schema.entities {
      lines.append("")
      let source = ModelClassSource(entity, in: scope)
      let superclass = entity.superentityName.map { name in
        (name: SwiftName.declared(name), parameters: scope.inheritedParameters(of: entity))
      }
      let hasSubclasses = superentities.contains(entity.name)
      lines += source.lines(superclass: superclass, hasSubclasses: hasSubclasses).map {
        $0.isEmpty ? "" : scope.indent + $0
      }
    }
    lines.append("}")
    text = lines.joined(separator: "\n") + "\n"
    self.notes = notes + scope.notes
  }

  /// Replaces the characters of a word that cannot be in a comment. Names in notes come from stores.
  private static func visible(_ word: Substring) -> String {
    String(
      String.UnicodeScalarView(
        word.unicodeScalars.map { scalar in
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
          default: scalar
          }
        }))
  }

  /// Returns a text as comment lines of at most 100 characters.
  static func wrapped(
    _ text: String, prefix: String, next: String? = nil, width: Int = 100
  ) -> [String] {
    var lines: [String] = []
    var line = prefix
    for word in text.split(whereSeparator: { $0.isWhitespace || $0.isNewline }).map(visible) {
      if line.count + word.count > width, line != prefix, line != next {
        lines.append(String(line.dropLast()))
        line = next ?? prefix
      }
      line += word + " "
    }
    return lines + [String(line.dropLast())]
  }
}
