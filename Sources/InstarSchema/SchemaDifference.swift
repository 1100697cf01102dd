/// The differences between two versions of a schema: the source of each entity and property of the new version in the
/// old one, and what the differences mean for the stage between the two.
///
/// The source has the `originalName`, else the same name. Explicit renames are resolved first, and a source is used
/// once: `contentOld` with the original name "content" leaves a new `content` without a source. The source of a
/// property may belong to a superentity or subentity of its own entity: the property moved. The same holds for the
/// properties of a new superentity.
public struct SchemaDifference: Sendable {
  /// The entities of the new version, each with its source.
  public var entities: [EntityMapping]
  /// The entities of the old version that are the source of none.
  public var removedEntities: [Schema.Entity]
  let old: Schema
  let new: Schema
  /// The old name of each entity of the new version that has a source.
  let sourceNames: [String: String]
  /// By entity of the new version: the properties of several old entities that would become one property of it, such as
  /// "State.name".
  let joinedProperties: [String: [String]]

  /// An entity of the new version and its source.
  public struct EntityMapping: Sendable {
    /// The source; `nil` for an added entity.
    public var old: Schema.Entity?
    /// The entity as the new version declares it.
    public var new: Schema.Entity
    /// Its attributes, each with its source.
    public var attributes: [PropertyMapping<Schema.Attribute>]
    /// Its relationships, each with its source.
    public var relationships: [PropertyMapping<Schema.Relationship>]
    /// The attributes of the source that nothing continues.
    public var removedAttributes: [Schema.Attribute]
    /// The relationships of the source that nothing continues.
    public var removedRelationships: [Schema.Relationship]
    /// In a plain store: properties that the new version does not have but whose column it has, as that of another
    /// kind of property: a key in an attribute becomes a relationship, or the reverse. By their names in the old
    /// version, with those of the new properties. They count as neither removed nor added.
    public var keptColumns: [String: String] = [:]
  }

  /// A property of the new version and its source.
  public struct PropertyMapping<Property: SchemaProperty>: Sendable {
    /// The source; `nil` for an added property.
    public var old: Property?
    /// The property as the new version declares it.
    public var new: Property
  }

  /// Compares two versions, in the direction of a migration.
  public init(from old: Schema, to new: Schema) {
    self.old = old
    self.new = new
    let sources = Self.sources(of: new.entities, in: old.entities) { ($0.name, $0.originalName) }
    sourceNames = sources.mapValues(\.name)
    let used = Set(sourceNames.values)
    removedEntities = old.entities.filter { !used.contains($0.name) }
    // The names of old properties that are a source, by the entities that may declare them.
    var kept: [String: Set<String>] = [:]
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
        for member in related { kept[member.name, default: []].insert(name) }
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
        kept[source.name]?.contains($0.name) != true
      }
      entities[index].removedRelationships = source.relationships.filter {
        kept[source.name]?.contains($0.name) != true
      }
      keepColumns(at: index)
    }
  }

  /// The source of each element of the new version, by its name.
  ///
  /// - Parameter names: The name of an element, and its original one.
  private static func sources<Element>(
    of new: [Element], in old: some Sequence<Element>,
    _ names: (Element) -> (current: String, original: String)
  ) -> [String: Element] {
    var free = old.keyed { names($0).current }
    var sources: [String: Element] = [:]
    for (name, original) in new.map(names) where original != name {
      sources[name] = free.removeValue(forKey: original)
    }
    for (name, _) in new.map(names) where sources[name] == nil {
      sources[name] = free.removeValue(forKey: name)
    }
    return sources
  }

  /// The sources of the entities whose rows hold the values of an entity's properties: the entity itself, or for an
  /// added one its subentities.
  private static func origins<Source>(
    of entity: Schema.Entity, in new: Schema, _ sources: [String: Source]
  ) -> [Source] {
    if let source = sources[entity.name] { return [source] }
    return below(entity, in: new).compactMap { sources[$0.name] }
  }

  /// Returns the names of the old entities whose rows hold the values of an entity's properties: its source, or for an
  /// added entity the sources of its subentities.
  public func originNames(of entity: Schema.Entity) -> [String] {
    Self.origins(of: entity, in: new, sourceNames)
  }

  /// The entities whose properties an entity has, or gets by a change of the hierarchy: itself, its superentities, its
  /// subentities.
  package static func family(of entity: Schema.Entity, in schema: Schema) -> [Schema.Entity] {
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

  static func below(_ entity: Schema.Entity, in schema: Schema) -> [Schema.Entity] {
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

  /// Returns the new name of an entity of the old version; the old name where the new version does not have it.
  package func newName(of entity: String) -> String {
    entities.first { $0.old?.name == entity }?.new.name ?? entity
  }

  /// Returns whether two relationships have the same destination, which may have been renamed.
  public func haveSameDestination(
    _ old: Schema.Relationship, _ new: Schema.Relationship
  ) -> Bool {
    sourceNames[new.destination] == old.destination
  }

  /// - Parameter old: The properties that can be sources, those of nearer entities first.
  private static func map<Property: SchemaProperty>(
    _ old: [[Property]], _ new: [Property]
  ) -> [PropertyMapping<Property>] {
    let sources = sources(of: new, in: old.joined()) { ($0.name, $0.originalName) }
    return new.map { PropertyMapping(old: sources[$0.name], new: $0) }
  }
}

extension Schema.Entity {
  /// Returns whether the entity itself declares a property with this name.
  package func declares(_ name: String) -> Bool {
    attributes.contains { $0.name == name } || relationships.contains { $0.name == name }
  }

  var declaredNames: [String] { attributes.map(\.name) + relationships.map(\.name) }
}
