import Instar
import InstarTestSupport
import Testing

@Suite("API page: Schemas and plans")
struct SchemasAndPlansConformanceTests {
  private let schema = Schema(versionedSchema: TripsSchemaV1.self)

  private func entity(_ name: String = "Trip") throws -> Schema.Entity {
    try #require(schema.entitiesByName[name])
  }

  private func isSame(_ one: any Any.Type, _ two: any Any.Type) -> Bool { one == two }

  private func attribute(_ name: String) throws -> Schema.Attribute {
    try #require(try entity().attributesByName[name])
  }

  @Test("a versioned schema is an enum or a struct, with stored or computed members")
  func versionedSchemas() {
    let schemas: [any VersionedSchema.Type] = [TripsSchemaV1.self, TripsSchemaV2.self]
    let versions = schemas.map { $0.versionIdentifier }
    #expect(versions == [Schema.Version(1, 0, 0), Schema.Version(2, 0, 0)])
    let counts = schemas.map { $0.models.count }
    #expect(counts == [3, 1])
  }

  private enum WithoutStays: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
      [TripsSchemaV1.Trip.self, TripsSchemaV1.Tag.self]
    }
  }

  @Test("a model that is left out is added, because a relationship needs it")
  func missingModel() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: WithoutStays.self),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    #expect(container.schema.entity(named: "Stay") != nil)
  }

  @Test("a plan is an enum, a struct or a class")
  func plans() {
    let plans: [any SchemaMigrationPlan.Type] = [EnumPlan.self, StructPlan.self, ClassPlan.self]
    #expect(plans.allSatisfy { $0.schemas.count == 2 && $0.stages.count == 1 })
  }

  @Test("stages are lightweight or custom, with closures, nil or trailing closures")
  func stages() throws {
    guard case .custom(let from, let to, nil, nil) = EnumPlan.toV2 else {
      Issue.record("not custom without closures")
      return
    }
    #expect(from == TripsSchemaV1.self && to == TripsSchemaV2.self)
    guard case .lightweight = try #require(StructPlan.stages.first) else {
      Issue.record("not lightweight")
      return
    }
    guard case .custom(_, _, .some, .some) = try #require(ClassPlan.stages.first) else {
      Issue.record("not custom with both closures")
      return
    }
  }

  private func cases(_ stage: MigrationStage) -> String {
    switch stage {
    case .lightweight: "lightweight"
    case .custom(_, _, let willMigrate, let didMigrate):
      "custom \(willMigrate != nil) \(didMigrate != nil)"
    }
  }

  @Test("a switch over stages is exhaustive with SwiftData's two cases; others need a default")
  func switchOverStages() throws {
    #expect(cases(EnumPlan.toV2) == "custom false false")
    #expect(try cases(#require(StructPlan.stages.first)) == "lightweight")
    #expect(try cases(#require(ClassPlan.stages.first)) == "custom true true")
    let own: [MigrationStage] = [
      EnumPlan.toV2.labeled("x"),
      .sql(fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self),
      .bridge(fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self) { _, _ in },
      .transform(fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self) {},
    ]
    for stage in own {
      var isOther = false
      switch stage {
      case .lightweight, .custom: break
      default: isOther = true
      }
      let (from, to) = (stage.fromVersion, stage.toVersion)
      #expect(isOther && isSame(from, TripsSchemaV1.self) && isSame(to, TripsSchemaV2.self))
    }
    #expect(own.map(\.label) == ["x", nil, nil, nil])
  }

  @Test("typealiases can name the current version and its models")
  func aliases() {
    #expect(CurrentTrip.self == TripsSchemaV2.Trip.self)
    #expect(Schema(versionedSchema: CurrentTrips.self).entity(for: CurrentTrip.self) != nil)
  }

  @Test("Schema.Version is comparable, codable and hashable, and described as 1.0.0")
  func version() throws {
    let version = Schema.Version(1, 0, 0)
    #expect("\(version)" == "1.0.0" && version < Schema.Version(1, 2, 0))
    #expect(Schema.Version(1, 2, 9) < Schema.Version(1, 10, 0))
    #expect(
      try JSONDecoder().decode(Schema.Version.self, from: JSONEncoder().encode(version)) == version)
    #expect(Set([version, Schema.Version(1, 0, 0)]).count == 1)
  }

  @Test("a schema is created from a versioned schema, an array of models, or single models")
  func initializers() {
    let version = Schema.Version(3, 1, 4)
    let models: [any PersistentModel.Type] = [TripsSchemaV2.Trip.self]
    #expect(schema.version == Schema.Version(1, 0, 0))
    #expect(Schema(models, version: version).version == version)
    #expect(Schema([TripsSchemaV2.Trip.self]).entities.map(\.name) == ["Trip"])
    #expect(
      Schema(TripsSchemaV1.Trip.self, TripsSchemaV1.Stay.self, TripsSchemaV1.Tag.self)
        == Schema([TripsSchemaV1.Tag.self, TripsSchemaV1.Trip.self, TripsSchemaV1.Stay.self]))
    #expect(Schema(TripsSchemaV2.Trip.self, version: version).version == version)
  }

  @Test("two schemas of the same models are equal, also where a default is another one each time")
  func equality() {
    #expect(Schema(versionedSchema: TripsSchemaV1.self) == schema)
    #expect(Schema(EveryType.self) == Schema(EveryType.self))
    #expect(Schema(EveryType.self) != Schema(TripsSchemaV2.Trip.self))
  }

  @Test("a schema has entities, entitiesByName and entity(for:)")
  func entities() {
    #expect(schema.entities.map(\.name) == ["Stay", "Tag", "Trip"])
    #expect(schema.entitiesByName["Stay"]?.name == "Stay" && schema.entitiesByName["x"] == nil)
    #expect(schema.entity(for: TripsSchemaV1.Trip.self)?.name == "Trip")
    #expect(schema.entity(for: TripsSchemaV2.Trip.self) == nil)
  }

  @Test("save(to:) and load(from:) give an equal schema")
  func saveAndLoad() throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path("schema.json"))
    try schema.save(to: url)
    let loaded = try Schema.load(from: url)
    #expect(loaded == schema)
    let uid = try #require(loaded.entitiesByName["Trip"]?.attributesByName["uid"])
    #expect(isSame(uid.valueType, UUID.self))
    try Data("{}".utf8).write(to: url)
    #expect(throws: DecodingError.self) { try Schema.load(from: url) }
  }

  @Test("an entity has its attributes and relationships, by name and all together")
  func entityProperties() throws {
    let entity = try entity()
    #expect(entity.name == "Trip")
    #expect(Set(entity.relationships.map(\.name)) == ["stays", "tags"])
    #expect(entity.relationshipsByName["tags"]?.destination == "Tag")
    #expect(entity.attributesByName["name"]?.name == "name")
    let names: Set<String> = [
      "uid", "number", "name", "start", "kind", "isDone", "note", "photo", "progress", "place",
      "stays", "tags",
    ]
    #expect(Set(entity.properties.map(\.name)) == names)
    #expect(Set(entity.storedProperties.map(\.name)) == names)
    #expect(Set(entity.storedPropertiesByName.keys) == names)
    #expect(entity.inheritedProperties.isEmpty && entity.inheritedPropertiesByName.isEmpty)
    #expect(
      entity.superentity == nil && entity.superentityName == nil && entity.subentities.isEmpty)
  }

  @Test("an entity has its uniqueness constraints and indices")
  func constraints() throws {
    let entity = try entity()
    #expect(Set(entity.uniquenessConstraints) == [["uid"], ["number"], ["name", "start"]])
    #expect(entity.indices == [["name"], ["start", "name"]])
  }

  @Test("entities that inherit have superentity, subentities and inherited properties")
  func inheritance() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(name: "Place", attributes: [Schema.Attribute(name: "name", type: .string)]),
        Schema.Entity(
          name: "Country", attributes: [Schema.Attribute(name: "capital", type: .string)],
          superentityName: "Place"),
        Schema.Entity(name: "Kingdom", superentityName: "Country"),
      ], version: Schema.Version(1, 0, 0))
    let kingdom = try #require(schema.entitiesByName["Kingdom"])
    #expect(kingdom.superentity?.name == "Country")
    #expect(kingdom.superentity?.superentity?.name == "Place")
    #expect(kingdom.inheritedProperties.map(\.name) == ["name", "capital"])
    #expect(Set(kingdom.inheritedPropertiesByName.keys) == ["name", "capital"])
    #expect(kingdom.storedProperties.isEmpty && kingdom.properties.count == 2)
    let place = try #require(schema.entitiesByName["Place"])
    #expect(place.superentity == nil && place.subentities.map(\.name) == ["Country"])
    #expect(place.subentities.first?.subentities.first?.name == "Kingdom")
    let decoded = try JSONDecoder().decode(Schema.self, from: JSONEncoder().encode(schema))
    #expect(decoded == schema && decoded.entitiesByName["Kingdom"]?.superentity?.name == "Country")
  }

  @Test("an attribute has its name, original name, options and hash modifier")
  func attributeNames() throws {
    let note = try attribute("note")
    #expect(note.name == "note" && note.originalName == "memo" && note.hashModifier == "2")
    #expect(note.isOptional && note.options.isEmpty)
    #expect(try attribute("name").originalName == "name")
    #expect(try attribute("uid").options == [.unique] && attribute("uid").isUnique)
    #expect(try attribute("photo").options == [.externalStorage, .preserveValueOnDeletion])
    #expect(try attribute("progress").options == [.ephemeral])
  }

  @Test("an attribute's value type and default value are those of the property")
  func attributeValues() throws {
    #expect(try isSame(attribute("uid").valueType, UUID.self))
    #expect(try isSame(attribute("note").valueType, String?.self))
    #expect(try isSame(attribute("kind").valueType, TripsSchemaV1.Kind.self))
    #expect(try attribute("number").defaultValue as? Int == 7)
    #expect(try attribute("name").defaultValue as? String == "untitled")
    #expect(try attribute("isDone").defaultValue as? Bool == true)
    #expect(try attribute("kind").defaultValue as? TripsSchemaV1.Kind == .leisure)
    #expect(try attribute("start").defaultValue == nil)
    #expect(try !attribute("name").isTransformable)
  }

  @Test("an attribute is created from a Swift type, as a model's property is")
  func createdAttributes() throws {
    let kind = Schema.Attribute(
      name: "kind", valueType: TripsSchemaV1.Kind.self,
      defaultValue: TripsSchemaV1.Kind.leisure)
    #expect(try kind == attribute("kind") && isSame(kind.valueType, TripsSchemaV1.Kind.self))
    #expect(kind.defaultValue as? TripsSchemaV1.Kind == .leisure)
    let note = Schema.Attribute(
      name: "note", originalName: "memo", valueType: String?.self, hashModifier: "2")
    #expect(try note == attribute("note"))
    let place = TripsSchemaV1.Place(city: "Ghent", latitude: 51)
    let composite = Schema.Attribute(
      name: "place", options: [.spotlight], valueType: TripsSchemaV1.Place.self,
      defaultValue: place)
    #expect(composite.type == .codable && composite.options == [.spotlight])
    #expect(composite.defaultValue as? TripsSchemaV1.Place == place)
    let bare = Schema.Attribute(.unique, .externalStorage, originalName: "id", hashModifier: "x")
    #expect(bare.name.isEmpty && bare.originalName == "id" && bare.hashModifier == "x")
    #expect(bare.isUnique && bare.options == [.unique, .externalStorage])
    #expect(isSame(bare.valueType, Any.self) && bare.defaultValue == nil)
  }

  @Test("a composite attribute has its properties")
  func compositeAttribute() throws {
    let place = try #require(
      try entity().storedPropertiesByName["place"] as? Schema.CompositeAttribute)
    #expect(place.name == "place" && place.isOptional)
    #expect(isSame(place.valueType, TripsSchemaV1.Place?.self))
    #expect(place.properties.map(\.name) == ["city", "latitude"])
    let latitude = try #require(place.properties.last as? Schema.Attribute)
    #expect(isSame(latitude.valueType, Double?.self))
  }

  @Test("each attribute option has a value of its own")
  func attributeOptions() {
    let options: [Schema.Attribute.Option] = [
      .unique, .externalStorage, .preserveValueOnDeletion, .spotlight, .ephemeral,
      .allowsCloudEncryption, .codable, .transformable(by: "Reversing"),
      .transformable(by: ValueTransformer.self),
    ]
    #expect(Set(options).count == options.count)
  }

  @Test("a relationship has its destination, inverse, delete rule, counts, names and key paths")
  func relationship() throws {
    let stays = try #require(try entity().relationshipsByName["stays"])
    #expect(stays.name == "stays" && stays.destination == "Stay" && stays.inverseName == "trip")
    #expect(stays.deleteRule == .cascade && !stays.isToOneRelationship)
    #expect(stays.minimumModelCount == 1 && stays.maximumModelCount == 3)
    #expect(stays.originalName == "stays" && isSame(stays.valueType, [TripsSchemaV1.Stay].self))
    let tags = try #require(try entity().relationshipsByName["tags"])
    #expect(tags.originalName == "labels" && tags.hashModifier == "x")
    #expect(tags.deleteRule == .nullify && tags.inverseName == "trips")
    let trip = try #require(try entity("Stay").relationshipsByName["trip"])
    #expect(trip.isToOneRelationship && trip.maximumModelCount == 1 && trip.isOptional)
    #expect(stays.keypath == \TripsSchemaV1.Trip.stays)
    #expect(stays.inverseKeyPath == \TripsSchemaV1.Stay.trip)
    // Inferred from the other side.
    #expect(trip.keypath == \TripsSchemaV1.Stay.trip)
    #expect(trip.inverseKeyPath == \TripsSchemaV1.Trip.stays)
    let rules: [Schema.Relationship.DeleteRule] = [.nullify, .cascade, .deny, .noAction]
    #expect(Set(rules).count == 4)
  }

  @Test("key paths of relationships count for nothing in comparisons, and do not travel")
  func keyPathsOfRelationships() throws {
    let decoded = try JSONDecoder().decode(Schema.self, from: JSONEncoder().encode(schema))
    #expect(decoded == schema && decoded.hashValue == schema.hashValue)
    let stays = try #require(decoded.entitiesByName["Trip"]?.relationshipsByName["stays"])
    #expect(stays.keypath == nil && stays.inverseKeyPath == nil && stays.inverseName == "trip")
    #expect(try stays == #require(try entity().relationshipsByName["stays"]))
  }

  @Test("a relationship is created from the arguments of @Relationship")
  func createdRelationship() {
    let stays = Schema.Relationship(
      .unique, deleteRule: .cascade, minimumModelCount: 1, maximumModelCount: nil,
      originalName: "nights", inverse: \TripsSchemaV1.Stay.trip, hashModifier: "x")
    #expect(stays.name.isEmpty && stays.originalName == "nights" && stays.hashModifier == "x")
    #expect(stays.isUnique && stays.deleteRule == .cascade && !stays.isToOneRelationship)
    #expect(stays.minimumModelCount == 1 && stays.maximumModelCount == 0)
    #expect(stays.destination == "Stay" && stays.inverseName == "trip" && !stays.isOptional)
    #expect(stays.inverseKeyPath == \TripsSchemaV1.Stay.trip && stays.keypath == nil)
    #expect(Schema.Relationship(maximumModelCount: 1).isToOneRelationship)
    #expect(Schema.Relationship().inverseName == nil && Schema.Relationship().destination.isEmpty)
  }

  @Test("each kind of property says what it is, also as any SchemaProperty")
  func kindsOfProperties() throws {
    func property(_ name: String) throws -> any SchemaProperty {
      try #require(try entity().storedPropertiesByName[name])
    }
    for (name, isAttribute) in [("uid", true), ("place", true), ("stays", false)] {
      let property = try property(name)
      #expect(property.isAttribute == isAttribute && property.isRelationship != isAttribute)
      #expect(!property.isTransient && property.isUnique == (name == "uid"))
    }
    #expect(try property("progress").isTransient)
    #expect(try isSame(property("uid").valueType, UUID.self))
    #expect(try isSame(property("place").valueType, TripsSchemaV1.Place?.self))
    #expect(try isSame(property("stays").valueType, [TripsSchemaV1.Stay].self))
  }
}
