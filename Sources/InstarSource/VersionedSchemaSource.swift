public import InstarSchema

/// A `VersionedSchema` with its `@Model` classes as Swift source that reproduces a schema.
///
/// The source compiles by itself, in Swift 5 and 6 mode; types that a model hides by its own name, such as a model called
/// `Data`, are written with their module.
public struct VersionedSchemaSource {
  /// The source.
  public let text: String
  /// What the source does not say, one sentence each; also in the source, as comments.
  public let notes: [String]

  /// What a schema does not say of the Swift types behind it, by "Entity.property".
  public struct Composites: Sendable {
    /// Composites whose columns are the cases of an enum.
    public var enumerations: Set<String>
    /// Composites that every model has a value of.
    public var required: Set<String>

    /// Without enumerations, and all optional, where nothing is known.
    public init(enumerations: Set<String> = [], required: Set<String> = []) {
      self.enumerations = enumerations
      self.required = required
    }
  }

  /// Writes a schema.
  ///
  /// - Parameters:
  ///   - name: What the `VersionedSchema` is called.
  ///   - comment: What stands above it.
  ///   - notes: What the schema does not say.
  ///   - comments: What stands above a property, by "Entity.property".
  public init(
    _ schema: Schema, name: String, comment: String, composites: Composites = Composites(),
    notes: [String] = [], comments: [String: String] = [:]
  ) {
    let names = SourceNames(schema)
    let schema = names.schema
    let notes = notes + names.notes
    let scope = SourceScope(
      schema, name: name, composites: composites, comments: comments)
    var lines = ["import Instar", ""] + Self.wrapped(comment, prefix: "/// ")
    if !(notes + scope.notes).isEmpty { lines.append("///") }
    for note in notes + scope.notes {
      lines += Self.wrapped(note, prefix: "/// - ", next: "///   ")
    }
    let version = schema.version
    lines.append("enum \(SwiftName.declared(name)): \(scope.sdk("VersionedSchema")) {")
    lines.append(
      "  static var versionIdentifier: \(scope.sdk("Schema")).Version { "
        + "\(scope.sdk("Schema")).Version(\(version.major), \(version.minor), \(version.patch)) }")
    lines.append("  static var models: [any \(scope.sdk("PersistentModel")).Type] {")
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

  /// A word of a note as it may stand in source and on a terminal: names in it come from stores.
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

  /// A text as comment lines of at most 100 characters.
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

/// What the classes of one source share: which names are taken, and which side of a relationship names the other.
struct SourceScope {
  /// What a class is indented by.
  let indent = "  "
  /// The names of the classes, and of the schema.
  let typeNames: Set<String>
  let enumerations: Set<String>
  let requiredComposites: Set<String>
  let comments: [String: String]
  private let schema: Schema
  private let entities: [String: Schema.Entity]

  init(
    _ schema: Schema, name: String, composites: VersionedSchemaSource.Composites,
    comments: [String: String]
  ) {
    self.schema = schema
    entities = schema.entitiesByName
    typeNames = Set(schema.entities.map(\.name)).union([name])
    enumerations = composites.enumerations
    requiredComposites = composites.required
    self.comments = comments
  }

  // MARK: Names

  /// A type of Swift or Foundation: with its module where a model has its name.
  func type(_ name: String) -> String { qualified(name, SwiftType.module(of: name)) }

  /// A type or protocol of the SDK, likewise.
  func sdk(_ name: String) -> String { qualified(name, SwiftType.module(of: name)) }

  /// An attached macro of the SDK, likewise.
  func macro(_ name: String) -> String { qualified(name, "InstarModel") }

  private func qualified(_ name: String, _ module: String) -> String {
    typeNames.contains(name) ? "\(module).\(name)" : name
  }

  // MARK: Relationships

  /// The inverse that a relationship has to name. One side names it, always the one whose entity and name come first, so
  /// that no two classes need each other's expansion.
  func inverseToName(of relationship: Schema.Relationship, in entity: String) -> String? {
    guard let inverse = relationship.inverseName,
      (entity, relationship.name) < (relationship.destination, inverse)
    else { return nil }
    return inverse
  }

  /// Whether the SDK would pair a relationship that has no inverse with another that has none.
  func standsAlone(_ relationship: Schema.Relationship, of entity: String) -> Bool {
    guard relationship.inverseName == nil else { return false }
    return entities[relationship.destination]?.relationships.contains { other in
      other.inverseName == nil && other.destination == entity
        && (relationship.destination != entity || other.name != relationship.name)
    } ?? false
  }

  // MARK: Inheritance

  /// What the initializers of the classes above an entity take, the uppermost first.
  func inheritedParameters(of entity: Schema.Entity) -> [ModelClassSource.Property] {
    var parameters: [ModelClassSource.Property] = []
    var next = entity.superentityName
    // At most as many steps as there are entities: a schema may hold a circle.
    for _ in schema.entities {
      guard let name = next, let above = entities[name] else { break }
      parameters = ModelClassSource(above, in: self).parameters + parameters
      next = above.superentityName
    }
    return parameters
  }

  // MARK: What cannot be said

  var notes: [String] {
    var notes: [String] = []
    for name in typeNames.intersection([
      "Swift", "Foundation", "Instar", "InstarModel", "InstarSchema", "InstarText",
    ]).sorted() {
      notes.append(
        "\(name) is also the name of a module, which the classes' source cannot be told from: rename the class if it does not compile"
      )
    }
    for entity in schema.entities {
      for index in entity.fetchIndexes where !index.canBeNamed {
        let cause =
          index.partialPredicate == nil
          ? "it covers no property" : "the store has none that says of which rows it is"
        notes.append("index '\(index.name)' of \(entity.name) is left out: \(cause)")
      }
      if entity.isAbstract {
        notes.append("\(entity.name) is abstract: it has no rows of its own")
      }
    }
    return notes
  }
}
