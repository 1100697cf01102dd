import Foundation
import GRDB
import InstarChange
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

/// The verification of a clone after a lightweight stage that removes an entity whose rows have links.
@Suite("Verifying a clone without the rows of a removed entity")
struct RemovedEntityTests {
  /// Two versions, of which the second one lacks an entity, and rows of the first.
  private struct Plan {
    var before: [Schema.Entity]
    var after: [Schema.Entity]
    var rows: String
  }

  /// Members of a club are persons or students, and friends of each other. The second version has no students.
  ///
  /// - Parameter minimum: The fewest members of a club.
  private static func club(minimum: Int = 0) -> Plan {
    func toOne(_ name: String, _ destination: String, inverse: String? = nil)
      -> Schema.Relationship
    {
      Schema.Relationship(
        name: name, destination: destination, inverseName: inverse, maximumModelCount: 1,
        isToOneRelationship: true)
    }
    func toMany(_ name: String, _ destination: String, inverse: String?, minimum: Int = 0)
      -> Schema.Relationship
    {
      Schema.Relationship(
        name: name, destination: destination, inverseName: inverse, minimumModelCount: minimum,
        isToOneRelationship: false)
    }
    let club = Schema.Entity(
      name: "Club",
      relationships: [
        toOne("head", "Person"),
        toMany("members", "Person", inverse: "club", minimum: minimum),
      ])
    let person = Schema.Entity(
      name: "Person",
      relationships: [
        toOne("club", "Club", inverse: "members"), toMany("friends", "Person", inverse: "friends"),
      ])
    let student = Schema.Entity(name: "Student", superentityName: "Person")
    // Students sort last, so that no number changes.
    return Plan(
      before: [club, person, student], after: [club, person],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, ZCLUB) VALUES (1, 2, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2);
        INSERT INTO ZCLUB (Z_PK, Z_ENT, ZHEAD, Z2_HEAD) VALUES (1, 1, 1, 2), (2, 1, 3, 3);
        INSERT INTO Z_2FRIENDS VALUES (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3);
        """)
  }

  /// Authors have books and reviews. The second version has no books.
  private static var library: Plan {
    func entity(_ name: String, _ relationships: [Schema.Relationship]) -> Schema.Entity {
      var entity = Schema.Entity(
        name: name, attributes: [Schema.Attribute(name: "id", type: .int64, isOptional: false)],
        relationships: relationships)
      entity.table = Schema.Table(name.lowercased())
      return entity
    }
    func owned(_ name: String, by inverse: String) -> Schema.Entity {
      entity(
        name,
        [
          Schema.Relationship(
            name: "author", destination: "Author", inverseName: inverse, maximumModelCount: 1,
            isToOneRelationship: true)
        ])
    }
    func author(_ inverses: [(String, String)]) -> Schema.Entity {
      entity(
        "Author",
        inverses.map { name, destination in
          Schema.Relationship(
            name: name, destination: destination, inverseName: "author", isToOneRelationship: false)
        })
    }
    let review = owned("Review", by: "reviews")
    return Plan(
      before: [
        author([("books", "Book"), ("reviews", "Review")]), owned("Book", by: "books"), review,
      ], after: [author([("reviews", "Review")]), review],
      rows: """
        INSERT INTO author (id) VALUES (1), (2);
        INSERT INTO book (id, author_id) VALUES (1, 1), (2, 2);
        INSERT INTO review (id, author_id) VALUES (1, 1), (2, 2);
        """)
  }

  /// Makes the change of schema and then runs SQL on a store, and verifies the outcome.
  private func verify(_ plan: Plan, then sql: String = "") throws -> CloneVerification.Result {
    let schemas = [plan.before, plan.after].enumerated().map { index, entities in
      Schema(entities: entities, version: Schema.Version(index + 1, 0, 0))
    }
    let versions = try schemas.map { schema in
      let structure = try schema.layout().structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    let path = try MigrationPath(
      from: schemas[0].version,
      in: PlanManifest(
        name: "P", versions: versions,
        stages: [
          StageManifest(from: schemas[0].version, to: schemas[1].version, kind: .lightweight)
        ]))
    let folder = try TemporaryFolder()
    let layout = try schemas[0].layout()
    let store = folder.path("a.store")
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { db in
      for statement in try layout.emptyStoreStatements() { try db.execute(sql: statement) }
      try layout.stamp(
        schemas[0].version, at: .userVersion,
        metadata: layout.metadata(newStoreFor: schemas[0])?.encoded(), db)
      try db.execute(sql: "PRAGMA foreign_keys = OFF; \(plan.rows)")
    }
    try queue.close()
    try FileManager.default.copyItem(atPath: store, toPath: folder.path("b.store"))
    let connection = try StoreConnection(path: folder.path("b.store"), durability: .clone)
    return try connection.perform { session in
      let db = session.database
      let before = try SchemaBaseline(db, format: layout.format)
      let census = try StoreCensus(db, layout: layout, removing: path.removedEntities)
      for stage in path.schemaStages { _ = try SchemaChange(stage).make(session) }
      try db.execute(sql: sql)
      return try CloneVerification(
        path: path, layout: schemas[1].layout(), before: before, ranPlugin: false
      ).verify(
        db, before: { census },
        of: EarlierStore(
          layout: layout,
          read: { body in try StoreReader.withReadOnlyStore(store) { try body($0) } }))
    }
  }

  @Test("links of a removed subclass vanish, which the report says")
  func subclass() throws {
    let result = try verify(Self.club())
    #expect(result.census.rows == ["Club": 2, "Person": 2])
    #expect(
      result.notes == [
        "Club.head had 2 links and has 1: 1 ended with the rows of removed entities",
        "Club.members had 4 links and has 2: 2 ended with the rows of removed entities",
        "Person.club had 4 links and has 2: 2 ended with the rows of removed entities",
        "Person.friends had 6 links and has 2: 4 ended with the rows of removed entities",
      ])
  }

  @Test(
    "no other link may vanish, and none may stay",
    arguments: [
      (
        "UPDATE ZPERSON SET ZCLUB = NULL WHERE Z_PK = 1", InstarError.Code.rowsLost,
        "had 4 links, of which 2 end with removed entities, and has 1"
      ),
      ("DELETE FROM Z_2FRIENDS WHERE REFLEXIVE = 1", .rowsLost, "Person.friends"),
      ("UPDATE ZCLUB SET ZHEAD = NULL", .rowsLost, "Club.head"),
      ("UPDATE ZCLUB SET ZHEAD = 3 WHERE Z_PK = 2", .brokenReferences, "Club.head"),
    ])
  func otherLinks(_ sql: String, _ code: InstarError.Code, _ cause: String) throws {
    let error = #expect(throws: InstarError.self) { try verify(Self.club(), then: sql) }
    #expect(error?.code == code)
    #expect(error?.cause.contains(cause) == true, "\(String(describing: error))")
  }

  @Test("a row that keeps fewer models than its relationship requires is refused")
  func limit() throws {
    let error = #expect(throws: InstarError.self) { try verify(Self.club(minimum: 1)) }
    #expect(error?.code == .modelCount)
    #expect(error?.rows == AffectedRows(count: 1, keys: ["2"]))
  }

  @Test("links of a removed table vanish, and no others")
  func table() throws {
    let result = try verify(Self.library)
    #expect(result.census.rows == ["Author": 2, "Review": 2])
    #expect(result.notes.isEmpty)
    let error = #expect(throws: InstarError.self) {
      try verify(Self.library, then: "UPDATE review SET author_id = NULL WHERE id = 2")
    }
    #expect(error?.code == .rowsLost)
  }
}
