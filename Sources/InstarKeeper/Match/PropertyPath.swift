import InstarSchema

/// A property of a path's first version, and what becomes of it.
struct PropertyPath {
  /// The entity that declares it, and its name, in the first version and in each next one that has it. Never empty.
  var names: [(entity: String, property: String)]
  /// The types of an attribute, without repetition; empty for a relationship.
  var types: [Schema.AttributeType] = []
  /// Whether a stage makes a new column for it, or stores its links elsewhere.
  var isConverted = false
  /// Whether the last version has it.
  var isKept = false

  var isRelationship: Bool { types.isEmpty }

  /// As in the plan's `acceptedLosses`.
  var title: String { "\(names[0].entity).\(names[0].property)" }

  /// "from string to int64".
  var typeChange: String {
    "from \(types.map(\.rawValue).joined(separator: " to "))"
  }
}

extension MigrationPath {
  /// The attributes and relationships of the first version.
  var propertyPaths: [PropertyPath] {
    first.entities.flatMap { entity in
      entity.attributes.map { followed($0, of: entity.name, \.attributes) }
        + entity.relationships.map { followed($0, of: entity.name, \.relationships) }
    }
  }

  private func followed<Property: SchemaProperty>(
    _ property: Property, of entity: String,
    _ mappings: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >
  ) -> PropertyPath {
    var path = PropertyPath(names: [(entity, property.name)])
    if let attribute = property as? Schema.Attribute { path.types = [attribute.type] }
    for difference in differences {
      let (owner, name) = path.names[path.names.count - 1]
      guard let own = difference.entities.first(where: { $0.old?.name == owner }) else {
        return path
      }
      let isRemoved =
        own.removedAttributes.contains { $0.name == name }
        || own.removedRelationships.contains { $0.name == name }
      // It may have moved to an entity above or below.
      let candidates = isRemoved ? [] : [own] + difference.entities
      var found: (entity: String, SchemaDifference.PropertyMapping<Property>)?
      for candidate in candidates where found == nil {
        found = candidate[keyPath: mappings].first { $0.old?.name == name }
          .map { (candidate.new.name, $0) }
      }
      guard let (next, mapping) = found else { return path }
      path.names.append((next, mapping.new.name))
      path.note(mapping, of: next, difference)
    }
    path.isKept = true
    return path
  }
}

extension PropertyPath {
  fileprivate mutating func note<Property: SchemaProperty>(
    _ mapping: SchemaDifference.PropertyMapping<Property>, of entity: String,
    _ difference: SchemaDifference
  ) {
    if let attribute = mapping.new as? Schema.Attribute, let last = types.last,
      !last.isStoredLike(attribute.type)
    {
      types.append(attribute.type)
      isConverted = true
    }
    if let relationship = mapping as? SchemaDifference.PropertyMapping<Schema.Relationship>,
      let before = relationship.old, !before.isToOneRelationship,
      relationship.new.isToOneRelationship
    {
      isConverted = true
    }
  }
}
