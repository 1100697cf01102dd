import Instar
import InstarTestSupport
import Testing

@Suite("API page: container and configuration", .serialized)
struct ContainerConformanceTests {
  typealias Place = PlacesV2.Place
  typealias Visit = PlacesV2.Visit

  private let folder: TemporaryFolder
  private let schema = Schema(versionedSchema: PlacesV2.self)
  private var file: ModelConfiguration {
    ModelConfiguration(url: URL(filePath: folder.path("a.store")))
  }

  init() throws {
    folder = try TemporaryFolder()
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
  }

  private func add(_ name: String, to container: ModelContainer) throws {
    let context = ModelContext(container)
    let place = Place(name: name)
    place.visits = [Visit(day: 1)]
    context.insert(place)
    try context.save()
  }

  private func names(_ container: ModelContainer) throws -> [String] {
    try ModelContext(container).fetch(FetchDescriptor<Place>(sortBy: [SortDescriptor(\.name)]))
      .map(\.name)
  }

  // MARK: The container

  @Test(
    "a container is created from a schema, with configurations one by one, in an array, and with a plan"
  )
  func schemaForms() throws {
    let one = try ModelContainer(for: schema, configurations: file)
    try add("one", to: one)
    let two = try ModelContainer(for: schema, configurations: [file])
    let three = try ModelContainer(
      for: schema, migrationPlan: PlacesPlan.self, configurations: file)
    let four = try ModelContainer(
      for: schema, migrationPlan: PlacesPlan.self, configurations: [file])
    for container in [one, two, three, four] { #expect(try names(container) == ["one"]) }
  }

  @Test("a container is created from model types, with and without a plan")
  func typeForms() throws {
    let one = try ModelContainer(for: Place.self, Visit.self, configurations: file)
    try add("one", to: one)
    let two = try ModelContainer(
      for: Place.self, Visit.self, migrationPlan: PlacesPlan.self, configurations: file)
    #expect(try names(two) == ["one"])
    #expect(two.schema.version == Schema.Version(2, 0, 0))
  }

  @Test("a container has the schema and the configurations that it was created with")
  func members() throws {
    let configuration = file
    let container = try ModelContainer(for: schema, configurations: configuration)
    #expect(container.schema == schema && container.configurations == [configuration])
  }

  @Test("mainContext is one context of the main actor")
  @MainActor
  func mainContext() throws {
    let container = try ModelContainer(for: schema, configurations: file)
    container.mainContext.insert(Place(name: "main"))
    try container.mainContext.save()
    #expect(container.mainContext === container.mainContext)
    #expect(try names(container) == ["main"])
  }

  @Test("erase() and deleteAllData() leave an open, empty store")
  func erase() throws {
    let container = try ModelContainer(for: schema, configurations: file)
    try add("one", to: container)
    try container.erase()
    #expect(try names(container).isEmpty)
    try add("two", to: container)
    container.deleteAllData()
    #expect(try names(container).isEmpty)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Visit>()) == 0)
  }

  @Test("opening with a plan migrates the store, while an older container is alive")
  func migration() throws {
    let old = try ModelContainer(
      for: Schema(versionedSchema: PlacesV1.self), configurations: file)
    let context = ModelContext(old)
    context.insert(PlacesV1.Place(name: "kept"))
    try context.save()
    let new = try ModelContainer(
      for: schema, migrationPlan: PlacesPlan.self, configurations: file)
    #expect(try names(new) == ["kept"])
    #expect(!folder.names("state/backups").isEmpty)
    _ = old
  }

  // MARK: The configuration

  @Test(
    "a configuration of a file has the name, schema, url, allowsSave and cloudKitDatabase that were given"
  )
  func fileConfiguration() {
    let url = URL(filePath: folder.path("b.store"))
    let all = ModelConfiguration(
      "notes", schema: schema, url: url, allowsSave: false, cloudKitDatabase: .none)
    #expect(all.name == "notes" && all.schema == schema && all.url == url && !all.allowsSave)
    #expect(!all.isStoredInMemoryOnly && all.cloudKitDatabase == .none)
    let least = ModelConfiguration(url: url)
    #expect(least.url == url && least.allowsSave && least.schema == nil)
  }

  @Test("a configuration is in memory with each form of the initializer")
  func memoryConfigurations() throws {
    let configurations = [
      ModelConfiguration(isStoredInMemoryOnly: true),
      ModelConfiguration("named", isStoredInMemoryOnly: true),
      ModelConfiguration(schema: schema, isStoredInMemoryOnly: true, cloudKitDatabase: .none),
      ModelConfiguration(
        schema: schema, isStoredInMemoryOnly: true, allowsSave: true, groupContainer: .none,
        cloudKitDatabase: .automatic),
      ModelConfiguration(for: Place.self, Visit.self, isStoredInMemoryOnly: true),
    ]
    for (number, configuration) in configurations.enumerated() {
      let container = try ModelContainer(for: schema, configurations: configuration)
      try add("\(number)", to: container)
      #expect(try names(container) == ["\(number)"])
      #expect(configuration.isStoredInMemoryOnly)
    }
  }

  @Test("without a URL the store is in the user's data folder, which is made where it is missing")
  func defaultPlace() async throws {
    let home = folder.path("home/data")
    await #expect(processExitsWith: .success) { [home = home as String] in
      setenv("XDG_DATA_HOME", home, 1)
      for configuration in [nil, ModelConfiguration("notes")] {
        let container = try ModelContainer(
          for: Schema(versionedSchema: PlacesV2.self),
          configurations: configuration.map { [$0] } ?? [])
        let context = ModelContext(container)
        context.insert(Place(name: "here"))
        try context.save()
        try container.close()
      }
    }
    #expect(
      folder.names("home/data").filter { $0.hasSuffix(".store") }
        == ["default.store", "notes.store"])
  }

  @Test("what only Apple's platforms have is accepted, and each of it is said once")
  func notices() async throws {
    let result = await #expect(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      for _ in 0..<3 {
        _ = ModelConfiguration(
          isStoredInMemoryOnly: true, groupContainer: .identifier("group.notes"),
          cloudKitDatabase: .private("iCloud.notes"))
        _ = ModelConfiguration(isStoredInMemoryOnly: true, cloudKitDatabase: .private("iCloud.b"))
        _ = ModelConfiguration(isStoredInMemoryOnly: true, cloudKitDatabase: .automatic)
      }
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("Instar: ") }.map(String.init)
    #expect(
      lines == [
        "Instar: CloudKit is not available on Linux: Instar ignores 'iCloud.notes', and the store stays local",
        "Instar: app groups are not available on Linux: Instar ignores 'group.notes', and the store is in the user's data folder",
        "Instar: CloudKit is not available on Linux: Instar ignores 'iCloud.b', and the store stays local",
      ])
  }

  @Test("copies of a configuration share one identity, other configurations have their own")
  func identity() {
    let one = ModelConfiguration(isStoredInMemoryOnly: true)
    let copy = one
    let other = ModelConfiguration(isStoredInMemoryOnly: true)
    #expect(one == copy && one.id == copy.id && Set([one, copy, other]).count == 2)
    #expect(one != other && one.id != other.id)
  }

  @Test("a store in memory lives as long as a copy of its configuration, or a container of it")
  func lifeOfMemory() throws {
    var configuration: ModelConfiguration? = ModelConfiguration(isStoredInMemoryOnly: true)
    func open() throws -> ModelContainer {
      try ModelContainer(for: schema, configurations: try #require(configuration))
    }
    try add("a", to: open())
    #expect(try names(open()) == ["a"])
    let container = try open()
    configuration = nil
    #expect(try names(container) == ["a"])
    configuration = container.configurations.first
    #expect(try names(open()) == ["a"])
    configuration = ModelConfiguration(isStoredInMemoryOnly: true)
    #expect(try names(open()).isEmpty)
  }

  @Test("a test opens version 1, fills it, and opens version 2 with the plan on one configuration")
  func migrationInMemory() throws {
    let configuration = ModelConfiguration(isStoredInMemoryOnly: true)
    do {
      let old = try ModelContainer(
        for: Schema(versionedSchema: PlacesV1.self), configurations: configuration)
      let context = ModelContext(old)
      context.insert(PlacesV1.Place(name: "kept"))
      try context.save()
    }
    let container = try ModelContainer(
      for: schema, migrationPlan: PlacesPlan.self, configurations: configuration)
    #expect(try names(container) == ["kept"])
  }

  @Test("a configuration that does not allow saving opens the store for reading")
  func readOnly() throws {
    let container = try ModelContainer(for: schema, configurations: file)
    try add("one", to: container)
    try container.close()
    let url = file.url
    let reading = try ModelContainer(
      for: schema, configurations: ModelConfiguration(url: url, allowsSave: false))
    #expect(try names(reading) == ["one"])
    #expect(throws: (any Error).self) { try add("two", to: reading) }
    reading.deleteAllData()
    let error = #expect(throws: InstarError.self) { try names(reading) }
    #expect(error?.code == .unreadableStore)
    #expect(try names(reading) == ["one"])
  }
}
