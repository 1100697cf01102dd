// Properties that stay in a store under another entity, or as another kind of property.

extension SchemaDifference {
  /// Returns the entities of the old version whose rows lose a property that rows of others keep: it moved to an entity
  /// below, or they left its hierarchy.
  ///
  /// - Parameters:
  ///   - property: The name in the old version.
  ///   - entity: The entity of the old version that declares it.
  package func entitiesLosing(_ property: String, of entity: String) -> [Schema.Entity] {
    guard let owner = old.entity(named: entity) else { return [] }
    let family = [owner] + Self.below(owner, in: old)
    if family.count == 1 { return [] }
    let names = Set(family.map(\.name))
    let heirs = Set(
      entities.filter { mapping in
        mapping.continues(property) && originNames(of: mapping.new).contains(where: names.contains)
      }.map(\.new.name))
    if heirs.isEmpty { return [] }
    return family.filter { member in
      guard !member.isAbstract,
        let successor = entities.first(where: { $0.old?.name == member.name })?.new
      else { return false }
      return new.line(of: successor.name).isDisjoint(with: heirs)
    }
  }

  /// Returns the entities of the new version that get a property of the old one which their own rows did not have.
  ///
  /// - Parameters:
  ///   - property: The name in the old version.
  ///   - entity: The entity of the new version that declares it.
  func entitiesGaining(_ property: String, from entity: Schema.Entity) -> [String] {
    ([entity] + Self.below(entity, in: new)).map(\.name).filter { member in
      guard let source = sourceName(of: member), old.entity(named: source)?.isAbstract == false
      else { return false }
      return !old.line(of: source).contains { old.entity(named: $0)?.declares(property) == true }
    }
  }

  /// Returns the entities of the old version from which an entity no longer inherits although the new version has them,
  /// by their old names.
  func entitiesLeft(by mapping: EntityMapping) -> [String] {
    guard let source = mapping.old else { return [] }
    let above = Set(new.line(of: mapping.new.name).compactMap(sourceName))
    return old.line(of: source.name).subtracting(above).sorted().filter { name in
      entities.contains { $0.old?.name == name }
    }
  }

  /// Finds the columns that stay although their property becomes one of another kind. A column without its property
  /// would be dropped, and made again with the same name and no values.
  mutating func keepColumns(at index: Int) {
    guard let source = entities[index].old, source.table != nil, entities[index].new.table != nil
    else { return }
    let mapping = entities[index]
    for attribute in mapping.removedAttributes {
      let added = mapping.relationships.first {
        $0.old == nil && new.columnName(of: $0.new) == attribute.columnName.lowercased()
      }
      guard let added, new.isKey(attribute, of: added.new),
        added.new.isOptional || !attribute.isOptional
      else { continue }
      entities[index].keptColumns[attribute.name] = added.new.name
    }
    for relationship in mapping.removedRelationships {
      let added = mapping.attributes.first {
        $0.old == nil && old.columnName(of: relationship) == $0.new.columnName.lowercased()
      }
      guard let added, old.isKey(added.new, of: relationship),
        added.new.isOptional || !relationship.isOptional
      else { continue }
      entities[index].keptColumns[relationship.name] = added.new.name
    }
    let kept = entities[index].keptColumns
    entities[index].removedAttributes.removeAll { kept[$0.name] != nil }
    entities[index].removedRelationships.removeAll { kept[$0.name] != nil }
  }
}

extension SchemaDifference.EntityMapping {
  /// Whether a property of the new version comes from one of that name.
  fileprivate func continues(_ property: String) -> Bool {
    attributes.contains { $0.old?.name == property }
      || relationships.contains { $0.old?.name == property }
  }
}

extension Schema {
  /// Returns the names of an entity and of those above it.
  package func line(of entity: String) -> Set<String> {
    var names: Set<String> = [entity]
    var next = self.entity(named: entity)?.superentityName
    while let name = next, names.insert(name).inserted {
      next = self.entity(named: name)?.superentityName
    }
    return names
  }

  /// The key of the destination of a to-one relationship, if it is one attribute or the hidden key of the table.
  private func key(of relationship: Schema.Relationship) -> (name: String, type: AttributeType)? {
    guard relationship.isToOneRelationship,
      let destination = entity(named: relationship.destination),
      !destination.relationships.contains(where: { $0.column?.isPrimaryKey == true })
    else { return nil }
    let key = destination.keyAttributes
    if key.isEmpty { return ("id", .int64) }
    guard key.count == 1, key[0].column?.encoding == nil else { return nil }
    return (key[0].columnName, key[0].type)
  }

  /// Whether an attribute has values like the keys that a to-one relationship refers to.
  fileprivate func isKey(_ attribute: Attribute, of relationship: Relationship) -> Bool {
    attribute.column?.encoding == nil && attribute.column?.generated == nil
      && key(of: relationship)?.type.isStoredLike(attribute.type) == true
  }

  /// The column of a to-one relationship in a plain store, in lower case; `nil` where it has several.
  fileprivate func columnName(of relationship: Schema.Relationship) -> String? {
    guard let key = key(of: relationship) else { return nil }
    let name =
      relationship.column?.names?.first ?? "\(Schema.snakeCase(relationship.name))_\(key.name)"
    return name.lowercased()
  }
}
