internal import InstarChange
internal import InstarSchema
internal import InstarStore

/// A property of a version of a path, or the rows of an entity, followed through the stages to the last version.
struct PropertyPath {
  typealias Name = (entity: String, property: String?)

  /// The entity that declares it, and its name, in its first version. Rows have no property.
  let origin: Name
  /// Its names in its first version and in each next one that has it: several where it moved to several entities.
  var names: [[Name]]
  /// The position of its first version in the path.
  var start = 0
  /// Whether this is only a name that a worker reported.
  var isReportedOnly = false
  /// The types of an attribute, without repetition; empty for a relationship.
  var types: [Schema.AttributeType] = []
  /// The positions in `names` where a stage starts that creates a new column for it, stores its links elsewhere, or
  /// drops the rows.
  var conversions: [Int] = []
  /// The entities of its first version whose rows lose it on the way, because it moves.
  var losingEntities: [String] = []
  /// The entities of its first version whose rows lose it because the plan removes it. Others may keep it.
  var removingEntities: [String] = []
  /// The narrowest integer type on the way, if it is narrower than the first; the values stay as they are.
  var narrowestInteger: Schema.AttributeType?
  /// Whether its column has no default for values that the first change of type does not convert.
  var needsValue = false
  /// Whether that default can be the value of one row only.
  var needsUniqueValue = false
  /// Whether the last version has it.
  var isKept = false

  init(_ origin: Name, start: Int = 0) {
    self.origin = origin
    names = [[origin]]
    self.start = start
  }

  var isOfRows: Bool { origin.property == nil }
  var isRelationship: Bool { types.isEmpty && !isOfRows }
  /// Whether values of the first version may be lost although the last one has the property.
  var mayLose: Bool { isKept && !(conversions.isEmpty && losingEntities.isEmpty) }

  /// As in the plan's `acceptedLosses`.
  var title: String { Self.title(origin) }

  /// The names that `acceptedLosses` may use: that in the store's version, and those in the versions before stages that
  /// convert it.
  var acceptableTitles: [String] {
    [title] + conversions.filter(names.indices.contains).flatMap { names[$0].map(Self.title) }
  }

  static func title(_ name: Name) -> String {
    name.property.map { "\(name.entity).\($0)" } ?? name.entity
  }

  /// Whether the property has these names in the version at a position in the path.
  func has(_ entity: String, _ property: String?, at index: Int) -> Bool {
    names.indices.contains(index - start)
      && names[index - start].contains { $0 == (entity, property) }
  }

  /// "from String to Int".
  var typeChange: String {
    "from \(types.map(\.swiftName).joined(separator: " to "))"
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

  /// Returns the entities of the first version whose rows lose a relationship that rows of others have in the last one.
  func losersOfRelationships() -> [String: [String]] {
    // Properties move in hierarchies only.
    guard first.entities.contains(where: { $0.superentityName != nil }) else { return [:] }
    return first.entities.reduce(into: [:]) { found, entity in
      for relationship in entity.relationships {
        let path = followed(relationship, of: entity.name, since: 0, [], \.relationships)
        let losers = path.losingEntities + path.removingEntities
        if path.isKept, !losers.isEmpty { found[path.title] = losers }
      }
    }
  }

  /// For each stage the relationships, by their new names, whose links it stores elsewhere and does not copy there.
  private var movedLinks: [Set<String>] {
    zip(schemaStages, differences).map { stage, difference in
      Set(
        stage.movedLinks(difference)
          .filter {
            !stage.to.layout.movesLinks
              || !difference.takesLinksAlong($0.relationship, of: $0.entity)
          }
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
    var path = PropertyPath((entity, nil), start: start)
    var name = entity
    for index in differences.indices.dropFirst(start) {
      guard let next = differences[index].entities.first(where: { $0.old?.name == name })
      else { return path }
      if lost[index].contains(name) { path.conversions.append(index - start) }
      name = next.new.name
      path.names.append([(name, nil)])
    }
    path.isKept = true
    return path
  }

  /// Follows a property of the version at a position in the path.
  func followed<Property: SchemaProperty>(
    _ property: Property, of entity: String, since start: Int, _ moved: [Set<String>],
    _ mappings: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >
  ) -> PropertyPath {
    var path = PropertyPath((entity, property.name), start: start)
    let type = (property as? Schema.Attribute)?.type
    path.types = [type].compactMap(\.self)
    var branches = [
      Branch(
        owner: entity, name: property.name, type: type,
        presentNames: Dictionary(firstOf: schemas[start].family(of: entity).map { ($0, $0) }))
    ]
    for index in differences.indices.dropFirst(start) {
      branches = branches.flatMap { branch in
        followed(branch, over: index, moved, mappings, &path)
      }
      if branches.isEmpty { return path }
      path.names.append(branches.map { ($0.owner, $0.name) })
    }
    path.isKept = true
    return path
  }

  /// A property at a version of the path, in one of the entities that it moved to.
  private struct Branch {
    var owner: String
    var name: String
    /// That of the first version, or of the last change of type; `nil` for a relationship.
    var type: Schema.AttributeType?
    /// By its name in the first version, the present name of each entity whose rows have the property here.
    var presentNames: [String: String]
  }

  /// Follows a property over one stage: into the same entity, an entity above, or some below.
  ///
  /// - Returns: Its branches in the next version; empty if the property ends.
  private func followed<Property: SchemaProperty>(
    _ branch: Branch, over index: Int, _ moved: [Set<String>],
    _ mappings: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >, _ path: inout PropertyPath
  ) -> [Branch] {
    let difference = differences[index]
    let own = difference.entities.first { $0.old?.name == branch.owner }
    if let own, own.removes(branch.name) {
      path.removingEntities += branch.presentNames.keys.sorted()
      return []
    }
    // Its values stay, in the column of a property of another kind.
    if own?.keptColumns[branch.name] != nil {
      path.isKept = true
      return []
    }
    func source(
      _ candidate: SchemaDifference.EntityMapping
    ) -> SchemaDifference.PropertyMapping<Property>? {
      candidate[keyPath: mappings].first { $0.old?.name == branch.name }
    }
    let heirs =
      own.flatMap { source($0) == nil ? nil : [$0] }
      ?? difference.entities.filter {
        source($0) != nil && isHeir($0.new, of: branch.owner, at: index)
      }
    if heirs.isEmpty { return [] }
    let losing = Set(difference.entitiesLosing(branch.name, of: branch.owner).map(\.name))
    path.losingEntities += branch.presentNames.filter { losing.contains($0.value) }.map(\.key)
      .sorted()
    let presentNames = branch.presentNames.filter { !losing.contains($0.value) }
      .mapValues(difference.newName)
    var isConverted = !losing.isEmpty
    let next = heirs.compactMap { heir -> Branch? in
      guard let mapping = source(heir) else { return nil }
      var next = branch
      (next.owner, next.name) = (heir.new.name, mapping.new.name)
      if heirs.count == 1 {
        next.presentNames = presentNames
      } else {
        next.presentNames = presentNames.filter {
          schemas[index + 1].line(of: $0.value).contains(next.owner)
        }
      }
      if path.note(mapping, in: heir.new, after: branch.type) {
        next.type = (mapping.new as? Schema.Attribute)?.type
        isConverted = true
      } else if moved.indices.contains(index),
        moved[index].contains("\(next.owner).\(next.name)")
      {
        isConverted = true
      }
      return next
    }
    let position = index - path.start
    if isConverted, path.conversions.last != position { path.conversions.append(position) }
    return next
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
  func family(of entity: String) -> [String] {
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
  /// - Parameter last: The attribute's type before; `nil` for a relationship.
  /// - Returns: Whether the type changes.
  fileprivate mutating func note<Property: SchemaProperty>(
    _ mapping: SchemaDifference.PropertyMapping<Property>, in entity: Schema.Entity,
    after last: Schema.AttributeType?
  ) -> Bool {
    guard let attribute = mapping.new as? Schema.Attribute, let last else { return false }
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
    // Another entity that it moved to may have changed its type in the same way.
    if types.last != attribute.type { types.append(attribute.type) }
    return true
  }
}
