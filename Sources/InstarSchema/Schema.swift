/// The complete set of entities of one version of an app's models.
///
/// A value: it holds no types and no connection, so it travels as JSON between processes. Made from model
/// types by `Schema(_:version:)` and `Schema(versionedSchema:)` of the SDK.
public struct Schema: Sendable, Hashable, Codable {
  /// The version this schema is a snapshot of.
  public var version: Version

  /// All entities, ordered by name.
  public var entities: [Entity] {
    get { connectedEntities }
    set { connectedEntities = Self.connected(newValue) }
  }

  private var connectedEntities: [Entity]

  /// The Swift types the entities were made from, by entity name; empty in a schema that came from another process.
  public var modelTypes: ModelTypes

  /// A schema of entities in any order; they are kept ordered by name.
  public init(entities: [Entity], version: Version, modelTypes: ModelTypes = ModelTypes([:])) {
    connectedEntities = Self.connected(entities.sorted { $0.name < $1.name })
    self.version = version
    self.modelTypes = modelTypes
  }

  private enum CodingKeys: String, CodingKey {
    case version, entities
  }

  /// Reads a schema of another process. Its `modelTypes` are empty.
  ///
  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      entities: try container.decode([Entity].self, forKey: .entities),
      version: try container.decode(Version.self, forKey: .version))
  }

  /// Writes everything but `modelTypes`.
  ///
  /// - Throws: `EncodingError`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(version, forKey: .version)
    try container.encode(entities, forKey: .entities)
  }

  /// The entities by their names.
  public var entitiesByName: [String: Entity] {
    Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The entity of that name, or `nil`.
  public func entity(named name: String) -> Entity? {
    entities.first { $0.name == name }
  }

  /// The same version with some of its entities. The types of all stay known.
  package func part(_ isIncluded: (String) -> Bool) -> Schema {
    Schema(
      entities: entities.filter { isIncluded($0.name) }, version: version, modelTypes: modelTypes)
  }

  /// The entities, those of a schema in which some inherit leading to each other.
  private static func connected(_ entities: [Entity]) -> [Entity] {
    guard entities.contains(where: { $0.superentityName != nil }) else { return entities }
    return entities.map(EntityFamily(entities).connected)
  }
}

extension Schema {
  /// The Swift types behind a schema. Counts for nothing when schemas are compared, and does not travel: a schema is
  /// the same schema in a process that does not have the types.
  public struct ModelTypes: @unchecked Sendable, Hashable {
    // Metatypes are immutable; they are only not marked Sendable.
    /// The model class of each entity, by the entity's name.
    public let byEntityName: [String: any Any.Type]
    /// The entities that nobody named: relationships of those that were named lead to them.
    public let reached: Set<String>
    /// All classes, those included that share the name of another one; empty where a schema has no such classes.
    public let all: [any Any.Type]

    /// The types of a schema, by the names of their entities.
    public init(
      _ byEntityName: [String: any Any.Type], reached: Set<String> = [], all: [any Any.Type] = []
    ) {
      self.byEntityName = byEntityName
      self.reached = reached
      self.all = all
    }

    /// Always true.
    public static func == (left: ModelTypes, right: ModelTypes) -> Bool { true }
    /// Adds nothing, as all are equal.
    public func hash(into hasher: inout Hasher) {}
  }
}

/// What attributes and relationships have in common.
public protocol SchemaProperty: Sendable, Hashable {
  /// The name of the Swift property.
  var name: String { get }
  /// The name the property had in the version before, equal to `name` where it was not renamed.
  var originalName: String { get }
  /// Whether a model may have no value for it.
  var isOptional: Bool { get }
}

extension Schema {
  /// One model of a schema: its attributes, relationships and constraints.
  public struct Entity: Sendable, Hashable, Codable {
    /// The name of the model class, without what it is nested in.
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

    /// Indexes that have a name of their own, besides those of `indices`.
    public var fetchIndexes: [FetchIndex] = []

    /// The name of the entity this one inherits from; `nil` where there is none.
    public var superentityName: String?

    /// The name in the version before, equal to `name` where the entity was not renamed.
    public var originalName: String

    /// Whether only entities below this one have models of their own.
    public var isAbstract = false

    /// Tells two versions of an entity apart that differ in nothing else.
    public var hashModifier: String?

    /// The other entities of the schema, where some of them inherit; set by the schema.
    var family = EntityFamily([])

    private enum CodingKeys: String, CodingKey {
      case name, originalName, attributes, relationships, uniquenessConstraints, indices
      case fetchIndexes, superentityName, isAbstract, hashModifier, table
    }

    /// The table in a plain store; `nil` in a schema of the Core Data format.
    public var table: Table?

    /// An entity as it is declared. Names in the constraints and indices are those of its properties.
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
      Dictionary(attributes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// The relationships by their names.
    public var relationshipsByName: [String: Relationship] {
      Dictionary(relationships.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }
  }

  /// An index with a name of its own, as the model of an app's store declares it.
  public struct FetchIndex: Sendable, Hashable, Codable {
    /// The index's name in the model.
    public var name: String
    /// What it covers, in this order.
    public var elements: [Element]
    /// The condition of the rows that it covers, as SQL over the columns of the table; `nil` where it covers all, or
    /// only `partialPredicate` tells.
    public var condition: String?
    /// The same condition as a model of Core Data has it, as an `NSPredicate` is written. How Apple's frameworks say it
    /// in SQL, only a store that they made tells.
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

    /// Whether it covers some rows only.
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

  /// A property that holds a value.
  ///
  /// A property that is kept in several columns, a Codable struct or an enum without raw value, is one attribute for
  /// each of them, named by property and field: "author.name".
  public struct Attribute: SchemaProperty, Codable {
    /// The name of the Swift property.
    public var name: String
    /// The name in the version before, equal to `name` where the attribute was not renamed.
    public var originalName: String
    /// What it holds.
    public var type: AttributeType
    /// Whether a model may have no value for it.
    public var isOptional: Bool
    /// What `@Attribute` was given.
    public var options: [Option]

    /// The value that existing rows get when the attribute is new and required, as it is stored. `nil` where none is
    /// declared.
    public var storedDefault: AttributeValue?

    /// Tells two versions of an attribute apart that differ in nothing else.
    public var hashModifier: String?

    /// The type of the Swift property; none in a schema that came from another process.
    package var swiftType = SwiftType(nil)
    /// The type of the whole property, where this is one of its columns.
    package var compositeType = SwiftType(nil)

    private enum CodingKeys: String, CodingKey {
      case name, originalName, type, isOptional, options, hashModifier, column
      case storedDefault = "defaultValue"
    }

    /// The column in a plain store, where it is not the default one.
    public var column: Column?

    /// An attribute; without an original name, one that was not renamed.
    public init(
      name: String, originalName: String? = nil, type: AttributeType, isOptional: Bool = false,
      options: [Option] = [], defaultValue: AttributeValue? = nil, hashModifier: String? = nil
    ) {
      self.name = name
      self.originalName = originalName ?? name
      self.type = type
      self.isOptional = isOptional
      self.options = options
      storedDefault = defaultValue
      self.hashModifier = hashModifier
    }

    /// Whether two models cannot have the same value.
    public var isUnique: Bool { options.contains(.unique) }

    /// Whether the value is kept in memory only.
    public var isEphemeral: Bool { options.contains(.ephemeral) }

    /// Whether a value transformer of the app makes the value that is stored.
    public var isTransformable: Bool { options.contains { $0.name == "transformable" } }

    /// What a derived value is computed from; `nil` for a value that is not derived.
    public var derivation: String? { options.first { $0.name == "derived" }?.argument }
  }

  /// What an attribute holds, and so how it is stored (Core Data layout, section 3.1).
  @frozen
  public enum AttributeType: String, Sendable, Hashable, Codable, CaseIterable {
    case bool, int16, int32, int64, decimal, double, float, string, date, data, uuid, url
    /// A value of a Codable type, as UTF-8 JSON.
    case codable
  }

  /// A property that refers to other models.
  public struct Relationship: SchemaProperty, Codable {
    /// The name of the Swift property.
    public var name: String
    /// The name in the version before, equal to `name` where the relationship was not renamed.
    public var originalName: String
    /// The name of the entity at the other end.
    public var destination: String
    /// The relationship of `destination` that is kept in step with this one; `nil` where there is none.
    public var inverseName: String?
    /// What happens at the other end when a model is deleted.
    public var deleteRule: DeleteRule
    /// 0 where a model may refer to none.
    public var minimumModelCount: Int
    /// 1 for a to-one relationship; 0 for a to-many relationship without a limit.
    public var maximumModelCount: Int
    /// Whether a model may refer to none.
    public var isOptional: Bool
    /// Whether a model refers to one model at most.
    public var isToOneRelationship: Bool
    /// What `@Relationship` was given.
    public var options: [Option]
    /// Tells two versions of a relationship apart that differ in nothing else.
    public var hashModifier: String?

    /// The type of the Swift property; none in a schema that came from another process.
    package var swiftType = SwiftType(nil)

    private enum CodingKeys: String, CodingKey {
      case name, originalName, destination, inverseName, deleteRule, minimumModelCount
      case maximumModelCount, isOptional, isToOneRelationship, options, hashModifier, column
    }

    /// The columns in a plain store, where they are not the default ones.
    public var column: Column?

    /// A relationship; without an original name, one that was not renamed.
    public init(
      name: String, originalName: String? = nil, destination: String, inverseName: String? = nil,
      deleteRule: DeleteRule = .nullify, minimumModelCount: Int = 0, maximumModelCount: Int = 0,
      isOptional: Bool = true, isToOneRelationship: Bool, options: [Option] = [],
      hashModifier: String? = nil
    ) {
      self.name = name
      self.originalName = originalName ?? name
      self.destination = destination
      self.inverseName = inverseName
      self.deleteRule = deleteRule
      self.minimumModelCount = minimumModelCount
      self.maximumModelCount = maximumModelCount
      self.isOptional = isOptional
      self.isToOneRelationship = isToOneRelationship
      self.options = options
      self.hashModifier = hashModifier
    }

    /// What happens to the models at the other end when a model is deleted.
    @frozen
    public enum DeleteRule: String, Sendable, Hashable, Codable {
      /// Nothing; references may be left that point nowhere.
      case noAction
      /// They lose their reference to the deleted model.
      case nullify
      /// They are deleted too.
      case cascade
      /// The deletion is refused while there are any.
      case deny
    }

    /// An option of `@Relationship`.
    public struct Option: Sendable, Hashable, Codable {
      let name: String
      /// A model at the other end is referred to once.
      public static let unique = Option(name: "unique")
      /// The models at the other end of a to-many relationship have an order, which is kept.
      public static let ordered = Option(name: "ordered")
      /// No relationship of the destination is kept in step with this one, although there is one that could be.
      public static let withoutInverse = Option(name: "withoutInverse")
      /// The relationship is its own inverse, as that between friends: one of two models refers to the other exactly if
      /// the other refers to it. Its destination is the model itself.
      public static let ownInverse = Option(name: "ownInverse")
    }

    /// Whether the models at the other end have an order.
    public var isOrdered: Bool { !isToOneRelationship && options.contains(.ordered) }

    /// Whether the relationship, of the entity of that name, is its own inverse.
    public func isOwnInverse(in entity: String) -> Bool {
      destination == entity && inverseName == name
    }
  }
}

extension Schema.Attribute {
  /// An option of `@Attribute`.
  public struct Option: Sendable, Hashable, Codable {
    /// The option's name in Swift.
    public let name: String
    /// What `.transformable(by:)` names.
    public let argument: String?

    init(_ name: String, _ argument: String? = nil) {
      self.name = name
      self.argument = argument
    }

    /// Two models cannot have the same value. Inserting a value that exists updates that row (upsert).
    public static let unique = Option("unique")
    /// Large values are kept in files beside the store (`.NAME_SUPPORT/_EXTERNAL_DATA`), as Apple's frameworks keep
    /// them, and read when they are asked for. Counts for `Data` and values stored as JSON in stores of the Core Data
    /// format; elsewhere values stay in their row.
    public static let externalStorage = Option("externalStorage")
    /// Accepted: keeps the value in the app's history when the model is deleted. Instar writes no history.
    public static let preserveValueOnDeletion = Option("preserveValueOnDeletion")
    /// Accepted; there is no Spotlight on Linux.
    public static let spotlight = Option("spotlight")
    /// Kept in memory only: no column, and a model that is read from the store has its initial value.
    public static let ephemeral = Option("ephemeral")
    /// Accepted; there is no CloudKit on Linux.
    public static let allowsCloudEncryption = Option("allowsCloudEncryption")
    /// The value is kept whole, as JSON in one column, also where its type would have a column for each field.
    public static let codable = Option("codable")
    /// The value transformer registered by that name makes the stored bytes of the value, and the value of the bytes.
    public static func transformable(by transformerName: String) -> Option {
      Option("transformable", transformerName)
    }
    /// The value is computed by Apple's frameworks, as an `NSExpression` says: `count:(pages)`. Instar keeps the column
    /// and what computes it.
    public static func derived(_ expression: String) -> Option { Option("derived", expression) }
  }
}

/// The default of an attribute, as it is stored.
@frozen
public enum AttributeValue: Sendable, Hashable, Codable {
  /// Also of booleans.
  case integer(Int64)
  /// Also of dates: seconds since 2001-01-01 UTC.
  case real(Double)
  /// UTF-8.
  case text(String)
  /// Bytes; a UUID is 16 of them.
  case blob([UInt8])
}
