import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("A property on its way through the versions of a plan")
struct PropertyPathTests {
  private func attribute(
    _ name: String, _ type: Schema.AttributeType = .string, from original: String? = nil
  ) -> Schema.Attribute {
    Schema.Attribute(name: name, originalName: original, type: type, isOptional: true)
  }

  private func entity(
    _ name: String, below: String? = nil, _ attributes: [Schema.Attribute] = []
  ) -> Schema.Entity {
    var entity = Schema.Entity(name: name, superentityName: below)
    entity.attributes = attributes
    return entity
  }

  /// A path from version 1 through all of these, by custom stages.
  private func path(
    _ versions: [[Schema.Entity]], accepting losses: [String] = []
  ) throws -> MigrationPath {
    let manifests = try versions.enumerated().map { index, entities in
      let schema = Schema(entities: entities, version: Schema.Version(index + 1, 0, 0))
      let structure = try schema.layout().structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    let stages = zip(manifests, manifests.dropFirst()).map {
      StageManifest(from: $0.schema.version, to: $1.schema.version, kind: .custom)
    }
    var plan = PlanManifest(name: "Plan", versions: manifests, stages: stages)
    plan.acceptedLosses = losses
    return try MigrationPath(from: Schema.Version(1, 0, 0), in: plan)
  }

  @Test(
    "the loss of a property is accepted under its name in the store's version or before the change, and under no later name",
    arguments: [("Note.a", true), ("Note.b", true), ("Note.c", false), ("Note.d", false)])
  func acceptedNames(name: String, isAccepted: Bool) throws {
    let path = try path(
      [
        [entity("Note", [attribute("a")])],
        [entity("Note", [attribute("b", from: "a")])],
        [entity("Note", [attribute("c", .int64, from: "b")])],
        [entity("Note", [attribute("d", .int64, from: "c")])],
      ], accepting: [name])
    let lost = LostValues(
      version: Schema.Version(2, 0, 0), entity: "Note", property: "b", count: 3)
    let values = try #require(path.losses([lost]).first)
    #expect(values.sentence == "drops 3 non-null values of Note.a")
    #expect(path.accepts(values) == isAccepted)
  }

  @Test("a property does not count as lost if a later stage removes it")
  func removedLater() throws {
    let path = try path([
      [entity("Note", [attribute("a"), attribute("b")])],
      [entity("Note", [attribute("a", .int64), attribute("b")])],
      [entity("Note", [attribute("b")])],
    ])
    #expect(path.propertyPaths.allSatisfy { !$0.mayLose })
    #expect(path.endingAttributes.map(\.attribute) == ["a"])
  }

  @Test("a property is not mistaken for one of the same name in another entity")
  func sameName() throws {
    let path = try path([
      [
        entity("Album", [attribute("word")]), entity("Animal", [attribute("word")]),
        entity("Dog", below: "Animal"),
      ],
      [
        entity("Album", [attribute("word")]), entity("Animal"),
        entity("Dog", below: "Animal", [attribute("word")]),
      ],
      [
        entity("Album"), entity("Animal"), entity("Dog", below: "Animal", [attribute("word")]),
      ],
    ])
    #expect(path.endingAttributes.map(\.entity) == ["Album"])
    let losing = path.propertyPaths.filter { !$0.losingEntities.isEmpty }
    #expect(losing.map(\.title) == ["Animal.word"])
    #expect(losing.map(\.losingEntities) == [["Animal"]])
  }

  @Test("a loss counts what several subclasses lost, although one of them loses it later")
  func movedToSeveral() throws {
    let path = try path([
      [
        entity("Animal", [attribute("weight")]), entity("Cat", below: "Animal"),
        entity("Dog", below: "Animal"),
      ],
      [
        entity("Animal"), entity("Cat", below: "Animal", [attribute("weight")]),
        entity("Dog", below: "Animal", [attribute("weight")]),
      ],
      [
        entity("Animal"), entity("Cat", below: "Animal"),
        entity("Dog", below: "Animal", [attribute("weight")]),
      ],
    ])
    #expect(path.endingAttributes.map(\.losers) == [["Cat"]])
    let lost = LostValues(
      version: Schema.Version(1, 0, 0), entity: "Animal", property: "weight", count: 3)
    #expect(
      path.losses([lost]).map(\.sentence) == ["drops 3 non-null values of Animal.weight"])
  }

  @Test("a property is removed from all rows where each subclass that it moved to loses it")
  func movedToSeveralAndRemoved() throws {
    func version(_ cat: [Schema.Attribute], _ dog: [Schema.Attribute]) -> [Schema.Entity] {
      [
        entity("Animal"), entity("Cat", below: "Animal", cat), entity("Dog", below: "Animal", dog),
      ]
    }
    let weight = [attribute("weight")]
    let path = try path([
      [
        entity("Animal", weight), entity("Cat", below: "Animal"), entity("Dog", below: "Animal"),
      ],
      version(weight, weight), version([], weight), version([], []),
    ])
    #expect(path.endingAttributes.map(\.attribute) == ["weight"])
    #expect(path.endingAttributes.map(\.losers) == [nil])
    #expect(path.propertyPaths.allSatisfy { !$0.mayLose })
  }

  @Test("a property is followed to each class that it moves to, with the type that it has there")
  func otherTypes() throws {
    let path = try path(
      [
        [
          entity("Animal", [attribute("weight")]), entity("Cat", below: "Animal"),
          entity("Dog", below: "Animal"),
        ],
        [
          entity("Animal"), entity("Cat", below: "Animal", [attribute("weight")]),
          entity("Dog", below: "Animal", [attribute("weight")]),
        ],
        [
          entity("Animal"), entity("Cat", below: "Animal", [attribute("weight")]),
          entity("Dog", below: "Animal", [attribute("weight", .int64)]),
        ],
      ], accepting: ["Dog.weight"])
    let lost = LostValues(
      version: Schema.Version(2, 0, 0), entity: "Dog", property: "weight", count: 2)
    let values = try #require(path.losses([lost]).first)
    #expect(values.sentence == "drops 2 non-null values of Animal.weight")
    #expect(path.accepts(values))
  }

  @Test("a loss counts what a stage lost, although a relationship keeps the column later")
  func keptColumn() throws {
    func item(_ attributes: [Schema.Attribute], owner: Bool = false) -> Schema.Entity {
      var item = entity("Item", [Schema.Attribute(name: "id", type: .int64)] + attributes)
      item.table = Schema.Table("item")
      if owner {
        item.relationships = [
          Schema.Relationship(
            name: "owner", destination: "Owner", isOptional: true, isToOneRelationship: true)
        ]
      }
      return item
    }
    func column(_ type: Schema.AttributeType) -> Schema.Attribute {
      var attribute = attribute("ownerID", type)
      attribute.column = Schema.Column("owner_id")
      return attribute
    }
    var owner = entity("Owner", [Schema.Attribute(name: "id", type: .int64)])
    owner.table = Schema.Table("owner")
    let path = try path(
      [
        [item([column(.string)]), owner], [item([column(.int64)]), owner],
        [item([], owner: true), owner],
      ])
    let lost = LostValues(
      version: Schema.Version(1, 0, 0), entity: "Item", property: "ownerID", count: 3)
    #expect(path.losses([lost]).map(\.sentence) == ["drops 3 non-null values of Item.ownerID"])
  }

  @Test("a property has the narrowest of its integer types")
  func narrowest() throws {
    let path = try path([
      [entity("Note", [attribute("a", .int64), attribute("b", .int16), attribute("c", .int64)])],
      [entity("Note", [attribute("a", .int16), attribute("b", .int64), attribute("c", .int64)])],
      [entity("Note", [attribute("a", .int32), attribute("b", .int16), attribute("c", .int64)])],
    ])
    let narrowed = path.propertyPaths.filter { $0.narrowestInteger != nil }
    #expect(narrowed.map(\.title) == ["Note.a"])
    #expect(narrowed.map(\.narrowestInteger) == [.int16])
  }

  @Test("a change of type in a class that becomes a superclass is a change")
  func newSuperclass() {
    let old = Schema(
      entities: [entity("Book", [attribute("title")])], version: Schema.Version(1, 0, 0))
    let new = Schema(
      entities: [entity("Work", [attribute("title", .int64)]), entity("Book", below: "Work")],
      version: Schema.Version(2, 0, 0))
    let changes = SchemaDifference(from: old, to: new).changes
    #expect(
      changes.compactMap(\.reasonForCustomStage) == [
        "values of Work.title must be converted from String to Int"
      ])
  }
}
