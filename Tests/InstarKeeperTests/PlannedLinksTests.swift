import GRDB
import InstarKeeper
import InstarSchema
import InstarStore
import InstarWire
import Testing

/// What `instarctl plan` says of links that a run will lose.
@Suite("A plan counts the links of rows that lose a relationship")
struct PlannedLinksTests {
  /// Animals with owners and toys, which move to dogs. Cats, and animals of no subclass, lose theirs.
  private static func entities(isMoved: Bool) -> [Schema.Entity] {
    let relationships = [
      Schema.Relationship(
        name: "owner", destination: "Owner", maximumModelCount: 1, isToOneRelationship: true),
      Schema.Relationship(name: "toys", destination: "Toy", isToOneRelationship: false),
    ]
    return [
      Schema.Entity(name: "Animal", relationships: isMoved ? [] : relationships),
      Schema.Entity(name: "Cat", superentityName: "Animal"),
      Schema.Entity(
        name: "Dog", relationships: isMoved ? relationships : [], superentityName: "Animal"),
      Schema.Entity(name: "Owner"), Schema.Entity(name: "Toy"),
    ]
  }

  @Test("a plan counts the links of rows that lose a relationship, each once, to one and to many")
  func moved() throws {
    let fixture = try KeeperFixture()
    let schemas = [false, true].enumerated().map { index, isMoved in
      Schema(
        entities: Self.entities(isMoved: isMoved), version: Schema.Version(index + 1, 0, 0))
    }
    let store = fixture.folder + "/Animals.store"
    let layout = try CoreDataLayout(schema: schemas[0])
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { db in
      for statement in layout.createStatements { try db.execute(sql: statement) }
      try CoreDataMetadata(newStoreFor: schemas[0]).write(db)
      // Two animals, a cat and two dogs with an owner each; the toys of an animal, the cat and a dog.
      try db.execute(
        sql: """
          INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT, ZOWNER)
            VALUES (1, 1, 1, 1), (2, 1, 1, 1), (3, 2, 1, 1), (4, 3, 1, 1), (5, 3, 1, 1), (6, 2, 1, NULL);
          INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1);
          INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT, Z1TOYS)
            VALUES (1, 5, 1, 1), (2, 5, 1, 1), (3, 5, 1, 3), (4, 5, 1, 4), (5, 5, 1, NULL);
          """)
    }
    try queue.close()
    let versions = try schemas.map { schema in
      let structure = try schema.layout().structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    let host = ManifestHost(
      plan: PlanManifest(
        name: "Plan", versions: versions,
        stages: [
          StageManifest(
            from: schemas[0].version, to: schemas[1].version, kind: .lightweight)
        ]))
    let conversation = ScriptedConversation([
      .plan(stores: [store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: conversation, host: host).serve()
    let report = try #require(conversation.plans.first)
    #expect(report.error == nil)
    #expect(report.findings.map(\.code) == [.unacceptedLoss, .unacceptedLoss])
    #expect(
      report.findings.map { $0.message.prefix { $0 != ":" } } == [
        "drops 3 links of Animal.owner unless willMigrate copies them and sets the property to nil",
        "drops 3 links of Animal.toys unless willMigrate copies them and sets the property to nil",
      ])
  }
}
