internal import InstarChange
internal import InstarSchema
internal import InstarStore

/// A property of a version of a path, and what becomes of it.
struct PropertyPath {
  /// The entity that declares it, and its name, in its first version and in each next one that has it. Never empty.
  var names: [(entity: String, property: String)]
  /// The position of its first version in the path.
  var start = 0
  /// Whether this is only a name that a worker reported.
  var isReportedOnly = false
  /// The types of an attribute, without repetition; empty for a relationship.
  var types: [Schema.AttributeType] = []
  /// Whether a stage makes a new column for it, or stores its links elsewhere.
  var isConverted = false
  /// Whether the last version has it.
  var isKept = false

  var isRelationship: Bool { types.isEmpty }

  /// As in the plan's `acceptedLosses`.
  var title: String { "\(names[0].entity).\(names[0].property)" }

  /// Whether the property has these names in the version at a position in the path.
  func has(_ entity: String, _ property: String, at index: Int) -> Bool {
    names.indices.contains(index - start) && names[index - start] == (entity, property)
  }

  /// "from string to int64".
  var typeChange: String {
    "from \(types.map(\.rawValue).joined(separator: " to "))"
  }
}

extension MigrationPath {
  /// The attributes and relationships of the first version.
  var propertyPaths: [PropertyPath] {
    let moved = movedLinks
    return first.entities.flatMap { entity in
      entity.attributes.map { followed($0, of: entity.name, since: 0, moved, \.attributes) }
        + entity.relationships.map {
          followed($0, of: entity.name, since: 0, moved, \.relationships)
        }
    }
  }

  /// The attributes and relationships that later versions add.
  var addedPropertyPaths: [PropertyPath] {
    let moved = movedLinks
    return differences.enumerated().flatMap { index, difference in
      difference.entities.flatMap { mapping in
        mapping.attributes.filter { $0.old == nil }.map {
          followed($0.new, of: mapping.new.name, since: index + 1, moved, \.attributes)
        }
          + mapping.relationships.filter { $0.old == nil }.map {
            followed($0.new, of: mapping.new.name, since: index + 1, moved, \.relationships)
          }
      }
    }
  }

  /// For each stage the relationships, by their new names, whose links it stores elsewhere and does not take along.
  private var movedLinks: [Set<String>] {
    zip(schemaStages, differences).map { stage, difference in
      Set(
        stage.movedLinks(difference)
          .filter { !stage.to.layout.movesLinks || !difference.becomesToMany($0.relationship) }
          .map { "\($0.entity).\($0.relationship.new.name)" })
    }
  }

  private func followed<Property: SchemaProperty>(
    _ property: Property, of entity: String, since start: Int, _ moved: [Set<String>],
    _ mappings: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >
  ) -> PropertyPath {
    var path = PropertyPath(names: [(entity, property.name)], start: start)
    if let attribute = property as? Schema.Attribute { path.types = [attribute.type] }
    for index in differences.indices.dropFirst(start) {
      let (owner, name) = path.names[path.names.count - 1]
      let own = differences[index].entities.first { $0.old?.name == owner }
      if let own, own.removes(name) { return path }
      func isSource(_ candidate: SchemaDifference.EntityMapping) -> Bool {
        candidate[keyPath: mappings].contains { $0.old?.name == name }
      }
      // It may have moved to an entity above or below.
      let next =
        own.flatMap { isSource($0) ? $0 : nil }
        ?? differences[index].entities.first {
          isSource($0) && isHeir($0.new, of: owner, at: index)
        }
      guard let next, let mapping = next[keyPath: mappings].first(where: { $0.old?.name == name })
      else { return path }
      path.names.append((next.new.name, mapping.new.name))
      path.note(mapping)
      if moved[index].contains("\(next.new.name).\(mapping.new.name)") { path.isConverted = true }
    }
    path.isKept = true
    return path
  }

  /// Whether an entity of the next version can have properties from an old one: it comes from that, or from an entity
  /// above or below.
  private func isHeir(_ entity: Schema.Entity, of owner: String, at index: Int) -> Bool {
    let schema = schemas[index]
    let line = schema.line(of: owner)
    return differences[index].originNames(of: entity).contains {
      line.contains($0) || schema.line(of: $0).contains(owner)
    }
  }
}

extension Schema {
  /// An entity and those above it.
  fileprivate func line(of entity: String) -> Set<String> {
    var names: Set<String> = [entity]
    var next = self.entity(named: entity)?.superentityName
    while let name = next, names.insert(name).inserted {
      next = self.entity(named: name)?.superentityName
    }
    return names
  }
}

extension SchemaDifference.EntityMapping {
  fileprivate func removes(_ property: String) -> Bool {
    removedAttributes.contains { $0.name == property }
      || removedRelationships.contains { $0.name == property }
  }
}

extension PropertyPath {
  fileprivate mutating func note<Property: SchemaProperty>(
    _ mapping: SchemaDifference.PropertyMapping<Property>
  ) {
    guard let attribute = mapping.new as? Schema.Attribute, let last = types.last,
      !last.isStoredLike(attribute.type)
    else { return }
    types.append(attribute.type)
    isConverted = true
  }
}
