/// What is different between two versions of a schema: which entity and property of the new one comes from which of the
/// old one, and what that means for the stage between them.
///
/// A property comes from the one its `originalName` names; else from the one of its own name. Explicit renames go first,
/// and a property is the source of one other at most: `contentOld` with the original name "content" leaves a new
/// `content` without a source.
public struct SchemaDifference: Sendable {
  public var entities: [EntityMapping]
  public var removedEntities: [Schema.Entity]
  private let old: Schema
  private let new: Schema

  public struct EntityMapping: Sendable {
    /// `nil` for an entity that is new.
    public var old: Schema.Entity?
    public var new: Schema.Entity
    public var attributes: [PropertyMapping<Schema.Attribute>]
    public var relationships: [PropertyMapping<Schema.Relationship>]
    public var removedAttributes: [Schema.Attribute]
    public var removedRelationships: [Schema.Relationship]
  }

  public struct PropertyMapping<Property: SchemaProperty>: Sendable {
    /// `nil` for a property that is new.
    public var old: Property?
    public var new: Property
  }

  public init(from old: Schema, to new: Schema) {
    self.old = old
    self.new = new
    let names = Set(new.entities.map(\.name))
    removedEntities = old.entities.filter { !names.contains($0.name) }
    entities = new.entities.map { entity in
      let source = old.entity(named: entity.name)
      let attributes = Self.map(source?.attributes ?? [], entity.attributes)
      let relationships = Self.map(source?.relationships ?? [], entity.relationships)
      return EntityMapping(
        old: source, new: entity, attributes: attributes, relationships: relationships,
        removedAttributes: Self.unused(source?.attributes ?? [], by: attributes),
        removedRelationships: Self.unused(source?.relationships ?? [], by: relationships))
    }
  }

  private static func map<Property: SchemaProperty>(
    _ old: [Property], _ new: [Property]
  ) -> [PropertyMapping<Property>] {
    var free = Dictionary(old.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var sources: [String: Property] = [:]
    for property in new where property.originalName != property.name {
      sources[property.name] = free.removeValue(forKey: property.originalName)
    }
    for property in new where sources[property.name] == nil {
      sources[property.name] = free.removeValue(forKey: property.name)
    }
    return new.map { PropertyMapping(old: sources[$0.name], new: $0) }
  }

  private static func unused<Property: SchemaProperty>(
    _ old: [Property], by mappings: [PropertyMapping<Property>]
  ) -> [Property] {
    let used = Set(mappings.compactMap { $0.old?.name })
    return old.filter { !used.contains($0.name) }
  }

  // MARK: Changes

  /// One change, as people read it.
  public struct Change: Sendable, Hashable {
    /// "adds Note.contentNew (data, optional)".
    public var sentence: String
    /// Why Instar cannot derive what to do; `nil` where a lightweight stage does.
    public var needsCustomStage: String?
  }

  /// Every change, entity by entity. Empty where the two versions are stored alike.
  public var changes: [Change] {
    var changes: [Change] = []
    func add(_ sentence: String, needs reason: String? = nil) {
      changes.append(Change(sentence: sentence, needsCustomStage: reason))
    }
    for entity in removedEntities { add("removes entity \(entity.name) with its rows") }
    for mapping in entities {
      let name = mapping.new.name
      guard let old = mapping.old else {
        add("adds entity \(name)")
        continue
      }
      if old.superentityName != mapping.new.superentityName {
        let place = mapping.new.superentityName.map { "below \($0)" } ?? "out of inheritance"
        add(
          "moves \(name) \(place)",
          needs: "rows of \(name) have to be made anew in another table, or with other properties")
      }
      for attribute in mapping.removedAttributes {
        add("removes \(name).\(attribute.name) with its values")
      }
      for relationship in mapping.removedRelationships {
        add("removes relationship \(name).\(relationship.name) with its links")
      }
      for attribute in mapping.attributes {
        Self.describe(attribute, of: name).forEach { changes.append($0) }
      }
      for relationship in mapping.relationships {
        describe(relationship, of: name).forEach { changes.append($0) }
      }
      for group in mapping.new.uniquenessConstraints
      where !old.uniquenessConstraints.contains(Self.originalNames(of: group, in: mapping)) {
        add("makes \(name).\(group.joined(separator: ", ")) unique")
      }
      for group in old.uniquenessConstraints
      where !mapping.new.uniquenessConstraints.contains(where: {
        Self.originalNames(of: $0, in: mapping) == group
      }) {
        add("lets values of \(name).\(group.joined(separator: ", ")) repeat")
      }
      if old.indices != mapping.new.indices { add("changes the indexes of \(name)") }
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
          sentence: "adds \(path) (\(kind))",
          needsCustomStage: isFilled
            ? nil : "\(path) is required, and existing rows have no value for it")
      ]
    }
    var changes: [Change] = []
    if old.name != new.name {
      changes.append(Change(sentence: "renames \(entity).\(old.name) to \(new.name)"))
    }
    if !old.type.isStoredLike(new.type) {
      changes.append(
        Change(
          sentence: "changes the type of \(path) from \(old.type.rawValue) to \(new.type.rawValue)",
          needsCustomStage:
            "values of \(path) have to be converted from \(old.type.rawValue) to \(new.type.rawValue)"
        ))
    }
    if old.isOptional, !new.isOptional {
      changes.append(
        Change(
          sentence: "makes \(path) required",
          needsCustomStage: new.storedDefault == nil
            ? "\(path) becomes required, and rows without a value need one" : nil))
    } else if !old.isOptional, new.isOptional {
      changes.append(Change(sentence: "makes \(path) optional"))
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
          sentence:
            "adds relationship \(path) to \(new.isToOneRelationship ? "one" : "many") \(new.destination)",
          needsCustomStage: isFilled
            ? nil : "\(path) is required, and existing rows have no value for it")
      ]
    }
    var changes: [Change] = []
    if old.name != new.name {
      changes.append(Change(sentence: "renames relationship \(entity).\(old.name) to \(new.name)"))
    }
    if old.destination != new.destination {
      changes.append(
        Change(
          sentence: "leads \(path) to \(new.destination) instead of \(old.destination)",
          needsCustomStage: "links of \(path) have to be made anew"))
    }
    if old.isToOneRelationship != new.isToOneRelationship {
      changes.append(
        Change(
          sentence: "makes \(path) lead to \(new.isToOneRelationship ? "one" : "many")",
          needsCustomStage: "links of \(path) have to be made anew"))
    } else if !old.isToOneRelationship, old.destination == new.destination,
      !keepsLinks(mapping, of: entity)
    {
      changes.append(
        Change(
          sentence: "pairs \(path) with \(inversePath(new) ?? "no inverse")",
          needsCustomStage: "links of \(path) have to be made anew"))
    }
    if old.isToOneRelationship, new.isToOneRelationship, old.isOptional, !new.isOptional {
      changes.append(
        Change(
          sentence: "makes \(path) required",
          needsCustomStage: "\(path) becomes required, and rows without a value need one"))
    }
    if old.deleteRule != new.deleteRule {
      changes.append(
        Change(
          sentence:
            "changes the delete rule of \(path) from \(old.deleteRule.rawValue) to \(new.deleteRule.rawValue)"
        ))
    }
    return changes
  }
}

extension SchemaDifference {
  /// Whether the links of a to-many relationship that both versions have are still found where they are stored: in a
  /// join table, or in a column of the other entity's rows.
  ///
  /// A relationship without inverse and one whose inverse is to-one are stored alike, so that an inverse can come and go.
  private func keepsLinks(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
    guard let before = mapping.old else { return true }
    let oldInverse = inverse(of: before, in: old)
    let newInverse = inverse(of: mapping.new, in: new)
    let source = newInverse.flatMap { inverse in
      entities.first { $0.new.name == mapping.new.destination }?.relationships
        .first { $0.new.name == inverse.name }?.old
    }
    switch (oldInverse, newInverse) {
    case (nil, nil): return true
    case (nil, let inverse?): return inverse.isToOneRelationship && source == nil
    case (let inverse?, nil):
      let isKept = entities.contains { mapping in
        mapping.new.name == before.destination
          && mapping.relationships.contains { $0.old?.name == inverse.name }
      }
      return inverse.isToOneRelationship && !isKept
    case (let one?, let two?):
      guard one.isToOneRelationship == two.isToOneRelationship else { return false }
      // Links in a join table belong to both sides: one that is recognised is enough.
      return source?.name == one.name || !one.isToOneRelationship
    }
  }

  private func inverse(
    of relationship: Schema.Relationship, in schema: Schema
  ) -> Schema.Relationship? {
    guard let name = relationship.inverseName else { return nil }
    return schema.entity(named: relationship.destination)?.relationships.first { $0.name == name }
  }

  private func inversePath(_ relationship: Schema.Relationship) -> String? {
    relationship.inverseName.map { "\(relationship.destination).\($0)" }
  }

  /// The to-one relationship that takes over the links of a to-many relationship which had no inverse before, or the other
  /// way round: both are the key of the owner, in the rows of the destination.
  public func inverseThatCame(
    for mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, before.inverseName == nil,
      before.destination == mapping.new.destination,
      let inverse = inverse(of: mapping.new, in: new), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }

  /// The to-one relationship whose links a to-many relationship takes over that has no inverse any more.
  public func inverseThatWent(
    for mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, !mapping.new.isToOneRelationship,
      mapping.new.inverseName == nil, before.destination == mapping.new.destination,
      let inverse = inverse(of: before, in: old), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }
}

extension Schema.AttributeType {
  /// Whether a stored value of one type is one of the other without a conversion: integers of all widths are.
  public func isStoredLike(_ other: Schema.AttributeType) -> Bool {
    func kind(_ type: Schema.AttributeType) -> Schema.AttributeType {
      switch type {
      case .int16, .int32, .int64: .int64
      case .float, .double: .double
      default: type
      }
    }
    return kind(self) == kind(other)
  }
}
