extension Schema.Entity {
  /// The entity this one inherits from; `nil` where there is none.
  public var superentity: Schema.Entity? { superentityName.flatMap { family.entity(named: $0) } }

  /// The entities that inherit from this one directly, ordered by name.
  public var subentities: Set<Schema.Entity> {
    Set(family.entities.filter { $0.superentityName == name }.map(family.connected))
  }

  /// All properties: those it inherits, then its own.
  public var properties: [any SchemaProperty] { inheritedProperties + storedProperties }

  /// The properties that its own declaration adds: attributes, composite ones as one property each, then relationships.
  public var storedProperties: [any SchemaProperty] {
    let plain: [any SchemaProperty] = attributes.filter { !$0.isPartOfComposite }
    return plain + compositeAttributes + relationships
  }

  /// `storedProperties` by their names.
  public var storedPropertiesByName: [String: any SchemaProperty] { Self.byName(storedProperties) }

  /// The properties of the entities it inherits from, those of the uppermost first.
  public var inheritedProperties: [any SchemaProperty] {
    var properties: [any SchemaProperty] = []
    // A schema may come from another process: no entity counts twice.
    var seen: Set<String> = [name]
    var next = superentity
    while let entity = next, seen.insert(entity.name).inserted {
      properties = entity.storedProperties + properties
      next = entity.superentity
    }
    return properties
  }

  /// `inheritedProperties` by their names.
  public var inheritedPropertiesByName: [String: any SchemaProperty] {
    Self.byName(inheritedProperties)
  }

  /// The properties that are kept in several columns, in the order of their first column.
  public var compositeAttributes: [Schema.CompositeAttribute] {
    var names: [String] = []
    var leaves: [String: [Schema.Attribute]] = [:]
    for attribute in attributes where attribute.isPartOfComposite {
      let name = String(attribute.name.prefix { $0 != "." })
      if leaves[name] == nil { names.append(name) }
      leaves[name, default: []].append(attribute)
    }
    return names.compactMap { name in
      leaves[name].map { Schema.CompositeAttribute(name: name, columns: $0) }
    }
  }

  private static func byName(_ properties: [any SchemaProperty]) -> [String: any SchemaProperty] {
    Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }
}

extension Schema.Attribute {
  /// Whether this is one column of a property that has several.
  var isPartOfComposite: Bool { name.contains(".") }
}

extension Schema {
  /// A property that is kept in a column for each of its fields: a Codable struct, or an enum without raw value.
  public struct CompositeAttribute: SchemaProperty {
    /// The name of the Swift property.
    public let name: String
    /// The name in the version before, equal to `name` where the property was not renamed.
    public let originalName: String
    /// Whether a model may have no value for it.
    public let isOptional: Bool
    /// What `@Attribute` was given.
    public let options: [Schema.Attribute.Option]
    /// Tells two versions of a property apart that differ in nothing else.
    public let hashModifier: String?
    /// The fields, or the cases, in the order of their declaration; named without the property.
    public let attributes: [Schema.Attribute]
    /// The type of the Swift property; none in a schema that came from another process.
    package let swiftType: SwiftType

    /// The fields, or the cases, in the order of their declaration; named without the property.
    public var properties: [any SchemaProperty] { attributes }

    init(name: String, columns: [Schema.Attribute]) {
      self.name = name
      originalName = columns.first.map { String($0.originalName.prefix { $0 != "." }) } ?? name
      isOptional = columns.first?.compositeType.isOptional ?? true
      options = columns.first?.options ?? []
      hashModifier = columns.first?.hashModifier
      swiftType = columns.first?.compositeType ?? SwiftType(nil)
      attributes = columns.map { column in
        var leaf = column
        leaf.name = String(column.name.dropFirst(name.count + 1))
        leaf.originalName = String(column.originalName.drop { $0 != "." }.dropFirst())
        leaf.options = []
        leaf.compositeType = SwiftType(nil)
        return leaf
      }
    }
  }

  /// A Swift type behind a property. Counts for nothing when properties are compared, and does not travel.
  package struct SwiftType: @unchecked Sendable, Hashable {
    // Metatypes are immutable; they are only not marked Sendable.
    package let type: (any Any.Type)?
    /// Whether the property may have no value.
    package let isOptional: Bool

    package init(_ type: (any Any.Type)?, isOptional: Bool = true) {
      self.type = type
      self.isOptional = isOptional
    }

    package static func == (left: SwiftType, right: SwiftType) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }
}

/// The entities of a schema in which some inherit, for the members of one that lead to others. Counts for nothing when
/// entities are compared, and does not travel.
///
/// Invariant: the entities in here have no family of their own, so that nothing refers to itself; they get this one
/// when they are handed out.
struct EntityFamily: Sendable, Hashable {
  let entities: [Schema.Entity]

  init(_ entities: [Schema.Entity]) {
    self.entities = entities.map { entity in
      var entity = entity
      if !entity.family.entities.isEmpty { entity.family = EntityFamily([]) }
      return entity
    }
  }

  func entity(named name: String) -> Schema.Entity? {
    entities.first { $0.name == name }.map(connected)
  }

  func connected(_ entity: Schema.Entity) -> Schema.Entity {
    var entity = entity
    entity.family = self
    return entity
  }

  static func == (left: EntityFamily, right: EntityFamily) -> Bool { true }
  func hash(into hasher: inout Hasher) {}
}
