extension SchemaDifference {
  /// Whether both versions store the links of a to-many relationship in the same place: a join table, or a column of
  /// the destination's rows.
  ///
  /// A relationship without an inverse and one with a to-one inverse are stored in the same way, so a to-one inverse
  /// can be added or removed.
  func keepsLinks(_ mapping: PropertyMapping<Schema.Relationship>) -> Bool {
    guard let before = mapping.old else { return true }
    let oldInverse = inverse(of: before, in: old)
    let newInverse = inverse(of: mapping.new, in: new)
    let source = newInverse.flatMap { previous(of: $0, in: mapping.new.destination) }
    switch (oldInverse, newInverse) {
    case (nil, nil): return true
    case (nil, let inverse?): return inverse.isToOneRelationship && source == nil
    case (let inverse?, nil):
      let isKept = entities.contains { mapping in
        mapping.old?.name == before.destination
          && mapping.relationships.contains { $0.old?.name == inverse.name }
      }
      return inverse.isToOneRelationship && !isKept
    case (let one?, let two?):
      // The inverse is to-many now, and takes over the links.
      if one.isToOneRelationship, !two.isToOneRelationship { return source?.name == one.name }
      guard one.isToOneRelationship == two.isToOneRelationship else { return false }
      // Links in a join table belong to both sides: one side with the same source is enough.
      return source?.name == one.name || !one.isToOneRelationship
    }
  }

  /// Returns whether a stage stores the links of a relationship in another place, where Instar may not copy them.
  package func movesLinks(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
    guard let before = mapping.old else { return false }
    return !haveSameDestination(before, mapping.new)
      || before.isToOneRelationship != mapping.new.isToOneRelationship
      || hasOtherInverse(mapping, of: entity)
  }

  /// Returns whether a relationship that stays to-many has another inverse, by which its links are stored.
  func hasOtherInverse(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
    let new = mapping.new
    guard let before = mapping.old, !before.isToOneRelationship, !new.isToOneRelationship,
      haveSameDestination(before, new)
    else { return false }
    // Each link is kept twice where a relationship is its own inverse.
    return before.isOwnInverse(in: sourceNames[entity] ?? entity) != new.isOwnInverse(in: entity)
      || !keepsLinks(mapping)
  }

  /// Returns whether a to-one relationship becomes to-many with the same destination, and keeps the link of each row.
  ///
  /// It does not if its new inverse is to-one and existed before without being its inverse: that has other links.
  public func becomesToMany(_ mapping: PropertyMapping<Schema.Relationship>) -> Bool {
    guard let before = mapping.old, before.isToOneRelationship,
      !mapping.new.isToOneRelationship, haveSameDestination(before, mapping.new)
    else { return false }
    guard let inverse = inverse(of: mapping.new, in: new), inverse.isToOneRelationship,
      let source = previous(of: inverse, in: mapping.new.destination)
    else { return true }
    return source.name == before.inverseName
  }

  /// Returns whether a to-many relationship without inverse gets a to-many one, and keeps the links of each row: they
  /// move from a column of the destination's rows to a join table. If the inverse had links of its own, both have the
  /// links of both then.
  package func joinsLinks(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
    guard let before = mapping.old, !before.isToOneRelationship, before.inverseName == nil,
      !mapping.new.isToOneRelationship, hasToManyInverse(mapping.new),
      !mapping.new.isOwnInverse(in: entity), haveSameDestination(before, mapping.new)
    else { return false }
    return staysInPlace(before, of: entity)
  }

  /// Whether an entity itself had a relationship, and all its rows keep it. One that moves to another entity of its
  /// hierarchy keeps the links of some rows only.
  private func staysInPlace(_ before: Schema.Relationship, of entity: String) -> Bool {
    guard let source = entities.first(where: { $0.new.name == entity })?.old else { return false }
    return source.declares(before.name) && entitiesLosing(before.name, of: source.name).isEmpty
  }

  /// Whether a relationship comes from an entity above, or rows of others lose it.
  private func losesRows(_ before: Schema.Relationship, of entity: String) -> Bool {
    guard let mapping = entities.first(where: { $0.new.name == entity }) else { return false }
    return originNames(of: mapping.new).contains { origin in
      old.line(of: origin).contains { above in
        old.entity(named: above)?.declares(before.name) == true
          && (above != origin || !entitiesLosing(before.name, of: above).isEmpty)
      }
    }
  }

  /// Returns whether a relationship whose links a stage stores elsewhere keeps them in a store with a join table.
  package func takesLinksAlong(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
    becomesToMany(mapping) && mapping.old.map { !losesRows($0, of: entity) } == true
      || joinsLinks(mapping, of: entity)
  }

  /// Reasons against a lightweight stage in a plain store, where Instar does not move links to another table.
  public var linksToMoveBetweenTables: [String] {
    entities.flatMap { mapping in
      mapping.relationships.filter { takesLinksAlong($0, of: mapping.new.name) }
        .map { "links of \(mapping.new.name).\($0.new.name) must be set again" }
    }
  }

  /// The source of a relationship of the new version.
  private func previous(
    of relationship: Schema.Relationship, in entity: String
  ) -> Schema.Relationship? {
    entities.first { $0.new.name == entity }?.relationships
      .first { $0.new.name == relationship.name }?.old
  }

  /// Returns whether the inverse of a relationship of the new version is to-many.
  package func hasToManyInverse(_ relationship: Schema.Relationship) -> Bool {
    inverse(of: relationship, in: new)?.isToOneRelationship == false
  }

  private func inverse(
    of relationship: Schema.Relationship, in schema: Schema
  ) -> Schema.Relationship? {
    guard let name = relationship.inverseName else { return nil }
    var entity = schema.entity(named: relationship.destination)
    var steps = 0
    while let current = entity, steps <= schema.entities.count {
      if let found = current.relationships.first(where: { $0.name == name }) { return found }
      entity = current.superentityName.flatMap { schema.entity(named: $0) }
      steps += 1
    }
    return nil
  }

  /// The reason why an entity cannot join another hierarchy, whose rows have their own sequence of keys.
  func joiningHierarchy(_ mapping: EntityMapping, to above: String) -> String? {
    guard let source = mapping.old else { return nil }
    func root(_ name: String, in schema: Schema) -> String {
      var current = name
      for _ in schema.entities {
        guard let next = schema.entity(named: current)?.superentityName else { break }
        current = next
      }
      return current
    }
    let here = root(source.name, in: old)
    let newRoot = root(mapping.new.name, in: new)
    // Entities of another hierarchy in the old version and of the same one in the new version.
    let others = entities.filter { other in
      guard let name = other.old?.name else { return false }
      return root(other.new.name, in: new) == newRoot && root(name, in: old) != here
    }
    guard let other = others.first else { return nil }
    return "rows of \(mapping.new.name) and \(other.new.name) would share one table and its keys"
  }

  /// Returns the added to-one inverse of a to-many relationship that had none. Both store the same links: the owner's
  /// key in the rows of the destination.
  public func addedInverse(
    of mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, before.inverseName == nil,
      haveSameDestination(before, mapping.new),
      let inverse = inverse(of: mapping.new, in: new), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }

  /// Returns the removed to-one inverse of a to-many relationship, which takes over its links.
  public func removedInverse(
    of mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, !mapping.new.isToOneRelationship,
      mapping.new.inverseName == nil, haveSameDestination(before, mapping.new),
      let inverse = inverse(of: before, in: old), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }
}
