import InstarSchema

extension Schema {
  /// Does the work of `aligned(to:)` for ordinary tables. Their names differ from those of classes and properties, and
  /// they show what is required. Tables and columns are matched by their names.
  func alignedTables(to other: Schema) -> Schema {
    var counterparts: [String: Entity] = [:]
    for entity in other.entities {
      guard let table = entity.tableName?.lowercased() else { continue }
      let own = entities.first { $0.tableName?.lowercased() == table }
      if let own { counterparts[own.name] = entity }
    }
    let names = counterparts.mapValues(\.name)
    let relationships = relationshipNames(counterparts, other)
    var copy = self
    copy.entities = entities.map { entity in
      var aligned = entity
      aligned.relationships = entity.relationships.map { relationship in
        var aligned = relationship
        aligned.destination = names[relationship.destination] ?? relationship.destination
        aligned.name = relationships[entity.name]?[relationship.name] ?? relationship.name
        aligned.inverseName = relationship.inverseName.map {
          relationships[relationship.destination]?[$0] ?? $0
        }
        aligned.originalName = aligned.name
        return aligned
      }
      if let model = counterparts[entity.name] { aligned.take(model) }
      return aligned
    }
    return copy
  }

  /// Returns the names of relationships in the other schema, by entity and relationship of this one.
  private func relationshipNames(
    _ counterparts: [String: Entity], _ other: Schema
  ) -> [String: [String: String]] {
    var names: [String: [String: String]] = [:]
    for entity in entities {
      guard let model = counterparts[entity.name] else { continue }
      for relationship in entity.relationships where relationship.isToOneRelationship {
        let columns = columns(of: relationship)
        names[entity.name, default: [:]][relationship.name] =
          model.relationships.first {
            $0.isToOneRelationship && other.columns(of: $0) == columns
          }?.name
      }
    }
    for entity in entities {
      guard let model = counterparts[entity.name] else { continue }
      for relationship in entity.relationships where !relationship.isToOneRelationship {
        let destination = counterparts[relationship.destination]
        let inverse = self.entity(named: relationship.destination)?.relationships
          .first { $0.name == relationship.inverseName }
        // The to-many side of a foreign key is found by that key; the side of a join table, by its destination.
        let candidates = model.relationships.filter { candidate in
          !candidate.isToOneRelationship && candidate.destination == destination?.name
            && (inverse?.isToOneRelationship == true
              ? candidate.inverseName
                == names[relationship.destination]?[relationship.inverseName ?? ""]
              : destination?.relationships.first { $0.name == candidate.inverseName }?
                .isToOneRelationship == false)
        }
        if candidates.count == 1 {
          names[entity.name, default: [:]][relationship.name] = candidates[0].name
        }
      }
    }
    return names
  }

  /// Returns the columns of a to-one relationship, in lower case.
  private func columns(of relationship: Relationship) -> [String] {
    if let names = relationship.column?.names { return names.map { $0.lowercased() } }
    let key = entity(named: relationship.destination)?.keyAttributes.map(\.columnName) ?? []
    return (key.isEmpty ? ["id"] : key)
      .map { "\(Schema.snakeCase(relationship.name))_\($0)".lowercased() }
  }
}

extension Schema.Entity {
  /// Completes the entity from the model of the same table.
  fileprivate mutating func take(_ model: Schema.Entity) {
    name = model.name
    originalName = model.name
    let columns = model.attributes.keyed { $0.columnName.lowercased() }
    var names: [String: String] = [:]
    let keys = Set(keyAttributes.map(\.name))
    attributes = attributes.map { attribute in
      guard var taken = columns[attribute.columnName.lowercased()] else { return attribute }
      names[attribute.name] = taken.name
      taken.originalName = taken.name
      let affinity = { (attribute: Schema.Attribute) in
        ColumnAffinity(attribute.columnType(isStrict: false))
      }
      guard affinity(attribute).isLike(affinity(taken)) else {
        var own = attribute
        own.name = taken.name
        own.originalName = taken.name
        return own
      }
      let isComputed = attribute.column?.generated != nil
      if !isComputed, !keys.contains(attribute.name) { taken.isOptional = attribute.isOptional }
      return taken
    }
    for relationship in relationships.indices {
      let own = relationships[relationship]
      guard var taken = model.relationships.first(where: { $0.name == own.name }) else { continue }
      taken.originalName = taken.name
      if own.isToOneRelationship { taken.isOptional = own.isOptional }
      relationships[relationship] = taken
    }
    // A column that the other schema does not mention is not a difference, because it survives.
    let mentioned = Set(names.values)
    attributes.removeAll { attribute in
      !mentioned.contains(attribute.name)
        && !model.attributes.contains { $0.name == attribute.name }
    }
    uniquenessConstraints = uniquenessConstraints.map { $0.map { names[$0] ?? $0 } }
    indices = indices.map { $0.map { names[$0] ?? $0 } }
    table = model.table
  }
}
