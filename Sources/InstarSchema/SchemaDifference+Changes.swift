extension SchemaDifference {
  /// One change, as plans and reports show it.
  public struct Change: Sendable, Hashable {
    /// What the change means for the values of a store.
    public var kind: ChangeKind
    /// The name of the entity in the new version, or in the old version if it is removed.
    public var entity: String
    /// The name of the attribute or relationship, in the same version as the entity's.
    public var property: String?
    /// For example "adds Note.contentNew (Data?)".
    public var sentence: String
    /// The reason why the change needs a custom stage; `nil` if a lightweight stage makes it.
    public var reasonForCustomStage: String?
    /// The rows that need the custom stage; without them a lightweight stage is enough. `nil` if rows do not matter.
    public var rowsInNeed: RowsInNeed?

    fileprivate init(
      _ kind: ChangeKind, _ entity: String, _ property: String?, _ sentence: String,
      needs reason: String? = nil, rows: RowsInNeed? = nil
    ) {
      self.kind = kind
      self.entity = entity
      self.property = property
      self.sentence = sentence
      reasonForCustomStage = reason
      rowsInNeed = rows
    }
  }

  /// Rows that have no value for a property that the new version requires. Names are those of the new version.
  public struct RowsInNeed: Sendable, Hashable {
    /// The entity whose rows they are.
    public var entity: String
    /// Only rows without a value of this property need the stage; `nil` for a new property, for which all rows do.
    public var property: String?
    /// Whether only rows of the entity itself count, and none of its subentities.
    public var excludesSubentities = false
  }

  /// Every change, entity by entity; empty if both versions are stored in the same way.
  public var changes: [Change] {
    removedEntities.flatMap { entity in
      [
        Change(
          .destructive, entity.name, nil,
          "removes entity \(entity.name)" + (entity.isAbstract ? "" : " with its rows"))
      ] + moveChanges(of: entity, named: entity.name)
    } + entities.flatMap { changes(of: $0) }
  }

  private func changes(of mapping: EntityMapping) -> [Change] {
    let joined = joinedColumns(of: mapping)
    guard let old = mapping.old else { return joined + additions(of: mapping) }
    let retyped = retypedEnums(mapping)
    var changes = joined
    changes += identityChanges(of: mapping, old)
    changes += Self.conversions(of: retyped, in: mapping)
    changes += Self.removals(from: mapping, except: retyped)
    changes += moveChanges(of: old, named: mapping.new.name)
    changes += propertyChanges(of: mapping, retyped)
    changes += inheritedRequirements(of: mapping)
    changes += ruleChanges(of: mapping, old)
    return changes
  }

  /// The properties that get one column, where each had a column of its own.
  private func joinedColumns(of mapping: EntityMapping) -> [Change] {
    let name = mapping.new.name
    guard let properties = joinedProperties[name] else { return [] }
    let list = properties.joined(separator: " and ")
    return [
      Change(
        .conversion, name, nil, "moves \(list) to \(name)",
        needs: "\(list) have separate columns, and \(name) has one for both")
    ]
  }

  /// The changes of a new entity. It takes over properties of the entities below it, which may change too.
  private func additions(of mapping: EntityMapping) -> [Change] {
    let name = mapping.new.name
    var changes = [Change(.additive, name, nil, "adds entity \(name)")]
    changes += mapping.attributes.filter { $0.old != nil }
      .flatMap { Self.changes(of: $0, entity: name) }
    changes += mapping.relationships.filter { $0.old != nil }
      .flatMap { self.changes(of: $0, entity: name) }
    changes += inheritedRequirements(of: mapping)
    return changes
  }

  /// The changes of an entity's name and of the entity above it.
  private func identityChanges(of mapping: EntityMapping, _ old: Schema.Entity) -> [Change] {
    let name = mapping.new.name
    var changes: [Change] = []
    if old.name != name {
      changes.append(Change(.rename, name, nil, "renames entity \(old.name) to \(name)"))
    }
    let above = mapping.new.superentityName
    if above.flatMap({ sourceNames[$0] }) != old.superentityName {
      changes.append(
        Change(
          .bookkeeping, name, nil, "makes \(name) inherit from \(above ?? "no entity")",
          needs: above.flatMap { joiningHierarchy(mapping, to: $0) }))
      changes += endingLinks(toRowsOf: mapping)
    }
    return changes
  }

  private static func conversions(
    of retyped: [RetypedEnum], in mapping: EntityMapping
  ) -> [Change] {
    let name = mapping.new.name
    return retyped.map {
      Change(
        $0.becomesCases ? .destructive : .conversion, name, $0.name,
        "changes the type of \(name).\($0.name) \($0.sentence)")
    }
  }

  /// The attributes and relationships that an entity no longer has.
  ///
  /// - Parameter retyped: Enums whose attributes continue as others.
  private static func removals(
    from mapping: EntityMapping, except retyped: [RetypedEnum]
  ) -> [Change] {
    let name = mapping.new.name
    let continued = Set(retyped.flatMap(\.oldAttributes).map(\.name))
    let attributes = mapping.removedAttributes.filter { !continued.contains($0.name) }.map {
      $0.isEphemeral
        ? Change(.bookkeeping, name, $0.name, "removes \(name).\($0.name), which is in memory only")
        : Change(.destructive, name, $0.name, "removes \(name).\($0.name) with its values")
    }
    let relationships = mapping.removedRelationships.map {
      Change(.destructive, name, $0.name, "removes relationship \(name).\($0.name) with its links")
    }
    return attributes + relationships
  }

  /// The changes of the properties that the new version has.
  private func propertyChanges(of mapping: EntityMapping, _ retyped: [RetypedEnum]) -> [Change] {
    let name = mapping.new.name
    let columns = mapping.keptColumns
    let kept = Set(columns.values)
    let filled = Set(retyped.filter(\.isAlwaysSet).map(\.name))
    var changes = columns.sorted { $0.key < $1.key }.map { source, property in
      Change(.conversion, name, property, "keeps the column of \(name).\(source) for \(property)")
    }
    changes += mapping.attributes.filter { !kept.contains($0.new.name) }
      .flatMap {
        Self.changes(of: $0, entity: name, isCarriedOver: filled.contains($0.new.name))
      }
    changes += newComposites(mapping).filter { !$0.isFilled }.map {
      Self.addition(of: $0.name, to: name, "requires \(name).\($0.name)", .rule, isFilled: false)
    }
    changes += requiredComposites(mapping).map {
      Self.requirement(of: $0.name, in: name, isFilled: $0.isFilled)
    }
    changes += mapping.relationships.filter { !kept.contains($0.new.name) }
      .flatMap { self.changes(of: $0, entity: name) }
    return changes
  }

  /// The properties of an entity that only some of its rows keep.
  private func moveChanges(of entity: Schema.Entity, named name: String) -> [Change] {
    entity.declaredNames.compactMap { property in
      let losing = entitiesLosing(property, of: entity.name).map(\.name)
      guard !losing.isEmpty else { return nil }
      return Change(
        .destructive, name, property,
        "removes \(entity.name).\(property) from the rows of \(losing.joined(separator: " and "))")
    }
  }

  /// The entities that inherit a required property which their rows do not have: it moved up from an entity below.
  private func inheritedRequirements(of mapping: EntityMapping) -> [Change] {
    let attributes = mapping.attributes.compactMap { attribute -> (old: String, new: String)? in
      guard let before = attribute.old, !before.isEphemeral, !attribute.new.isEphemeral,
        !attribute.new.isOptional, attribute.new.storedDefault == nil
      else { return nil }
      return (before.name, attribute.new.name)
    }
    let relationships = mapping.relationships.compactMap { link -> (old: String, new: String)? in
      guard let before = link.old, link.new.isToOneRelationship, !link.new.isOptional else {
        return nil
      }
      return (before.name, link.new.name)
    }
    return (attributes + relationships).flatMap { property in
      entitiesGaining(property.old, from: mapping.new).map { heir in
        Change(
          .rule, heir, property.new, "requires \(mapping.new.name).\(property.new) of \(heir)",
          needs: "\(heir).\(property.new) is required, and existing rows have no value for it",
          rows: RowsInNeed(entity: heir, excludesSubentities: true))
      }
    }
  }

  /// The relationships whose links to rows of an entity have to end, because it leaves the entity that they refer to.
  private func endingLinks(toRowsOf mapping: EntityMapping) -> [Change] {
    entitiesLeft(by: mapping).flatMap { left in
      entities.flatMap { other in
        other.relationships.compactMap { relationship in
          guard let before = relationship.old, before.destination == left,
            haveSameDestination(before, relationship.new)
          else { return nil }
          let path = "\(other.new.name).\(relationship.new.name)"
          return Change(
            .rule, other.new.name, relationship.new.name,
            "excludes rows of \(mapping.new.name) from \(path)",
            needs: "\(mapping.new.name) no longer inherits from \(left), "
              + "so links of \(path) to its rows must be removed")
        }
      }
    }
  }

  /// The changes of uniqueness and indexes.
  private func ruleChanges(of mapping: EntityMapping, _ old: Schema.Entity) -> [Change] {
    let name = mapping.new.name
    var changes: [Change] = []
    let kept = mapping.new.uniquenessConstraints.map { Self.originalNames(of: $0, in: mapping) }
    for (group, original) in zip(mapping.new.uniquenessConstraints, kept)
    where !old.uniquenessConstraints.contains(original) {
      changes.append(
        Change(
          .rule, name, group.count == 1 ? group[0] : nil,
          "makes \(name).\(group.joined(separator: ", ")) unique"))
    }
    for group in old.uniquenessConstraints where !kept.contains(group) {
      changes.append(
        Change(.rule, name, nil, "makes \(name).\(group.joined(separator: ", ")) no longer unique"))
    }
    if old.indices != mapping.new.indices || old.fetchIndexes != mapping.new.fetchIndexes {
      changes.append(Change(.index, name, nil, "changes the indexes of \(name)"))
    }
    return changes
  }

  private static func originalNames(of group: [String], in mapping: EntityMapping) -> [String] {
    group.map { mapping.sourceName(of: $0) ?? $0 }
  }

  /// - Parameter isCarriedOver: Whether a new property gets the values of others.
  private static func changes(
    of mapping: PropertyMapping<Schema.Attribute>, entity: String, isCarriedOver: Bool = false
  ) -> [Change] {
    let new = mapping.new
    let path = "\(entity).\(new.name)"
    guard let old = mapping.old else {
      return [
        new.isEphemeral
          ? Change(.additive, entity, new.name, "adds \(path) (in memory only)")
          : addition(
            of: new.name, to: entity, "adds \(path) (\(new.swiftTypeName))",
            isFilled: new.isOptional || new.storedDefault != nil || isCarriedOver)
      ]
    }
    guard !old.isEphemeral, !new.isEphemeral else { return memoryChanges(old, new, entity: entity) }
    var changes: [Change] = []
    if old.name != new.name {
      changes.append(
        Change(.rename, entity, new.name, "renames \(entity).\(old.name) to \(new.name)"))
    }
    if !old.type.isStoredLike(new.type) {
      let types = "from \(old.type.swiftName) to \(new.type.swiftName)"
      changes.append(
        Change(
          .conversion, entity, new.name, "changes the type of \(path) \(types)",
          needs: "values of \(path) must be converted \(types)"))
    }
    if old.isOptional, !new.isOptional {
      changes.append(requirement(of: new.name, in: entity, isFilled: new.storedDefault != nil))
    } else if !old.isOptional, new.isOptional {
      changes.append(Change(.rule, entity, new.name, "makes \(path) optional"))
    }
    return changes
  }

  /// The changes of an attribute that at least one version has in memory only.
  private static func memoryChanges(
    _ old: Schema.Attribute, _ new: Schema.Attribute, entity: String
  ) -> [Change] {
    let path = "\(entity).\(new.name)"
    if !old.isEphemeral {
      return [
        Change(
          .destructive, entity, new.name,
          "keeps \(path) in memory only, and removes the values of \(entity).\(old.name)")
      ]
    }
    guard !new.isEphemeral else { return [] }
    return [
      addition(
        of: new.name, to: entity, "stores \(path), which was in memory only",
        isFilled: new.isOptional || new.storedDefault != nil)
    ]
  }

  private func changes(
    of mapping: PropertyMapping<Schema.Relationship>, entity: String
  ) -> [Change] {
    let new = mapping.new
    let path = "\(entity).\(new.name)"
    guard let old = mapping.old else {
      let count = new.isToOneRelationship ? "one" : "many"
      return [
        Self.addition(
          of: new.name, to: entity, "adds relationship \(path) to \(count) \(new.destination)",
          isFilled: !new.isToOneRelationship || new.isOptional)
      ]
    }
    var changes: [Change] = []
    func add(_ kind: ChangeKind, _ sentence: String, losesLinks: Bool = false) {
      changes.append(
        Change(
          kind, entity, new.name, sentence,
          needs: losesLinks ? "links of \(path) must be set again" : nil))
    }
    if old.name != new.name {
      add(.rename, "renames relationship \(entity).\(old.name) to \(new.name)")
    }
    if !haveSameDestination(old, new) {
      add(
        .conversion,
        "changes the destination of \(path) from \(old.destination) to \(new.destination)",
        losesLinks: true)
    }
    if old.isToOneRelationship != new.isToOneRelationship {
      add(
        .conversion, "makes \(path) a to-\(new.isToOneRelationship ? "one" : "many") relationship",
        losesLinks: !takesLinksAlong(mapping, of: entity))
    } else if hasOtherInverse(mapping, of: entity) {
      let sentence =
        new.inverseName.map { "makes \(new.destination).\($0) the inverse of \(path)" }
        ?? "removes the inverse of \(path)"
      let isJoined = joinsLinks(mapping, of: entity)
      add(
        .conversion, isJoined ? "\(sentence), which has \(links(of: new)) then" : sentence,
        losesLinks: !isJoined)
    }
    if old.isToOneRelationship, new.isToOneRelationship, old.isOptional, !new.isOptional {
      changes.append(Self.requirement(of: new.name, in: entity, isFilled: false))
    }
    if old.deleteRule != new.deleteRule {
      let rules = "from \(old.deleteRule.rawValue) to \(new.deleteRule.rawValue)"
      add(.rule, "changes the delete rule of \(path) \(rules)")
    }
    return changes
  }

  /// The links that a relationship has when an array became its inverse.
  private func links(of relationship: Schema.Relationship) -> String {
    let inverse = relationship.inverseName.flatMap { name in
      entities.first { $0.new.name == relationship.destination }?.relationships
        .first { $0.new.name == name }
    }
    return inverse?.old == nil ? "the same links" : "the links of both"
  }

  private static func addition(
    of property: String, to entity: String, _ sentence: String, _ kind: ChangeKind = .additive,
    isFilled: Bool
  ) -> Change {
    Change(
      kind, entity, property, sentence,
      needs: isFilled
        ? nil : "\(entity).\(property) is required, and existing rows have no value for it",
      rows: isFilled ? nil : RowsInNeed(entity: entity))
  }

  private static func requirement(
    of property: String, in entity: String, isFilled: Bool
  ) -> Change {
    let path = "\(entity).\(property)"
    return Change(
      .rule, entity, property, "makes \(path) required",
      needs: isFilled ? nil : "\(path) becomes required, and rows without a value need one",
      rows: isFilled ? nil : RowsInNeed(entity: entity, property: property))
  }
}

extension SchemaDifference.EntityMapping {
  /// The name that a property had in the old version; `nil` where it is new.
  package func sourceName(of property: String) -> String? {
    attributes.first { $0.new.name == property }?.old?.name
      ?? relationships.first { $0.new.name == property }?.old?.name
      ?? attributes.first { $0.new.isPartOfComposite && $0.new.compositeName == property }?.old?
      .compositeName
  }

  /// The name that a property has in the new version; the old name where that version does not have it.
  package func newName(of property: String) -> String {
    attributes.first { $0.old?.name == property }?.new.name
      ?? relationships.first { $0.old?.name == property }?.new.name ?? property
  }
}
