import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("The layout of a schema")
struct CoreDataLayoutTests {
  @Test(
    "the layout computed from a store's model is the store's, byte for byte",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"), arguments: RealStores.all)
  func realStore(_ path: String) throws {
    let folder = try TemporaryFolder()
    let name = URL(fileURLWithPath: path).lastPathComponent
    let copy = try #require(try RealStores.copy(name, to: folder))
    try check(copy, model: Self.modelsWithoutCache[name])
  }

  @Test(
    "the layout computed from the model of a store that is written by the page is that store's, byte for byte",
    arguments: AppleStore.all)
  func twin(_ store: AppleStore) throws {
    let folder = try TemporaryFolder()
    try check(
      try store.write(to: folder, isLogged: false), model: Self.modelsWithoutCache[store.name])
  }

  @Test(
    "the layout of the schema that a store's tables tell is the store's", arguments: AppleStore.all)
  func withoutModel(_ store: AppleStore) throws {
    let folder = try TemporaryFolder()
    let path = try store.withoutModel.write(to: folder)
    let (probe, introspection) = try StoreIntrospection.read(path)
    #expect(introspection.origin == .tables)
    let layout = try CoreDataLayout(
      schema: introspection.schema, conventions: probe.conventions)
    #expect(layout.structure.differences(from: probe.identity.structure) == [])
  }

  /// - Parameter model: Of a store that carries none.
  private func check(_ path: String, model: CoreDataModel?) throws {
    let queue = try GuardedConnection.open(path, access: .immutable)
    try queue.inDatabase { db in
      let model = try #require(try CoreDataModel.read(db) ?? model)
      let layout = try CoreDataLayout(
        schema: model.schema, conventions: try CoreDataConventions(of: db))
      let statements =
        layout.tables.map(\.createStatement) + layout.joinTables.map(\.createStatement)
        + layout.indexes.map(\.createStatement)
      #expect(Set(statements) == Set(try Self.statements(db)))
      #expect(layout.structure == (try StoreStructure.read(db, format: .coredata)))
      let listed = try Row.fetchAll(
        db, sql: "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY 1")
      #expect(
        layout.entities.map {
          // Core Data itself leaves the earlier name there.
          "\($0.number) \(Self.staleNames[$0.name] ?? $0.name) \($0.superNumber)"
        } == listed.map { "\($0[0] as Int) \($0[1] as String) \($0[2] as Int)" })
    }
  }

  private static let staleNames = [
    "LuxuryCar": "ExpensiveSportCar", "MotorcycleMaintenance": "Maintenance",
  ]

  /// Returns the statements of everything that a schema describes.
  private static func statements(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT sql FROM sqlite_master
        WHERE type IN ('table', 'index') AND sql IS NOT NULL
          AND name NOT IN ('Z_PRIMARYKEY', 'Z_METADATA', 'Z_MODELCACHE')
          AND tbl_name NOT GLOB 'ACHANGE' AND tbl_name NOT GLOB 'ATRANSACTION*'
        """)
  }

  /// The two stores that are older than the model cache, as their apps' sources describe them.
  private static let modelsWithoutCache: [String: CoreDataModel] = {
    func attribute(_ name: String, _ type: Schema.AttributeType) -> Schema.Attribute {
      Schema.Attribute(name: name, type: type, isOptional: true)
    }
    func toOne(_ name: String, _ destination: String, _ inverse: String? = nil)
      -> Schema.Relationship
    {
      Schema.Relationship(
        name: name, destination: destination, inverseName: inverse, maximumModelCount: 1,
        isToOneRelationship: true)
    }
    func model(_ entities: [Schema.Entity]) -> CoreDataModel {
      CoreDataModel(
        schema: Schema(entities: entities, version: Schema.Version(1, 0, 0)),
        details: [:])
    }
    var fileURL = attribute("fileURL", .data)
    fileURL.options = [.transformable(by: "")]
    func toMany(_ name: String, _ destination: String, _ inverse: String) -> Schema.Relationship {
      Schema.Relationship(
        name: name, destination: destination, inverseName: inverse, isToOneRelationship: false)
    }
    return [
      "Kik": model([
        Schema.Entity(
          name: "KikChat",
          attributes: [attribute("flags", .int32), attribute("dateUpdated", .date)],
          relationships: [toOne("user", "KikUser", "chatUser")]),
        Schema.Entity(
          name: "KikMessage",
          attributes: [
            attribute("type", .int32), attribute("receivedTimestamp", .date),
            attribute("body", .string),
          ],
          relationships: [toOne("user", "KikUser")]),
        Schema.Entity(
          name: "KikUser",
          attributes: [
            attribute("displayName", .string), attribute("flags", .int32),
            attribute("jid", .string), attribute("ppURL", .string),
          ],
          relationships: [
            toMany("bans", "KikUser", "bansInverse"), toMany("bansInverse", "KikUser", "bans"),
            toOne("chatUser", "KikChat", "user"), toMany("members", "KikUser", "membersInverse"),
            toMany("membersInverse", "KikUser", "members"),
          ],
          indices: [["jid"]]),
      ]),
      "NotesV7": model([
        Schema.Entity(
          name: "Account",
          attributes: [attribute("didChooseToMigrate", .bool), attribute("name", .string)]),
        Schema.Entity(
          name: "Note",
          attributes: [
            attribute("body", .data), attribute("dateEdited", .date), attribute("title", .string),
          ],
          relationships: [toOne("account", "Account")]),
      ]),
      "hwaxxer__BookMigration__Model1.sqlite": model([
        Schema.Entity(
          name: "Book",
          attributes: [attribute("authorName", .string), attribute("title", .string), fileURL],
          relationships: [toOne("user", "User")]),
        Schema.Entity(name: "User", attributes: [attribute("userId", .int64)]),
      ]),
      "gaoyve__GroceryDude__DefaultData.sqlite": model([
        Schema.Entity(
          name: "Item",
          attributes: [
            attribute("collected", .bool), attribute("listed", .bool), attribute("name", .string),
            attribute("quantity", .float), attribute("thumbnail", .data),
          ],
          relationships: [
            toOne("locationAtHome", "LocationAtHome"), toOne("locationAtShop", "LocationAtShop"),
            toOne("photo", "Item_Photo"), toOne("unit", "Unit"),
          ],
          indices: [["name"]]),
        Schema.Entity(
          name: "Item_Photo", attributes: [attribute("data", .data)],
          relationships: [toOne("item", "Item")]),
        Schema.Entity(name: "Location", attributes: [attribute("summary", .string)]),
        Schema.Entity(
          name: "LocationAtHome", attributes: [attribute("storedIn", .string)],
          superentityName: "Location"),
        Schema.Entity(
          name: "LocationAtShop", attributes: [attribute("aisle", .string)],
          superentityName: "Location"),
        Schema.Entity(name: "Unit", attributes: [attribute("name", .string)]),
      ]),
    ]
  }()

  @Test(
    "the layout numbers ordered links, and names the side of an entity with itself as the store does"
  )
  func joinTables() throws {
    func toMany(
      _ name: String, _ destination: String, _ inverse: String, isOrdered: Bool = false
    ) -> Schema.Relationship {
      Schema.Relationship(
        name: name, destination: destination, inverseName: inverse, isToOneRelationship: false,
        options: isOrdered ? [.ordered] : [])
    }
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Album", relationships: [toMany("assets", "Asset", "albums", isOrdered: true)]),
        Schema.Entity(name: "Asset", relationships: [toMany("albums", "Album", "assets")]),
        Schema.Entity(
          name: "Person",
          relationships: [
            toMany("bans", "Person", "bansInverse"), toMany("bansInverse", "Person", "bans"),
            toMany("pets", "Pet", "owner", isOrdered: true),
          ]),
        Schema.Entity(
          name: "Pet",
          relationships: [
            Schema.Relationship(
              name: "owner", destination: "Person", inverseName: "pets", maximumModelCount: 1,
              isToOneRelationship: true)
          ]),
      ], version: Schema.Version(1, 0, 0))
    let fresh = try CoreDataLayout(schema: schema)
    #expect(
      fresh.joinTables.map(\.createStatement) == [
        "CREATE TABLE Z_1ASSETS ( Z_1ALBUMS INTEGER, Z_2ASSETS INTEGER, Z_FOK_2ASSETS INTEGER, "
          + "PRIMARY KEY (Z_1ALBUMS, Z_2ASSETS) )",
        "CREATE TABLE Z_3BANS ( Z_3BANSINVERSE INTEGER, Z_3BANS INTEGER, "
          + "PRIMARY KEY (Z_3BANSINVERSE, Z_3BANS) )",
      ])
    #expect(
      fresh.tables.last?.columns.map(\.name) == [
        "Z_PK", "Z_ENT", "Z_OPT", "ZOWNER", "Z_FOK_OWNER",
      ])
    // The other name was seen as well (section 4.5).
    let seen = try CoreDataLayout(
      schema: schema, conventions: CoreDataConventions(joinTables: ["Z_3BANSINVERSE"]))
    #expect(
      seen.joinTables.last?.createStatement
        == "CREATE TABLE Z_3BANSINVERSE ( Z_3BANS INTEGER, Z_3BANSINVERSE INTEGER, "
        + "PRIMARY KEY (Z_3BANS, Z_3BANSINVERSE) )")
    #expect(seen.structure == fresh.structure)
    let place = seen.entity(named: "Person")?.relationships.first?.location
    guard case .joinTable(let name, let own, let other)? = place else {
      Issue.record("the links are not in a join table: \(String(describing: place))")
      return
    }
    #expect([name, own.list, other.list] == ["Z_3BANSINVERSE", "Z_3BANSINVERSE", "Z_3BANS"])
  }

  @Test("a relationship that is its own inverse has a table with a row for each direction")
  func reflexive() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Person",
          relationships: [
            Schema.Relationship(
              name: "friends", destination: "Person", inverseName: "friends",
              isToOneRelationship: false),
            Schema.Relationship(
              name: "spouse", destination: "Person", inverseName: "spouse", maximumModelCount: 1,
              isToOneRelationship: true),
          ])
      ], version: Schema.Version(1, 0, 0))
    let fresh = try CoreDataLayout(schema: schema)
    #expect(
      fresh.joinTables.map(\.createStatement) == [
        "CREATE TABLE Z_1FRIENDS ( Z_1FRIENDS INTEGER, REFLEXIVE INTEGER, "
          + "PRIMARY KEY (Z_1FRIENDS, REFLEXIVE) )"
      ])
    #expect(fresh.tables.first?.columns.last?.name == "ZSPOUSE")
    // The column's name is not known from a store: one that has another keeps it.
    var conventions = CoreDataConventions()
    conventions.reflexiveColumns = ["Z_1FRIENDS": "Z_1FRIENDS1"]
    let seen = try CoreDataLayout(schema: schema, conventions: conventions)
    #expect(seen.joinTables.first?.column == "Z_1FRIENDS1")
    #expect(seen.structure == fresh.structure)
  }

  @Test("the layout is that of the year of the framework that wrote the store")
  func generations() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: [
            Schema.Attribute(name: "title", type: .string),
            Schema.Attribute(name: "rank", type: .int64),
          ], uniquenessConstraints: [["title"]], indices: [["rank"], ["title", "rank"]])
      ], version: Schema.Version(1, 0, 0))
    let current = try CoreDataLayout(schema: schema)
    let old = try CoreDataLayout(
      schema: schema, conventions: CoreDataConventions(generation: .before2017))
    #expect(
      old.createStatements.prefix(3) == [
        "CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
          + "ZRANK INTEGER, ZTITLE VARCHAR, CONSTRAINT ZTITLE UNIQUE (ZTITLE))",
        "CREATE INDEX ZNOTE_ZRANK_INDEX ON ZNOTE (ZRANK)",
        "CREATE INDEX ZNOTE_ZTITLE_ZRANK ON ZNOTE (ZTITLE, ZRANK)",
      ])
    // What a store is recognized by is the same.
    #expect(old.structure == current.structure)
  }
}
