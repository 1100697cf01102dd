import GRDB
import Instar
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarChange

private enum GarageV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Car.self] }

  @Model final class Car {
    #Index<Car>(
      .binary([\.maker]),
      .named("byYear", [.descending(\.year), .ascending(\.maker)]),
      .named("byPlate", [\.plate], where: "ZPLATE IS NOT NULL"),
      .named("byOldMaker", [\.maker], where: "ZYEAR < 1950"))
    var maker: String
    var year: Int
    var plate: String?
    var note: String?
    init(maker: String, year: Int) {
      self.maker = maker
      self.year = year
    }
  }
}

/// One condition changes, one names a renamed column, and the table has other columns.
private enum GarageV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Car.self] }

  @Model final class Car {
    #Index<Car>(
      .binary([\.maker]),
      .named("byYear", [.descending(\.year), .ascending(\.maker)]),
      .named("byPlate", [\.numberPlate], where: "ZNUMBERPLATE IS NOT NULL"),
      .named("byOldMaker", [\.maker], where: "ZYEAR < 1960"))
    var maker: String
    var year: Int
    @Attribute(originalName: "plate") var numberPlate: String?
    var doors: Int = 4
    init(maker: String, year: Int) {
      self.maker = maker
      self.year = year
    }
  }
}

@Suite("Indexes with names, directions and conditions")
struct NamedIndexTests {
  private func indexes(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")
  }

  @Test(
    "a change of schema keeps the indexes as a fresh store of the version has them",
    arguments: [CoreDataSchemaChange.TableStyle.altered, .fresh])
  func change(_ style: CoreDataSchemaChange.TableStyle) throws {
    let (old, new) = (
      Schema(versionedSchema: GarageV1.self), Schema(versionedSchema: GarageV2.self)
    )
    let layouts = (try CoreDataLayout(schema: old), try CoreDataLayout(schema: new))
    let fresh = try DatabaseQueue().write { db in
      for statement in layouts.1.createStatements { try db.execute(sql: statement) }
      return try indexes(db)
    }
    #expect(
      fresh.contains(
        "CREATE INDEX Z_Car_byOldMaker ON ZCAR (ZMAKER COLLATE BINARY ASC) WHERE ZYEAR < 1960"))
    try DatabaseQueue().write { db in
      for statement in layouts.0.createStatements { try db.execute(sql: statement) }
      let change = CoreDataSchemaChange(
        from: layouts.0, to: layouts.1, SchemaDifference(from: old, to: new), style: style)
      for step in change.steps { try db.execute(sql: step.sql) }
      #expect(try indexes(db) == fresh)
      #expect(try StoreStructure.read(db, format: .coredata) == layouts.1.structure)
    }
  }

  @Test("the store that a container makes has the indexes")
  func container() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: GarageV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    context.insert(GarageV1.Car(maker: "A", year: 1949))
    try context.save()
    try container.close()
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    #expect(
      try queue.read(indexes).filter { $0.contains("ZCAR") } == [
        "CREATE INDEX Z_Car_SwiftDataIndexOnBinarymaker ON ZCAR (ZMAKER COLLATE BINARY ASC)",
        "CREATE INDEX Z_Car_byOldMaker ON ZCAR (ZMAKER COLLATE BINARY ASC) WHERE ZYEAR < 1950",
        "CREATE INDEX Z_Car_byPlate ON ZCAR (ZPLATE COLLATE BINARY ASC) WHERE ZPLATE IS NOT NULL",
        "CREATE INDEX Z_Car_byYear ON ZCAR (ZYEAR COLLATE BINARY DESC, ZMAKER COLLATE BINARY ASC)",
      ])
  }
}
