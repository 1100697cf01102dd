import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

/// An entity with an index over two directions, and one of some rows only.
private let cars = Schema(
  entities: [
    {
      var car = Schema.Entity(
        name: "Car",
        attributes: [
          Schema.Attribute(name: "maker", type: .string),
          Schema.Attribute(name: "year", type: .int32),
        ], indices: [["maker"]])
      car.fetchIndexes = [
        Schema.FetchIndex(
          name: "byYear",
          elements: [.init("year", isAscending: false), .init("maker")]),
        Schema.FetchIndex(
          name: "byOldMaker", elements: [.init("maker")], condition: "ZYEAR < 1950"),
      ]
      return car
    }()
  ], version: Schema.Version(1, 0, 0))

@Suite("Indexes with names of their own")
struct FetchIndexTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("a.store") }

  init() throws { folder = try TemporaryFolder() }

  /// Makes a store of `cars`.
  private func makeStore(_ more: (Database) throws -> Void) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      for statement in try CoreDataLayout(schema: cars).createStatements {
        try db.execute(sql: statement)
      }
      try CoreDataMetadata(newStoreFor: cars).write(db)
      try more(db)
    }
    try queue.close()
  }

  private var expectedStatements: [String] {
    [
      "CREATE INDEX Z_Car_SwiftDataIndexOnBinarymaker ON ZCAR (ZMAKER COLLATE BINARY ASC)",
      "CREATE INDEX Z_Car_byOldMaker ON ZCAR (ZMAKER COLLATE BINARY ASC) WHERE ZYEAR < 1950",
      "CREATE INDEX Z_Car_byYear ON ZCAR (ZYEAR COLLATE BINARY DESC, ZMAKER COLLATE BINARY ASC)",
    ]
  }

  @Test("indexes are made under the names that Core Data gives them, with directions and condition")
  func fresh() throws {
    try makeStore { db in
      let statements = try String.fetchAll(
        db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")
      #expect(statements == expectedStatements)
      let structure = try StoreStructure.read(db, format: .coredata)
      #expect(structure == (try CoreDataLayout(schema: cars).structure))
    }
  }

  @Test("indexes are read off the tables of a store that carries no schema")
  func fromTables() throws {
    try makeStore { db in
      // The store is not built any more as it was stamped.
      try db.execute(sql: "CREATE INDEX Z_Car_late ON ZCAR (ZYEAR COLLATE BINARY ASC)")
    }
    let found = try StoreIntrospection.read(path).introspection
    #expect(found.origin == .tables)
    let car = try #require(found.schema.entity(named: "Car"))
    #expect(car.indices == [["maker"]])
    #expect(
      car.fetchIndexes.sorted { $0.name < $1.name } == [
        Schema.FetchIndex(
          name: "byOldMaker", elements: [.init("maker")], condition: "ZYEAR < 1950"),
        Schema.FetchIndex(
          name: "byYear", elements: [.init("year", isAscending: false), .init("maker")]),
        Schema.FetchIndex(name: "late", elements: [.init("year")]),
      ])
  }

  @Test(
    "indexes of a model that a store carries take their condition from the store's own statement")
  func fromModel() throws {
    typealias Value = ModelArchive.Value
    func element(_ property: String, isAscending: Bool = true) -> Value {
      .object(
        "NSFetchIndexElementDescription",
        ["NSPropertyName": .text(property), "NSAscending": .boolean(isAscending)])
    }
    func index(_ name: String, _ elements: [Value], _ more: [String: Value] = [:]) -> Value {
      .object(
        "NSFetchIndexDescription",
        ["NSIndexName": .text(name), "NSIndexElements": .array(elements)].merging(more) { $1 })
    }
    func attribute(_ name: String, _ type: Int) -> (String, Value) {
      (
        name,
        .object(
          "NSAttributeDescription",
          ["NSPropertyName": .text(name), "NSAttributeType": .integer(type)])
      )
    }
    let predicate = ["NSPartialIndexPredicate": Value.object("NSComparisonPredicate", [:])]
    let archive = ModelArchive.bytes(
      .object(
        "NSManagedObjectModel",
        [
          "NSEntities": .entries([
            (
              "Car",
              .object(
                "NSEntityDescription",
                [
                  "NSEntityName": .text("Car"),
                  "NSProperties": .entries([attribute("maker", 700), attribute("year", 200)]),
                  "NSFetchIndexDescriptions": .array([
                    index("SwiftDataIndexOnBinarymaker", [element("maker")]),
                    index("byYear", [element("year", isAscending: false), element("maker")]),
                    index("byOldMaker", [element("maker")], predicate),
                    index("byGone", [element("maker")], predicate),
                    index("byLength", [element("expression")]),
                  ]),
                ])
            )
          ])
        ]))
    try makeStore { db in
      try db.execute(
        sql: "INSERT INTO Z_MODELCACHE VALUES (?)", arguments: [Data(HostileStores.stored(archive))]
      )
    }
    let found = try StoreIntrospection.read(path).introspection
    #expect(found.origin == .modelCache)
    let indexes = try #require(found.schema.entity(named: "Car")).fetchIndexes
    #expect(indexes.prefix(2) == cars.entities[0].fetchIndexes[...])
    #expect(indexes.last?.name == "byGone")
    #expect(indexes.last?.partialPredicate == "?")
    #expect(found.notes == ["Car: index 'byLength' is left out: it is over an expression"])
  }

  @Test(
    "the text of an index is taken apart, whatever is in it",
    arguments: [
      ("CREATE INDEX i ON t (a)", ["a"], nil),
      (
        "CREATE INDEX \"i (x)\" ON [t,u] (a COLLATE NOCASE DESC, f(b, 'c)'))",
        ["a COLLATE NOCASE DESC", "f(b, 'c)')"], nil
      ),
      (
        "CREATE UNIQUE INDEX i ON t(a -- the first,\n, b) WHERE a > 0 /* where */ AND (b)",
        ["a", "b"], "a > 0   AND (b)"
      ),
      ("CREATE INDEX i ON t (a)where\nb IS NULL;", ["a"], "b IS NULL"),
    ] as [(String, [String], String?)])
  func text(_ sql: String, _ terms: [String], _ condition: String?) throws {
    let text = try #require(CreateIndexText(sql))
    #expect(text.terms == terms)
    #expect(text.condition == condition)
  }
}
