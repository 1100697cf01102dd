import InstarSchema

/// What the classes of one source share: the names in use, and which side of a relationship names the other.
struct SourceScope {
  /// The indentation of a class.
  let indent = "  "
  /// The names of the classes and of the schema.
  let typeNames: Set<String>
  let comments: [String: String]
  private let schema: Schema
  private let entities: [String: Schema.Entity]

  init(_ schema: Schema, name: String, comments: [String: String]) {
    self.schema = schema
    entities = schema.entitiesByName
    typeNames = Set(schema.entities.map(\.name)).union([name])
    self.comments = comments
  }

  // MARK: Names

  /// Returns a type or protocol of Swift, Foundation or the SDK, with its module where a model has its name.
  func type(_ name: String) -> String { qualified(name, SwiftType.module(of: name)) }

  /// Returns an attached macro of the SDK, likewise.
  func macro(_ name: String) -> String { qualified(name, "InstarModel") }

  private func qualified(_ name: String, _ module: String) -> String {
    typeNames.contains(name) ? "\(module).\(name)" : name
  }

  // MARK: Relationships

  /// Returns the inverse that a relationship must name. Only the side whose entity and name come first names it, so
  /// that no two classes need each other's macro expansion.
  func inverseToName(of relationship: Schema.Relationship, in entity: String) -> String? {
    guard let inverse = relationship.inverseName,
      (entity, relationship.name) < (relationship.destination, inverse)
    else { return nil }
    return inverse
  }

  /// Whether the SDK would pair a relationship without inverse with another one without.
  func standsAlone(_ relationship: Schema.Relationship, of entity: String) -> Bool {
    guard relationship.inverseName == nil else { return false }
    return entities[relationship.destination]?.relationships.contains { other in
      other.inverseName == nil && other.destination == entity
        && (relationship.isToOneRelationship || other.isToOneRelationship)
        && (relationship.destination != entity || other.name != relationship.name)
    } ?? false
  }

  // MARK: Inheritance

  /// Returns the parameters of the superclasses' initializers, the root class first.
  func inheritedParameters(of entity: Schema.Entity) -> [ModelClassSource.Property] {
    var parameters: [ModelClassSource.Property] = []
    var next = entity.superentityName
    // Bounded, because the superentities of a hostile schema may form a cycle.
    for _ in schema.entities {
      guard let name = next, let above = entities[name] else { break }
      parameters = ModelClassSource(above, in: self).parameters + parameters
      next = above.superentityName
    }
    return parameters
  }

  // MARK: Notes

  var notes: [String] {
    var notes: [String] = []
    for name in typeNames.intersection([
      "Swift", "Foundation", "Instar", "InstarModel", "InstarSchema", "InstarText",
    ]).sorted() {
      notes.append(
        "the class \(name) has the name of a module; rename it if the source does not compile"
      )
    }
    for entity in schema.entities {
      for index in entity.fetchIndexes where !index.canBeNamed {
        let cause =
          index.partialPredicate == nil
          ? "it covers no property" : "the store does not say in SQL which rows it covers"
        notes.append("index '\(index.name)' of \(entity.name) is left out: \(cause)")
      }
      if entity.isAbstract {
        notes.append("\(entity.name) is abstract; it has no rows of its own")
      }
    }
    return notes
  }
}
