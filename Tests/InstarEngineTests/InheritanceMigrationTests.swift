import Instar
import InstarEngine
import InstarModel
import InstarStore
import InstarTestSupport
import Testing

@Suite("Stages between versions whose models inherit from each other")
struct InheritanceMigrationTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
  }

  private func open(_ version: any VersionedSchema.Type) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: version),
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  private func fill() throws {
    let container = try open(MapV1.self)
    let context = ModelContext(container)
    let north = MapV1.Region(name: "North")
    context.insert(MapV1.Pin(label: "a", region: north))
    context.insert(MapV1.Pin(label: "b", region: nil))
    context.insert(MapV1.Region(name: "South"))
    try context.save()
    try container.close()
  }

  private func migrate(from start: Schema.Version) throws {
    let definition = try PlanDefinition(MapPlan.self)
    let connection = try StoreConnection(path: path, durability: .clone)
    try StageExecutor(connection: connection) { _ in }
      .run(definition.path(from: start), plan: definition.name)
    try connection.close()
  }

  @Test("a first subclass is added, and what refers to rows learns of which class they are")
  func firstSubclass() throws {
    try fill()
    try migrate(from: MapV1.versionIdentifier)
    let container = try open(MapV3.self)
    let context = ModelContext(container)
    let regions = try context.fetch(FetchDescriptor<MapV3.Region>(sortBy: [SortDescriptor(\.name)]))
    #expect(
      regions.map { "\(type(of: $0)) \($0.name)" } == [
        "Country Eastland", "Region North", "Region South",
      ])
    let eastland = try #require(regions[0] as? MapV3.Country)
    #expect(eastland.capitalCity == "East")
    #expect(eastland.population == 1_000)
    let pins = try context.fetch(FetchDescriptor<MapV3.Pin>(sortBy: [SortDescriptor(\.label)]))
    #expect(pins.map { $0.region?.name } == ["North", nil, "Eastland"])
    let numbers = try container.connection.perform { session in
      try session.integer(
        "SELECT count(*) FROM ZPIN JOIN ZREGION AS r ON r.Z_PK = ZPIN.ZREGION WHERE Z3_REGION = r.Z_ENT"
      )
    }
    #expect(numbers == 2)
  }

  @Test("a class that moves below another one needs a stage with code")
  func movedClass() throws {
    let difference = SchemaDifference(
      from: Schema([MapV1.Region.self, MapV1.Pin.self]),
      to: Schema([MapV3.Region.self, MapV3.Country.self, MapV3.Pin.self, MapV3.Atoll.self]))
    #expect(difference.changes.contains { $0.sentence == "adds entity Country" })
    var moved = Schema([MapV3.Region.self, MapV3.Country.self, MapV3.Pin.self])
    moved.entities = moved.entities.map { entity in
      var entity = entity
      entity.superentityName = nil
      return entity
    }
    let move = SchemaDifference(
      from: moved, to: Schema([MapV3.Region.self, MapV3.Country.self, MapV3.Pin.self])
    ).changes.first { $0.sentence == "moves Country below Region" }
    #expect(move?.needsCustomStage != nil)
  }
}

/// 1.0.0 → 2.0.0 lightweight: Region gets a subclass.
/// 2.0.0 → 3.0.0 custom: a property of the subclass is renamed, one added to it, and an entity comes whose name sorts before
/// all others, so that every entity gets another number.
private enum MapPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [MapV1.self, MapV2.self, MapV3.self] }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: MapV1.self, toVersion: MapV2.self),
      .custom(fromVersion: MapV2.self, toVersion: MapV3.self) { context in
        let country = MapV2.Country(name: "Eastland", capital: "East")
        context.insert(country)
        context.insert(MapV2.Pin(label: "c", region: country))
      } didMigrate: { context in
        for country in try context.fetch(FetchDescriptor<MapV3.Country>()) {
          country.population = 1_000
        }
      },
    ]
  }
}

private enum MapV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Region.self, Pin.self] }

  @Model final class Region {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Pin {
    var label: String
    var region: Region?
    init(label: String, region: Region?) {
      self.label = label
      self.region = region
    }
  }
}

private enum MapV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Region.self, Country.self, Pin.self] }

  @Model class Region {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Country: Region {
    var capital: String
    init(name: String, capital: String) {
      self.capital = capital
      super.init(name: name)
    }
  }

  @Model final class Pin {
    var label: String
    var region: Region?
    init(label: String, region: Region?) {
      self.label = label
      self.region = region
    }
  }
}

private enum MapV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Region.self, Country.self, Pin.self, Atoll.self]
  }

  @Model class Region {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Country: Region {
    @Attribute(originalName: "capital") var capitalCity: String
    var population: Int = 0
    init(name: String, capital: String) {
      capitalCity = capital
      super.init(name: name)
    }
  }

  @Model final class Pin {
    var label: String
    var region: Region?
    init(label: String, region: Region?) {
      self.label = label
      self.region = region
    }
  }

  @Model final class Atoll {
    var depth: Double
    init(depth: Double) { self.depth = depth }
  }
}
