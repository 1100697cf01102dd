extension SchemaDifference {
  /// One change, as plans and reports show it.
  public struct Change: Sendable, Hashable {
    public var kind: ChangeKind
    /// The name of the entity in the new version, or in the old version if it is removed.
    public var entity: String
    /// The name of the attribute or relationship, in the same version as the entity's.
    public var property: String?
    /// For example "adds Note.contentNew (data, optional)".
    public var sentence: String
    /// The reason why the change needs a custom stage; `nil` if a lightweight stage makes it.
    public var needsCustomStage: String?
    /// The rows that need the custom stage; without them a lightweight stage is enough. `nil` if rows do not matter.
    public var rowsInNeed: RowsInNeed?
  }

  /// Rows that have no value for a property that the new version requires. Names are those of the new version.
  public struct RowsInNeed: Sendable, Hashable {
    public var entity: String
    /// Only rows without a value of this property need the stage; `nil` for a new property, for which all rows do.
    public var property: String?
  }

  /// Every change, entity by entity; empty if both versions are stored in the same way.
  public var changes: [Change] {
    var changes: [Change] = []
    func add(
      _ kind: ChangeKind, _ entity: String, property: String? = nil, _ sentence: String,
      needs reason: String? = nil
    ) {
      changes.append(
        Change(
          kind: kind, entity: entity, property: property, sentence: sentence,
          needsCustomStage: reason))
    }
    for entity in removedEntities {
      add(
        .destructive, entity.name,
        "removes entity \(entity.name)" + (entity.isAbstract ? "" : " with its rows"))
    }
    for mapping in entities {
      let name = mapping.new.name
      if let properties = joinedProperties[name] {
        let list = properties.joined(separator: " and ")
        add(
          .conversion, name, "moves \(list) to \(name)",
          needs: "\(list) have separate columns, and \(name) has one for both")
      }
      guard let old = mapping.old else {
        add(.additive, name, "adds entity \(name)")
        continue
      }
      if old.name != name { add(.rename, name, "renames entity \(old.name) to \(name)") }
      let above = mapping.new.superentityName
      if above.flatMap({ sourceNames[$0] }) != old.superentityName {
        add(
          .bookkeeping, name,
          "makes \(name) inherit from \(above ?? "no entity")",
          needs: above.flatMap { joiningHierarchy(mapping, to: $0) })
      }
      for attribute in mapping.removedAttributes {
        add(
          .destructive, name, property: attribute.name,
          "removes \(name).\(attribute.name) with its values")
      }
      for relationship in mapping.removedRelationships {
        add(
          .destructive, name, property: relationship.name,
          "removes relationship \(name).\(relationship.name) with its links")
      }
      for attribute in mapping.attributes {
        Self.describe(attribute, of: name).forEach { changes.append($0) }
      }
      for relationship in mapping.relationships {
        describe(relationship, of: name).forEach { changes.append($0) }
      }
      for group in mapping.new.uniquenessConstraints
      where !old.uniquenessConstraints.contains(Self.originalNames(of: group, in: mapping)) {
        add(
          .rule, name, property: group.count == 1 ? group[0] : nil,
          "makes \(name).\(group.joined(separator: ", ")) unique")
      }
      for group in old.uniquenessConstraints
      where !mapping.new.uniquenessConstraints.contains(where: {
        Self.originalNames(of: $0, in: mapping) == group
      }) {
        add(
          .rule, name, "makes \(name).\(group.joined(separator: ", ")) no longer unique")
      }
      if old.indices != mapping.new.indices || old.fetchIndexes != mapping.new.fetchIndexes {
        add(.index, name, "changes the indexes of \(name)")
      }
    }
    return changes
  }

  private static func originalNames(of group: [String], in mapping: EntityMapping) -> [String] {
    group.map { name in
      mapping.attributes.first { $0.new.name == name }?.old?.name
        ?? mapping.relationships.first { $0.new.name == name }?.old?.name ?? name
    }
  }

  private static func describe(
    _ mapping: PropertyMapping<Schema.Attribute>, of entity: String
  ) -> [Change] {
    let new = mapping.new
    let path = "\(entity).\(new.name)"
    guard let old = mapping.old else {
      let kind = "\(new.type.rawValue), \(new.isOptional ? "optional" : "required")"
      let isFilled = new.isOptional || new.storedDefault != nil
      return [
        Change(
          kind: .additive, entity: entity, property: new.name,
          sentence: "adds \(path) (\(kind))",
          needsCustomStage: isFilled
            ? nil : "\(path) is required, and existing rows have no value for it",
          rowsInNeed: isFilled ? nil : RowsInNeed(entity: entity))
      ]
    }
    var changes: [Change] = []
    if old.name != new.name {
      changes.append(
        Change(
          kind: .rename, entity: entity, property: new.name,
          sentence: "renames \(entity).\(old.name) to \(new.name)"))
    }
    if !old.type.isStoredLike(new.type) {
      changes.append(
        Change(
          kind: .conversion, entity: entity, property: new.name,
          sentence: "changes the type of \(path) from \(old.type.rawValue) to \(new.type.rawValue)",
          needsCustomStage:
            "values of \(path) must be converted from \(old.type.rawValue) to \(new.type.rawValue)"
        ))
    }
    if old.isOptional, !new.isOptional {
      changes.append(
        Change(
          kind: .rule, entity: entity, property: new.name, sentence: "makes \(path) required",
          needsCustomStage: new.storedDefault == nil
            ? "\(path) becomes required, and rows without a value need one" : nil,
          rowsInNeed: new.storedDefault == nil
            ? RowsInNeed(entity: entity, property: new.name) : nil))
    } else if !old.isOptional, new.isOptional {
      changes.append(
        Change(
          kind: .rule, entity: entity, property: new.name, sentence: "makes \(path) optional"))
    }
    return changes
  }

  private func describe(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> [Change] {
    let new = mapping.new
    let path = "\(entity).\(new.name)"
    guard let old = mapping.old else {
      let isFilled = !new.isToOneRelationship || new.isOptional
      return [
        Change(
          kind: .additive, entity: entity, property: new.name,
          sentence:
            "adds relationship \(path) to \(new.isToOneRelationship ? "one" : "many") \(new.destination)",
          needsCustomStage: isFilled
            ? nil : "\(path) is required, and existing rows have no value for it",
          rowsInNeed: isFilled ? nil : RowsInNeed(entity: entity))
      ]
    }
    var changes: [Change] = []
    if old.name != new.name {
      changes.append(
        Change(
          kind: .rename, entity: entity, property: new.name,
          sentence: "renames relationship \(entity).\(old.name) to \(new.name)"))
    }
    if !leadToSameEntity(old, new) {
      changes.append(
        Change(
          kind: .conversion, entity: entity, property: new.name,
          sentence:
            "changes the destination of \(path) from \(old.destination) to \(new.destination)",
          needsCustomStage: "links of \(path) must be set again"))
    }
    if old.isToOneRelationship != new.isToOneRelationship {
      changes.append(
        Change(
          kind: .conversion, entity: entity, property: new.name,
          sentence: "makes \(path) a to-\(new.isToOneRelationship ? "one" : "many") relationship",
          needsCustomStage: leadsToManyNow(mapping) ? nil : "links of \(path) must be set again"))
    } else if !old.isToOneRelationship, leadToSameEntity(old, new),
      // Each link is kept twice where a relationship is its own inverse.
      old.isOwnInverse(in: sourceNames[entity] ?? entity) != new.isOwnInverse(in: entity)
        || !keepsLinks(mapping, of: entity)
    {
      changes.append(
        Change(
          kind: .conversion, entity: entity, property: new.name,
          sentence: inversePath(new).map { "makes \($0) the inverse of \(path)" }
            ?? "removes the inverse of \(path)",
          needsCustomStage: "links of \(path) must be set again"))
    }
    if old.isToOneRelationship, new.isToOneRelationship, old.isOptional, !new.isOptional {
      changes.append(
        Change(
          kind: .rule, entity: entity, property: new.name, sentence: "makes \(path) required",
          needsCustomStage: "\(path) becomes required, and rows without a value need one",
          rowsInNeed: RowsInNeed(entity: entity, property: new.name)))
    }
    if old.deleteRule != new.deleteRule {
      changes.append(
        Change(
          kind: .rule, entity: entity, property: new.name,
          sentence:
            "changes the delete rule of \(path) from \(old.deleteRule.rawValue) to \(new.deleteRule.rawValue)"
        ))
    }
    return changes
  }
}
