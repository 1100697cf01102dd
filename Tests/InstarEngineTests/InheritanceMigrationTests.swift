import Instar
import InstarEngine
import InstarModel
import InstarStore
import InstarTestSupport
import InstarWire
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
    try StageExecutor.run(
      [StageExecutor.Clone(connection: connection, path: definition.path(from: start)) { _ in }],
      plan: definition.name)
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

  @Test("a class that gets a new superclass keeps its rows, keys and links in a lightweight stage")
  func newSuperclass() throws {
    let old = try open(StateV1.self)
    let filling = ModelContext(old)
    for number in 1...3 {
      let state = StateV1.State(name: "s\(number)", capital: "c\(number)")
      filling.insert(StateV1.Pin(label: "p\(number)", state: state))
    }
    try filling.save()
    try old.close()

    let definition = try PlanDefinition(StatePlan.self)
    let connection = try StoreConnection(path: path, durability: .clone)
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: StateV1.versionIdentifier)
        ) { _ in }
      ],
      plan: definition.name)
    try connection.close()

    let context = ModelContext(try open(StateV2.self))
    let areas = try context.fetch(FetchDescriptor<StateV2.Area>(sortBy: [SortDescriptor(\.name)]))
    #expect(
      areas.map { ($0 as? StateV2.State).map { "\($0.name) \($0.capital)" } } == [
        "s1 c1", "s2 c2", "s3 c3",
      ])
    let pins = try context.fetch(FetchDescriptor<StateV2.Pin>(sortBy: [SortDescriptor(\.label)]))
    #expect(pins.map { $0.state?.name } == ["s1", "s2", "s3"])
    context.insert(StateV2.Area(name: "s0"))
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<StateV2.Area>()) == 4)
    #expect(try context.fetchCount(FetchDescriptor<StateV2.State>()) == 3)
  }

  @Test(
    "properties of two classes that would become one of a common superclass need a stage with code")
  func joinedProperties() throws {
    func entity(_ name: String, below: String?, _ attributes: [String]) -> Schema.Entity {
      var entity = Schema.Entity(name: name, superentityName: below)
      entity.attributes = attributes.map { Schema.Attribute(name: $0, type: .string) }
      return entity
    }
    let before = Schema(
      entities: [
        entity("Place", below: nil, []), entity("State", below: "Place", ["motto", "name"]),
        entity("Town", below: "Place", ["name"]),
      ], version: Schema.Version(1, 0, 0))
    let after = Schema(
      entities: [
        entity("Place", below: nil, ["motto"]), entity("Area", below: "Place", ["name"]),
        entity("State", below: "Area", []), entity("Town", below: "Area", []),
      ], version: Schema.Version(2, 0, 0))
    let changes = SchemaDifference(from: before, to: after).changes
    #expect(
      changes.compactMap(\.reasonForCustomStage) == [
        "State.name and Town.name have separate columns, and Area has one for both",
        "Place.motto is required, and existing rows have no value for it",
        "Town.motto is required, and existing rows have no value for it",
      ])
    #expect(!changes.contains { $0.sentence.hasPrefix("removes") })
  }

  @Test(
    "classes that both have rows cannot come below one another, as with Core Data: the stage to write is shown"
  )
  func joinedHierarchies() throws {
    let error = #expect(throws: InstarError.self) {
      try PlanDefinition(JoinPlan.self).migration(from: StateV2.versionIdentifier)
    }
    #expect(error?.code == .needsCustomStage)
    #expect(
      error?.cause.contains("rows of Pin and Area would share one table and its keys") == true,
      "\(error as Any)")
    #expect(error?.next?.contains(".custom(fromVersion: StateV2.self") == true)
  }

  @Test(
    "a required property moves up if no row inherits it without a value",
    arguments: [(articles: 0, refused: ""), (articles: 2, refused: "2 rows of Article")])
  func movedUp(articles: Int, refused: String) throws {
    let old = try open(PressV1.self)
    let filling = ModelContext(old)
    filling.insert(PressV1.Review(name: "review", stars: 4))
    for number in 0..<articles { filling.insert(PressV1.Article(name: "article \(number)")) }
    try filling.save()
    try old.close()

    let definition = try PlanDefinition(PressPlan.self)
    let start = PressV1.versionIdentifier
    let notes = try definition.migration(from: start).notes
    #expect(
      notes.contains {
        $0.contains("runs only if Article has no rows of its own: Article.stars is required")
      }, "\(notes)")
    let connection = try StoreConnection(path: path, durability: .clone)
    func migrate() throws {
      try StageExecutor.run(
        [StageExecutor.Clone(connection: connection, path: definition.path(from: start)) { _ in }],
        plan: definition.name)
    }
    guard refused.isEmpty else {
      let error = try #require(#expect(throws: InstarError.self) { try migrate() })
      #expect(error.code == .needsCustomStage)
      #expect(error.cause.contains("Article.stars is required"), "\(error)")
      #expect(error.cause.contains(refused), "\(error)")
      return try connection.close()
    }
    try migrate()
    try connection.close()
    let context = ModelContext(try open(PressV2.self))
    #expect(try context.fetch(FetchDescriptor<PressV2.Article>()).map(\.stars) == [4])
  }
}

/// A required property of a class moves to its superclass.
private enum PressPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [PressV1.self, PressV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: PressV1.self, toVersion: PressV2.self)]
  }
}

private enum PressV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Article.self, Review.self] }

  @Model class Article {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Review: Article {
    var stars: Int
    init(name: String, stars: Int) {
      self.stars = stars
      super.init(name: name)
    }
  }
}

private enum PressV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Article.self, Review.self] }

  @Model class Article {
    var name: String
    var stars: Int
    init(name: String, stars: Int) {
      self.name = name
      self.stars = stars
    }
  }

  @Model final class Review: Article {
    override init(name: String, stars: Int) { super.init(name: name, stars: stars) }
  }
}

/// A class gets a superclass that is new.
private enum StatePlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [StateV1.self, StateV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: StateV1.self, toVersion: StateV2.self)]
  }
}

/// Two classes that were apart come into one hierarchy.
private enum JoinPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [StateV2.self, StateV3.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: StateV2.self, toVersion: StateV3.self)]
  }
}

private enum StateV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [State.self, Pin.self] }

  @Model final class State {
    var name: String
    var capital: String
    init(name: String, capital: String) {
      self.name = name
      self.capital = capital
    }
  }

  @Model final class Pin {
    var label: String
    var state: State?
    init(label: String, state: State?) {
      self.label = label
      self.state = state
    }
  }
}

private enum StateV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Area.self, State.self, Pin.self] }

  @Model class Area {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class State: Area {
    var capital: String
    init(name: String, capital: String) {
      self.capital = capital
      super.init(name: name)
    }
  }

  @Model final class Pin {
    var label: String
    var state: State?
    init(label: String, state: State?) {
      self.label = label
      self.state = state
    }
  }
}

private enum StateV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Area.self, State.self, Pin.self] }

  @Model class Area {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class State: Area {
    var capital: String
    init(name: String, capital: String) {
      self.capital = capital
      super.init(name: name)
    }
  }

  @Model final class Pin: Area {
    var label: String
    var state: State?
    init(label: String, state: State?) {
      self.label = label
      self.state = state
      super.init(name: label)
    }
  }
}

/// 1.0.0 → 2.0.0 lightweight: Region gets a subclass. 2.0.0 → 3.0.0 custom: a property of the subclass is renamed,
/// one added to it, and an entity comes whose name sorts before all others, so that every entity gets another number.
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
