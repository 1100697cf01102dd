extension Schema {
  /// One model of a schema: its attributes, relationships and constraints.
  public struct Entity: Sendable, Hashable, Codable {
    /// The name of the model class, without the types that it is nested in.
    public var name: String
    /// The properties that hold values, in no fixed order.
    public var attributes: [Attribute]
    /// The properties that refer to other models, in no fixed order.
    public var relationships: [Relationship]

    /// Each element is a group of properties whose values may occur only once together.
    /// An attribute with the option `.unique` is a group of one.
    public var uniquenessConstraints: [[String]]

    /// Each element is a group of properties that an index covers, in that order.
    public var indices: [[String]]

    /// Named indexes, besides those of `indices`.
    public var fetchIndexes: [FetchIndex] = []

    /// The name of the superentity; `nil` if there is none.
    public var superentityName: String?

    /// The name in the previous version; equal to `name` unless the entity was renamed.
    public var originalName: String

    /// Whether only subentities have rows.
    public var isAbstract = false

    /// Distinguishes two versions of an entity without other differences.
    public var hashModifier: String?

    /// The entities of the schema if some of them inherit; set by the schema.
    var family = EntityFamily([])

    private enum CodingKeys: String, CodingKey {
      case name, originalName, attributes, relationships, uniquenessConstraints, indices
      case fetchIndexes, superentityName, isAbstract, hashModifier, table
    }

    /// The table in a plain store; `nil` in a schema of the Core Data format.
    public var table: Table?

    /// An entity. Constraints and indices contain names of its properties.
    public init(
      name: String, originalName: String? = nil, attributes: [Attribute] = [],
      relationships: [Relationship] = [], uniquenessConstraints: [[String]] = [],
      indices: [[String]] = [], superentityName: String? = nil
    ) {
      self.name = name
      self.originalName = originalName ?? name
      self.attributes = attributes
      self.relationships = relationships
      self.uniquenessConstraints = uniquenessConstraints
      self.indices = indices
      self.superentityName = superentityName
    }

    /// The attributes by their names.
    public var attributesByName: [String: Attribute] {
      attributes.keyed(by: \.name)
    }

    /// The relationships by their names.
    public var relationshipsByName: [String: Relationship] {
      relationships.keyed(by: \.name)
    }
  }

  /// A named index, as a Core Data model declares it.
  public struct FetchIndex: Sendable, Hashable, Codable {
    /// The index's name in the model.
    public var name: String
    /// The properties that the index covers, in this order.
    public var elements: [Element]
    /// The condition of a partial index, as SQL over the columns of the table; `nil` if it covers all rows, or if only
    /// `partialPredicate` is known.
    public var condition: String?
    /// The condition of a partial index as the text of an `NSPredicate`. Its SQL can only be read from a store that
    /// Apple's frameworks created.
    public var partialPredicate: String?

    /// An index over some properties.
    public init(
      name: String, elements: [Element], condition: String? = nil, partialPredicate: String? = nil
    ) {
      self.name = name
      self.elements = elements
      self.condition = condition
      self.partialPredicate = partialPredicate
    }

    /// Whether the index covers some rows only.
    public var isPartial: Bool { condition != nil || partialPredicate != nil }

    /// A property that an index covers.
    public struct Element: Sendable, Hashable, Codable {
      /// The name of the property.
      public var property: String
      /// Whether smaller values come first.
      public var isAscending: Bool

      /// A property, smaller values first.
      public init(_ property: String, isAscending: Bool = true) {
        self.property = property
        self.isAscending = isAscending
      }
    }
  }
}

extension Schema.Entity {
  /// The superentity; `nil` if there is none.
  public var superentity: Schema.Entity? { superentityName.flatMap { family.entity(named: $0) } }

  /// The direct subentities.
  public var subentities: Set<Schema.Entity> {
    Set(family.entities.filter { $0.superentityName == name }.map(family.connected))
  }

  /// All properties: inherited ones, then its own.
  public var properties: [any SchemaProperty] { inheritedProperties + storedProperties }

  /// The properties that the entity itself declares: attributes, each composite as one property, then relationships.
  public var storedProperties: [any SchemaProperty] {
    let plain: [any SchemaProperty] = attributes.filter { !$0.isPartOfComposite }
    return plain + compositeAttributes + relationships
  }

  /// `storedProperties` by their names.
  public var storedPropertiesByName: [String: any SchemaProperty] {
    storedProperties.keyed(by: \.name)
  }

  /// The properties of the superentities, those of the root first.
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
    inheritedProperties.keyed(by: \.name)
  }

  /// The composites: properties with several columns, in the order of their first column.
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
}
