/// The differences between two versions of a schema: the source of each entity and property of the new version in the
/// old one, and what the differences mean for the stage between the two.
///
/// The source has the `originalName`, else the same name. Explicit renames are resolved first, and a source is used
/// once: `contentOld` with the original name "content" leaves a new `content` without a source. The source of a
/// property may belong to a superentity or subentity of its own entity: the property moved. The same holds for the
/// properties of a new superentity.
public struct SchemaDifference: Sendable {
  public var entities: [EntityMapping]
  public var removedEntities: [Schema.Entity]
  private let old: Schema
  private let new: Schema
  /// The old name of each entity of the new version that has a source.
  private let sourceNames: [String: String]
  /// By entity of the new version: the properties of several old entities that would become one property of it, such as
  /// "State.name".
  private let joinedProperties: [String: [String]]

  /// An entity of the new version and its source.
  public struct EntityMapping: Sendable {
    /// The source; `nil` for an added entity.
    public var old: Schema.Entity?
    public var new: Schema.Entity
    public var attributes: [PropertyMapping<Schema.Attribute>]
    public var relationships: [PropertyMapping<Schema.Relationship>]
    public var removedAttributes: [Schema.Attribute]
    public var removedRelationships: [Schema.Relationship]
  }

  /// A property of the new version and its source.
  public struct PropertyMapping<Property: SchemaProperty>: Sendable {
    /// The source; `nil` for an added property.
    public var old: Property?
    public var new: Property
  }

  /// Compares two versions, in the direction of a migration.
  public init(from old: Schema, to new: Schema) {
    self.old = old
    self.new = new
    let sources = Self.sources(of: new.entities, in: old.entities)
    sourceNames = sources.mapValues(\.name)
    let used = Set(sourceNames.values)
    removedEntities = old.entities.filter { !used.contains($0.name) }
    var kept = KeptProperties()
    var apart: [String: [String]] = [:]
    entities = new.entities.map { entity in
      let source = sources[entity.name]
      let related = Self.origins(of: entity, in: new, sources)
        .reduce(into: [Schema.Entity]()) { found, origin in
          for member in Self.family(of: origin, in: old)
          where !found.contains(where: { $0.name == member.name }) {
            found.append(member)
          }
        }
      let attributes = Self.map(related.map(\.attributes), entity.attributes)
      let relationships = Self.map(related.map(\.relationships), entity.relationships)
      for name in attributes.compactMap(\.old?.name) + relationships.compactMap(\.old?.name) {
        kept.insert(name, of: related.map(\.name))
        let owners = related.filter { $0.declares(name) }.map(\.name)
        if owners.count > 1 { apart[entity.name, default: []] += owners.map { "\($0).\(name)" } }
      }
      return EntityMapping(
        old: source, new: entity, attributes: attributes, relationships: relationships,
        removedAttributes: [], removedRelationships: [])
    }
    joinedProperties = apart
    for index in entities.indices {
      guard let source = entities[index].old else { continue }
      entities[index].removedAttributes = source.attributes.filter {
        !kept.contains($0.name, of: source.name)
      }
      entities[index].removedRelationships = source.relationships.filter {
        !kept.contains($0.name, of: source.name)
      }
    }
  }

  /// The names of old properties that are a source, by the entities that may declare them.
  private struct KeptProperties {
    private var names: [String: Set<String>] = [:]

    mutating func insert(_ name: String, of entities: [String]) {
      for entity in entities { names[entity, default: []].insert(name) }
    }

    func contains(_ name: String, of entity: String) -> Bool {
      names[entity]?.contains(name) ?? false
    }
  }

  /// The source of each entity of the new version.
  private static func sources(
    of new: [Schema.Entity], in old: [Schema.Entity]
  ) -> [String: Schema.Entity] {
    var free = Dictionary(old.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var sources: [String: Schema.Entity] = [:]
    for entity in new where entity.originalName != entity.name {
      sources[entity.name] = free.removeValue(forKey: entity.originalName)
    }
    for entity in new where sources[entity.name] == nil {
      sources[entity.name] = free.removeValue(forKey: entity.name)
    }
    return sources
  }

  /// The old entities whose rows hold the values of an entity's properties: its source, or for an added entity the
  /// sources of its subentities.
  private static func origins(
    of entity: Schema.Entity, in new: Schema, _ sources: [String: Schema.Entity]
  ) -> [Schema.Entity] {
    if let source = sources[entity.name] { return [source] }
    return below(entity, in: new).compactMap { sources[$0.name] }
  }

  /// Returns the names of the old entities whose rows hold the values of an entity's properties: its source, or for an
  /// added entity the sources of its subentities.
  public func originNames(of entity: Schema.Entity) -> [String] {
    if let source = sourceNames[entity.name] { return [source] }
    return Self.below(entity, in: new).compactMap { sourceNames[$0.name] }
  }

  /// The entities whose properties an entity has, or gets by a change of the hierarchy: itself, its superentities, its
  /// subentities.
  private static func family(of entity: Schema.Entity, in schema: Schema) -> [Schema.Entity] {
    let byName = schema.entitiesByName
    var family = [entity]
    var names: Set<String> = [entity.name]
    var next = entity.superentityName
    while let name = next, names.insert(name).inserted, let above = byName[name] {
      family.append(above)
      next = above.superentityName
    }
    return family + below(entity, in: schema).filter { names.insert($0.name).inserted }
  }

  private static func below(_ entity: Schema.Entity, in schema: Schema) -> [Schema.Entity] {
    var found: [Schema.Entity] = []
    var names: Set<String> = [entity.name]
    var level = names
    while !level.isEmpty {
      let next = schema.entities.filter { other in
        other.superentityName.map(level.contains) == true && names.insert(other.name).inserted
      }
      found += next
      level = Set(next.map(\.name))
    }
    return found
  }

  /// Returns the old name of an entity of the new version; `nil` for an added entity.
  public func sourceName(of entity: String) -> String? { sourceNames[entity] }

  /// Returns whether two relationships have the same destination, which may have been renamed.
  public func leadToSameEntity(
    _ old: Schema.Relationship, _ new: Schema.Relationship
  ) -> Bool {
    sourceNames[new.destination] == old.destination
  }

  /// - Parameter old: The properties that can be sources, those of nearer entities first.
  private static func map<Property: SchemaProperty>(
    _ old: [[Property]], _ new: [Property]
  ) -> [PropertyMapping<Property>] {
    var free = Dictionary(
      old.joined().map { ($0.name, $0) }, uniquingKeysWith: { nearer, _ in nearer })
    var sources: [String: Property] = [:]
    for property in new where property.originalName != property.name {
      sources[property.name] = free.removeValue(forKey: property.originalName)
    }
    for property in new where sources[property.name] == nil {
      sources[property.name] = free.removeValue(forKey: property.name)
    }
    return new.map { PropertyMapping(old: sources[$0.name], new: $0) }
  }

  // MARK: Changes

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
            ? nil : "\(path) is required, and existing rows have no value for it")
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
            ? "\(path) becomes required, and rows without a value need one" : nil))
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
            ? nil : "\(path) is required, and existing rows have no value for it")
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
          needsCustomStage: "\(path) becomes required, and rows without a value need one"))
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

extension SchemaDifference {
  /// Whether both versions store the links of a to-many relationship in the same place: a join table, or a column of
  /// the destination's rows.
  ///
  /// A relationship without an inverse and one with a to-one inverse are stored in the same way, so a to-one inverse
  /// can be added or removed.
  private func keepsLinks(
    _ mapping: PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Bool {
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

  /// Returns whether a to-one relationship becomes to-many with the same destination, and keeps the link of each row.
  ///
  /// It does not if its new inverse is to-one and existed before without being its inverse: that has other links.
  public func leadsToManyNow(_ mapping: PropertyMapping<Schema.Relationship>) -> Bool {
    guard let before = mapping.old, before.isToOneRelationship,
      !mapping.new.isToOneRelationship, leadToSameEntity(before, mapping.new)
    else { return false }
    guard let inverse = inverse(of: mapping.new, in: new), inverse.isToOneRelationship,
      let source = previous(of: inverse, in: mapping.new.destination)
    else { return true }
    return source.name == before.inverseName
  }

  /// Reasons against a lightweight stage in a plain store, where Instar does not move the links of a to-one
  /// relationship that becomes to-many.
  public var linksToMoveBetweenTables: [String] {
    entities.flatMap { mapping in
      mapping.relationships.filter { leadsToManyNow($0) }
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
  private func joiningHierarchy(_ mapping: EntityMapping, to above: String) -> String? {
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

  private func inversePath(_ relationship: Schema.Relationship) -> String? {
    relationship.inverseName.map { "\(relationship.destination).\($0)" }
  }

  /// Returns the added to-one inverse of a to-many relationship that had none. Both store the same links: the owner's
  /// key in the rows of the destination.
  public func inverseThatCame(
    for mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, before.inverseName == nil,
      leadToSameEntity(before, mapping.new),
      let inverse = inverse(of: mapping.new, in: new), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }

  /// Returns the removed to-one inverse of a to-many relationship, which takes over its links.
  public func inverseThatWent(
    for mapping: PropertyMapping<Schema.Relationship>
  ) -> Schema.Relationship? {
    guard let before = mapping.old, !before.isToOneRelationship, !mapping.new.isToOneRelationship,
      mapping.new.inverseName == nil, leadToSameEntity(before, mapping.new),
      let inverse = inverse(of: before, in: old), inverse.isToOneRelationship
    else { return nil }
    return inverse
  }
}

extension Schema.Entity {
  /// Whether the entity itself declares a property with this name.
  fileprivate func declares(_ name: String) -> Bool {
    attributes.contains { $0.name == name } || relationships.contains { $0.name == name }
  }
}

extension Schema.AttributeType {
  /// Returns whether stored values of one type are valid values of the other without conversion, as integers of all
  /// widths are.
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
