internal import InstarChange
internal import InstarSchema
internal import InstarStore

/// A property of a version of a path, or the rows of an entity, and what becomes of them.
struct PropertyPath {
  /// The entity that declares it, and its name, in its first version and in each next one that has it. Never empty.
  /// Rows have no property.
  var names: [(entity: String, property: String?)]
  /// The position of its first version in the path.
  var start = 0
  /// Whether this is only a name that a worker reported.
  var isReportedOnly = false
  /// The types of an attribute, without repetition; empty for a relationship.
  var types: [Schema.AttributeType] = []
  /// The positions in `names` at which stages start that make a new column for it, or store its links elsewhere; or
  /// that drop the rows.
  var conversions: [Int] = []
  /// The entities of its first version whose rows lose it on the way.
  var losingEntities: [String] = []
  /// The narrowest integer type on the way, if it is narrower than the first; the values stay as they are.
  var narrowestInteger: Schema.AttributeType?
  /// Whether its column has no default for values that the first change of type does not convert.
  var needsValue = false
  /// Whether that default can be the value of one row only.
  var needsUniqueValue = false
  /// Whether the last version has it.
  var isKept = false
  /// Whether a stage removes it, and not its entity.
  var isRemoved = false

  var isOfRows: Bool { names[0].property == nil }
  var isRelationship: Bool { types.isEmpty && !isOfRows }
  /// Whether values of the first version may be lost although the last one has the property.
  var mayLose: Bool { isKept && !(conversions.isEmpty && losingEntities.isEmpty) }

  /// As in the plan's `acceptedLosses`.
  var title: String { Self.title(names[0]) }

  /// The names that `acceptedLosses` may use: that in the store's version, and those in the versions before stages that
  /// convert it.
  var acceptableTitles: [String] {
    [title] + conversions.filter(names.indices.contains).map { Self.title(names[$0]) }
  }

  private static func title(_ name: (entity: String, property: String?)) -> String {
    name.property.map { "\(name.entity).\($0)" } ?? name.entity
  }

  /// Whether the property has these names in the version at a position in the path.
  func has(_ entity: String, _ property: String?, at index: Int) -> Bool {
    names.indices.contains(index - start) && names[index - start] == (entity, property)
  }

  /// "from string to int64".
  var typeChange: String {
    "from \(types.map(\.rawValue).joined(separator: " to "))"
  }
}

extension MigrationPath {
  /// The attributes of the first version.
  var attributePaths: [PropertyPath] {
    first.entities.flatMap { entity in
      entity.attributes.map { followed($0, of: entity.name, since: 0, [], \.attributes) }
    }
  }

  /// The attributes and relationships of the first version, and the rows of its entities.
  var propertyPaths: [PropertyPath] {
    let moved = movedLinks
    let rows = lostRows
    return first.entities.flatMap { entity in
      [followedRows(of: entity.name, since: 0, rows)]
        + entity.attributes.map { followed($0, of: entity.name, since: 0, moved, \.attributes) }
        + entity.relationships.map {
          followed($0, of: entity.name, since: 0, moved, \.relationships)
        }
    }
  }

  /// The attributes, relationships and rows that later versions add.
  var addedPropertyPaths: [PropertyPath] {
    let moved = movedLinks
    let rows = lostRows
    return differences.enumerated().flatMap { index, difference in
      difference.entities.flatMap { mapping in
        (mapping.old == nil ? [followedRows(of: mapping.new.name, since: index + 1, rows)] : [])
          + mapping.attributes.filter { $0.old == nil }.map {
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

  /// For each stage the entities, by their old names, whose rows it drops.
  private var lostRows: [[String]] {
    zip(schemaStages, differences).map { $0.entitiesWithoutTable($1) }
  }

  private func followedRows(
    of entity: String, since start: Int, _ lost: [[String]]
  ) -> PropertyPath {
    var path = PropertyPath(names: [(entity, nil)], start: start)
    for index in differences.indices.dropFirst(start) {
      let name = path.names[path.names.count - 1].entity
      guard let next = differences[index].entities.first(where: { $0.old?.name == name })
      else { return path }
      if lost[index].contains(name) {
        path.conversions.append(path.names.count - 1)
      }
      path.names.append((next.new.name, nil))
    }
    path.isKept = true
    return path
  }

  private func followed<Property: SchemaProperty>(
    _ property: Property, of entity: String, since start: Int, _ moved: [Set<String>],
    _ mappings: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >
  ) -> PropertyPath {
    var path = PropertyPath(names: [(entity, property.name)], start: start)
    if let attribute = property as? Schema.Attribute { path.types = [attribute.type] }
    // By its name in the first version, the present name of each entity whose rows have the property.
    var holders = Dictionary(firstOf: schemas[start].family(of: entity).map { ($0, $0) })
    var (owner, name) = (entity, property.name)
    // Whether it has moved to several entities, of which only the first is followed.
    var isShared = false
    for index in differences.indices.dropFirst(start) {
      let difference = differences[index]
      let own = difference.entities.first { $0.old?.name == owner }
      if let own, own.removes(name) {
        // Where several entities have it, another one may keep it: what the others lost still counts.
        if isShared { path.isKept = true } else { path.isRemoved = true }
        return path
      }
      // Its values stay, in the column of a property of another kind.
      if own?.keptColumns[name] != nil {
        path.isKept = true
        return path
      }
      func isSource(_ candidate: SchemaDifference.EntityMapping) -> Bool {
        candidate[keyPath: mappings].contains { $0.old?.name == name }
      }
      // It may have moved to an entity above, or to some below.
      let heirs =
        own.flatMap { isSource($0) ? [$0] : nil }
        ?? difference.entities.filter { isSource($0) && isHeir($0.new, of: owner, at: index) }
      if heirs.count > 1 { isShared = true }
      guard let next = heirs.first,
        let mapping = next[keyPath: mappings].first(where: { $0.old?.name == name })
      else { return path }
      let losing = Set(difference.entitiesLosing(name, of: owner).map(\.name))
      path.losingEntities += holders.filter { losing.contains($0.value) }.map(\.key).sorted()
      holders = holders.filter { !losing.contains($0.value) }.mapValues(difference.newName)
      if path.note(mapping, in: next.new)
        || moved.indices.contains(index)
          && moved[index].contains("\(next.new.name).\(mapping.new.name)")
        || !losing.isEmpty
      {
        path.conversions.append(path.names.count - 1)
      }
      (owner, name) = (next.new.name, mapping.new.name)
      path.names.append((owner, name))
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
  /// The names of an entity and those below it.
  fileprivate func family(of entity: String) -> [String] {
    guard entities.contains(where: { $0.superentityName != nil }) else { return [entity] }
    return entities.map(\.name).filter { line(of: $0).contains(entity) }
  }
}

extension SchemaDifference.EntityMapping {
  fileprivate func removes(_ property: String) -> Bool {
    removedAttributes.contains { $0.name == property }
      || removedRelationships.contains { $0.name == property }
  }
}

extension PropertyPath {
  /// - Returns: Whether the type changes.
  fileprivate mutating func note<Property: SchemaProperty>(
    _ mapping: SchemaDifference.PropertyMapping<Property>, in entity: Schema.Entity
  ) -> Bool {
    guard let attribute = mapping.new as? Schema.Attribute, let last = types.last else {
      return false
    }
    guard !last.isStoredLike(attribute.type) else {
      let before = (narrowestInteger ?? last).integerRange?.count ?? .max
      if let range = attribute.type.integerRange, range.count < before {
        narrowestInteger = attribute.type
      }
      return false
    }
    if types.count == 1, !attribute.isOptional {
      needsValue = attribute.storedDefault == nil && attribute.column?.defaultValue == nil
      needsUniqueValue = entity.uniquenessConstraints.contains([attribute.name])
    }
    types.append(attribute.type)
    return true
  }
}
