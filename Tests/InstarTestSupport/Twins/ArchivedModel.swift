/// A model as Core Data archives it in `Z_MODELCACHE` (Core Data layout, section 2.5).
public struct ArchivedModel: Sendable {
  /// What frameworks of different years, and models made in different ways, write differently.
  public struct Form: Sendable {
    /// Dictionaries are `NSKnownKeysDictionary1`, not `NSDictionary`.
    var hasKnownKeys = true
    /// What is optional or ordered is a bit of `_P`, not a boolean of its own.
    var hasBits = true
    /// What an entity inherits stands in it as a proxy, not as a copy.
    var hasProxies = true
  }

  public struct Entity: Sendable {
    var name: String
    var superentity: String?
    var isAbstract = false
    var properties: [Property]
    var unique: [[String]] = []
    var indexes: [(name: String, properties: [String])] = []
  }

  public struct Property: Sendable {
    var name: String
    var className = "NSAttributeDescription"
    var isOptional = true
    var isOrdered = false
    var fields: [String: ModelArchive.Value]
  }

  /// `NSAttributeType` (section 3.1).
  enum Kind: Int, Sendable {
    case int16 = 100
    case int32 = 200
    case int64 = 300
    case decimal = 400
    case double = 500
    case float = 600
    case string = 700
    case boolean = 800
    case date = 900
    case binary = 1000
    case uuid = 1100
    case uri = 1200
    case transformable = 1800

    var valueClass: String {
      switch self {
      case .int16, .int32, .int64, .double, .float, .boolean: "NSNumber"
      case .decimal: "NSDecimalNumber"
      case .string: "NSString"
      case .date: "NSDate"
      case .binary, .transformable: "NSData"
      case .uuid: "NSUUID"
      case .uri: "NSURL"
      }
    }
  }

  var entities: [Entity]
  var identifiers = [""]
  /// By name, entities.
  var configurations: [String: [String]] = [:]
  var form = Form()

  /// The archive, packed as a store has it.
  public var packed: [UInt8] {
    HostileStores.stored(
      ModelArchive.bytes(
        .object(
          "NSManagedObjectModel",
          [
            "NSEntities": dictionary(entities.map { ($0.name, value(of: $0)) }),
            "NSVersionIdentifiers": .object(
              "NSSet", ["NS.objects": .list(identifiers.map { .text($0) })]),
            "NSConfigurations": .entries(
              configurations.sorted { $0.key < $1.key }.map { name, entities in
                (name, .array(entities.map { .link("entity \($0)") }))
              }),
          ])))
  }

  private func dictionary(_ entries: [(String, ModelArchive.Value)]) -> ModelArchive.Value {
    form.hasKnownKeys ? .knownKeys(entries, unused: ["notUsed"]) : .entries(entries)
  }

  private func value(of entity: Entity) -> ModelArchive.Value {
    var fields: [String: ModelArchive.Value] = [
      "NSEntityName": .text(entity.name), "NSRenamingIdentifier": .text(entity.name),
      "NSClassNameForEntity": .text(entity.name),
      "NSUserInfo": .entries([]),
      "NSProperties": dictionary(allProperties(of: entity)),
      "NSSubentities": .entries(
        entities.filter { $0.superentity == entity.name }.map {
          ($0.name, .link("entity \($0.name)"))
        }),
      "NSUniqueTuples": .array(entity.unique.map { .array($0.map { .text($0) }) }),
      "NSFetchIndexDescriptions": .array(entity.indexes.map { value(of: $0, entity) }),
    ]
    if let superentity = entity.superentity {
      fields["NSSuperentity"] = .link("entity \(superentity)")
    }
    if entity.isAbstract { fields["NSIsAbstract"] = .boolean(true) }
    return .named("entity \(entity.name)", .object("NSEntityDescription", fields))
  }

  private func value(
    of index: (name: String, properties: [String]), _ entity: Entity
  ) -> ModelArchive.Value {
    .object(
      "NSFetchIndexDescription",
      [
        "NSIndexName": .text(index.name), "NSEntity": .link("entity \(entity.name)"),
        "NSIndexElements": .array(
          index.properties.map { property in
            .object(
              "NSFetchIndexElementDescription",
              [
                "NSPropertyName": .text(property), "NSAscending": .boolean(true),
                "NSFetchIndexElementType": .integer(0),
              ])
          }),
      ])
  }

  /// Those that the entity inherits, too.
  private func allProperties(of entity: Entity) -> [(String, ModelArchive.Value)] {
    let own = entity.properties.map { property in
      (
        property.name,
        ModelArchive.Value.named("\(entity.name).\(property.name)", value(of: property, entity))
      )
    }
    var inherited: [(String, ModelArchive.Value)] = []
    var above = entity.superentity
    while let entity = entities.first(where: { $0.name == above }) {
      inherited += entity.properties.map { property in
        (
          property.name,
          form.hasProxies
            ? .object(
              "_NSPropertyDescriptionProxy",
              ["NSUnderlyingProperty": .link("\(entity.name).\(property.name)")])
            : value(of: property, entity)
        )
      }
      above = entity.superentity
    }
    return inherited + own
  }

  private func value(of property: Property, _ entity: Entity) -> ModelArchive.Value {
    var fields = property.fields
    fields["NSPropertyName"] = .text(property.name)
    fields["NSRenamingIdentifier"] = .text(property.name)
    fields["NSEntity"] = .link("entity \(entity.name)")
    if form.hasBits {
      fields["_P"] = .integer(
        0xF1 | (property.isOptional ? 0x2 : 0) | (property.isOrdered ? 0x400 : 0))
    } else {
      fields["NSIsOptional"] = .boolean(property.isOptional)
      if property.isOrdered { fields["NSIsOrdered"] = .boolean(true) }
    }
    return .object(property.className, fields)
  }
}

extension ArchivedModel.Property {
  static func attribute(
    _ name: String, _ kind: ArchivedModel.Kind, isOptional: Bool = true,
    _ fields: [String: ModelArchive.Value] = [:]
  ) -> Self {
    Self(
      name: name, isOptional: isOptional,
      fields: [
        "NSAttributeType": .integer(kind.rawValue),
        "NSAttributeValueClassName": .text(kind.valueClass), "NSFlagsKey": .integer(0),
      ].merging(fields) { $1 })
  }

  /// A required one.
  static func required(
    _ name: String, _ kind: ArchivedModel.Kind, _ fields: [String: ModelArchive.Value] = [:]
  ) -> Self {
    attribute(name, kind, isOptional: false, fields)
  }

  /// A Codable struct of SwiftData: a column for each of its fields, all of them optional.
  static func composite(
    _ name: String, _ elements: [(String, ArchivedModel.Kind)], isOptional: Bool = false,
    userInfo: [(String, ModelArchive.Value)] = []
  ) -> Self {
    Self(
      name: name, className: "NSCompositeAttributeDescription", isOptional: isOptional,
      fields: [
        "NSAttributeType": .integer(2100), "NSUserInfo": .entries(userInfo),
        "NSCompositeElements": .array(
          elements.map { element, kind in
            .object(
              "NSAttributeDescription",
              [
                "NSPropertyName": .text(element), "NSRenamingIdentifier": .text(element),
                "NSAttributeType": .integer(kind.rawValue), "_P": .integer(0xF3),
                "NSIsOptional": .boolean(true),
              ])
          }),
      ])
  }

  /// An enum with raw values.
  static func enumeration(
    _ name: String, of kind: ArchivedModel.Kind = .string, isOptional: Bool = false
  ) -> Self {
    composite(
      name, [(name, kind)], isOptional: isOptional, userInfo: [("EnumType", .boolean(true))])
  }

  /// An enum without raw values.
  static func cases(_ name: String, _ cases: [String], isOptional: Bool = false) -> Self {
    composite(
      name, cases.map { ($0, .string) }, isOptional: isOptional,
      userInfo: [
        ("EnumType", .boolean(true)), ("enum", .array(cases.map { .text($0) })),
      ])
  }

  static func toOne(
    _ name: String, _ destination: String, inverse: String? = nil, isOptional: Bool = true,
    deleteRule: Int = 1
  ) -> Self {
    relationship(name, destination, inverse, isOptional, [1, 0, deleteRule])
  }

  static func toMany(
    _ name: String, _ destination: String, inverse: String? = nil, isOrdered: Bool = false,
    deleteRule: Int = 1
  ) -> Self {
    var property = relationship(name, destination, inverse, true, [0, 0, deleteRule])
    property.isOrdered = isOrdered
    return property
  }

  private static func relationship(
    _ name: String, _ destination: String, _ inverse: String?, _ isOptional: Bool,
    _ numbers: [Int]
  ) -> Self {
    var fields: [String: ModelArchive.Value] = [
      "_NSDestinationEntityName": .text(destination),
      "NSDestinationEntity": .link("entity \(destination)"),
      "NSMaxCount": .integer(numbers[0]), "NSMinCount": .integer(numbers[1]),
      "NSDeleteRule": .integer(numbers[2]),
    ]
    if let inverse { fields["_NSInverseRelationshipName"] = .text(inverse) }
    return Self(
      name: name, className: "NSRelationshipDescription", isOptional: isOptional, fields: fields)
  }

  /// Fetched each time, and so no column.
  static func fetched(_ name: String) -> Self {
    Self(name: name, className: "NSFetchedPropertyDescription", fields: [:])
  }
}
