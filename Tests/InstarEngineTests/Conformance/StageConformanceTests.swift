import Instar
import InstarEngine
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

/// What the closures of a stage see and what becomes of their changes, and which plans are refused, in whole runs.
@Suite("API page: the semantics of stages", .serialized)
struct StageConformanceTests {
  typealias OldPlace = PlacesV1.Place
  typealias NewPlace = PlacesV2.Place

  private let folder: TemporaryFolder
  private let configuration: ModelConfiguration

  init() throws {
    folder = try TemporaryFolder()
    configuration = ModelConfiguration(url: URL(filePath: folder.path("a.store")))
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
    let container = try ModelContainer(
      for: Schema(versionedSchema: PlacesV1.self), configurations: configuration)
    let context = ModelContext(container)
    for name in ["a", "b"] {
      let place = OldPlace(name: name)
      place.visits = [PlacesV1.Visit(day: 1), PlacesV1.Visit(day: 2)]
      context.insert(place)
    }
    try context.save()
    try container.close()
  }

  private var bytes: Data {
    get throws { try Data(contentsOf: configuration.url) }
  }

  // MARK: Closures

  /// What the stage of `Scripted` does; a plan's members are static.
  private struct Script {
    var willMigrate: @Sendable (ModelContext) throws -> Void = { _ in }
    var didMigrate: @Sendable (ModelContext) throws -> Void = { _ in }
  }

  private enum Scripted: SchemaMigrationPlan {
    static let script = Mutex(Script())

    static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
    static var stages: [MigrationStage] {
      let script = script.withLock { $0 }
      return [
        .custom(
          fromVersion: PlacesV1.self, toVersion: PlacesV2.self, willMigrate: script.willMigrate,
          didMigrate: script.didMigrate)
      ]
    }
  }

  private func run(
    willMigrate: @escaping @Sendable (ModelContext) throws -> Void = { _ in },
    didMigrate: @escaping @Sendable (ModelContext) throws -> Void = { _ in }
  ) throws -> ModelContext {
    Scripted.script.withLock {
      $0 = Script(willMigrate: willMigrate, didMigrate: didMigrate)
    }
    return ModelContext(
      try ModelContainer(
        for: Schema(versionedSchema: PlacesV2.self), migrationPlan: Scripted.self,
        configurations: configuration))
  }

  /// The cause of a failed run, which leaves the store as it was.
  private func failure(
    _ closure: String, _ body: @escaping @Sendable (ModelContext) throws -> Void
  ) throws -> InstarError {
    let before = try bytes
    let error = #expect(throws: SwiftDataError.self) {
      if closure == "willMigrate" {
        _ = try run(willMigrate: body)
      } else {
        _ = try run(didMigrate: body)
      }
    }
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    #expect(try bytes == before)
    let cause = try #require(error?.cause)
    #expect(cause.stage == "1.0.0 → 2.0.0 (1 of 1), \(closure)")
    #expect(cause.state == "unchanged")
    return cause
  }

  @Test("willMigrate sees the old models and didMigrate the new ones, with the same identities")
  func closures() throws {
    let context = try run { context in
      #expect(try context.fetchCount(FetchDescriptor<OldPlace>()) == 2)
      for place in try context.fetch(FetchDescriptor<OldPlace>()) { place.name += "!" }
    } didMigrate: { context in
      for place in try context.fetch(FetchDescriptor<NewPlace>()) {
        place.note = "\(place.name) \(place.visits.count)"
      }
    }
    let places = try context.fetch(FetchDescriptor<NewPlace>(sortBy: [SortDescriptor(\.name)]))
    #expect(places.map(\.note) == ["a! 2", "b! 2"])
  }

  /// Each way to use a model of the new version where the store is at the old one.
  private static let misuses: [(String, @Sendable (ModelContext) throws -> Void)] = [
    ("fetch", { _ = try $0.fetch(FetchDescriptor<NewPlace>()) }),
    ("fetch", { _ = try $0.fetch(FetchDescriptor<NewPlace>(), batchSize: 10) }),
    ("fetch", { _ = try $0.fetchIdentifiers(FetchDescriptor<NewPlace>()) }),
    ("fetch", { try $0.enumerate(FetchDescriptor<NewPlace>()) { _ in } }),
    ("count", { _ = try $0.fetchCount(FetchDescriptor<NewPlace>()) }),
    ("delete", { try $0.delete(model: NewPlace.self) }),
    ("save", { $0.insert(NewPlace(name: "new")) }),
  ]

  @Test("a new model in willMigrate throws the named error, however it is used")
  func newModelInWillMigrate() throws {
    for (verb, misuse) in Self.misuses {
      let cause = try failure("willMigrate", misuse)
      #expect(cause.code == .modelNotInSchema)
      #expect(
        cause.cause.contains(
          "cannot \(verb) PlacesV2.Place in willMigrate: the store is at 1.0.0"),
        "\(cause)")
      let next = try #require(cause.next)
      #expect(verb != "save" || next.contains("insert models of the new version in didMigrate"))
    }
  }

  @Test("an old model in didMigrate throws the named error")
  func oldModelInDidMigrate() throws {
    let fetched = try failure("didMigrate") { _ = try $0.fetch(FetchDescriptor<OldPlace>()) }
    #expect(fetched.code == .modelNotInSchema)
    #expect(
      fetched.cause.contains(
        "the store is at 2.0.0, whose Place is PlacesV2.Place, not PlacesV1.Place"))
    let saved = try failure("didMigrate") { $0.insert(OldPlace(name: "old")) }
    #expect(saved.cause.contains("cannot save PlacesV1.Place in didMigrate"))
  }

  @Test("an object of willMigrate that is kept for didMigrate is readable, and changes nothing")
  func keptObject() throws {
    nonisolated(unsafe) var kept: [OldPlace] = []
    let context = try run { context in
      kept = try context.fetch(FetchDescriptor<OldPlace>(sortBy: [SortDescriptor(\.name)]))
      _ = kept.map(\.name)
    } didMigrate: { context in
      #expect(kept.map(\.name) == ["a", "b"])
      kept[0].name = "changed"
      #expect(!context.hasChanges)
    }
    #expect(
      try context.fetch(FetchDescriptor<NewPlace>(sortBy: [SortDescriptor(\.name)])).map(\.name)
        == ["a", "b"])
  }

  @Test("pending changes are saved when a closure returns: inserted, changed and deleted models")
  func pendingChanges() throws {
    let context = try run { context in
      let places = try context.fetch(FetchDescriptor<OldPlace>(sortBy: [SortDescriptor(\.name)]))
      places[0].name = "changed"
      context.delete(places[1])
      context.insert(OldPlace(name: "inserted"))
    } didMigrate: { context in
      let count = try context.fetchCount(FetchDescriptor<NewPlace>())
      #expect(count == 2)
      context.insert(NewPlace(name: "new"))
    }
    #expect(
      try context.fetch(FetchDescriptor<NewPlace>(sortBy: [SortDescriptor(\.name)])).map(\.name)
        == ["changed", "inserted", "new"])
    #expect(try context.fetchCount(FetchDescriptor<PlacesV2.Visit>()) == 2)
  }

  private struct Refusal: Error, CustomStringConvertible {
    var description: String { "no, thanks" }
  }

  @Test(
    "when a closure throws, its changes are discarded, and with them what was saved before",
    arguments: ["willMigrate", "didMigrate"])
  func throwing(closure: String) throws {
    let cause = try failure(closure) { context in
      if closure == "willMigrate" {
        context.insert(OldPlace(name: "saved"))
        try context.save()
        context.insert(OldPlace(name: "pending"))
      } else {
        context.insert(NewPlace(name: "saved"))
        try context.save()
        context.insert(NewPlace(name: "pending"))
      }
      throw Refusal()
    }
    #expect(cause.code == .stageFailed && cause.cause == "\(closure) threw: no, thanks")
    #expect(cause.next?.isEmpty == false)
    let context = try run()
    #expect(try context.fetchCount(FetchDescriptor<NewPlace>()) == 2)
  }

  @Test("changes that cannot be saved when a closure returns fail the run, and the model is named")
  func unsavable() throws {
    let cause = try failure("didMigrate") { context in
      let owner = try ModelContainer(
        for: Schema(versionedSchema: PlacesV2.self),
        configurations: ModelConfiguration(isStoredInMemoryOnly: true))
      let other = ModelContext(owner)
      let place = NewPlace(name: "of another context")
      other.insert(place)
      context.insert(place)
    }
    #expect(cause.cause.contains("cannot insert a Place"))
  }

  // MARK: Plans

  @Test("stages given in any order run in the order of their versions")
  func anyOrder() throws {
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
    let container = try ModelContainer(
      for: Schema(versionedSchema: Places3.self), migrationPlan: Backwards.self,
      configurations: configuration)
    let places = try ModelContext(container).fetch(
      FetchDescriptor<Places3.Place>(sortBy: [SortDescriptor(\.name)]))
    #expect(places.map(\.note) == ["first, second", "first, second"])
  }

  enum Places3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Place.self, Visit.self] }

    @Model
    final class Place {
      var name: String
      var note: String?
      var rank: Int = 0
      @Relationship(deleteRule: .cascade, inverse: \Visit.place) var visits: [Visit] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Visit {
      var day: Int
      var place: Place?
      init(day: Int) { self.day = day }
    }
  }

  private enum Backwards: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [Places3.self, PlacesV1.self, PlacesV2.self]
    }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: PlacesV2.self, toVersion: Places3.self,
          willMigrate: { context in
            for place in try context.fetch(FetchDescriptor<NewPlace>()) {
              place.note = (place.note ?? "") + ", second"
            }
          }, didMigrate: nil),
        .custom(
          fromVersion: PlacesV1.self, toVersion: PlacesV2.self, willMigrate: nil,
          didMigrate: { context in
            for place in try context.fetch(FetchDescriptor<NewPlace>()) { place.note = "first" }
          }),
      ]
    }
  }

  /// The cause of a refusal, before which nothing was touched: no folder, no file, no byte.
  private func refusal(
    _ plan: any SchemaMigrationPlan.Type, _ version: any VersionedSchema.Type = PlacesV2.self
  ) throws -> InstarError {
    let before = try folder.contents()
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: version), migrationPlan: plan, configurations: configuration)
    }
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    #expect(try folder.contents() == before)
    let cause = try #require(error?.cause)
    #expect(cause.what.contains("\(plan)") && cause.state == "unchanged")
    return cause
  }

  @Test("a missing stage is a lightweight one where that is possible, and the manifest says so")
  func missingStage() throws {
    let plan = try PlanDefinition(Gap.self)
    #expect(plan.manifest.stages.map(\.isImplicit) == [true])
    let note = "the plan has no stage from 1.0.0 to 2.0.0; Instar adds a lightweight stage"
    #expect(plan.manifest.notes == [note])
    #expect(try plan.migration(from: Schema.Version(1, 0, 0)).notes == [note])
    let container = try ModelContainer(
      for: Schema(versionedSchema: PlacesV2.self), migrationPlan: Gap.self,
      configurations: configuration)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<NewPlace>()) == 2)
  }

  private enum Gap: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
    static var stages: [MigrationStage] { [] }
  }

  @Test("a fork is reported, with the version that two stages start at")
  func fork() throws {
    let cause = try refusal(Fork.self, Places3.self)
    #expect(cause.code == .invalidPlan && cause.cause == "two stages start at 1.0.0")
    #expect(cause.next == "remove one of them: each version may have one stage that starts at it")
  }

  private enum Fork: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [PlacesV1.self, PlacesV2.self, Places3.self]
    }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: PlacesV1.self, toVersion: PlacesV2.self),
        .lightweight(fromVersion: PlacesV1.self, toVersion: Places3.self),
      ]
    }
  }

  @Test("a cycle is reported, with the versions on it")
  func cycle() throws {
    let cause = try refusal(Cycle.self)
    #expect(cause.code == .invalidPlan)
    #expect(cause.cause == "the stages form a cycle: 2.0.0 → 1.0.0 → 2.0.0")
  }

  @Test("a stage from a version to itself is ignored, and noted")
  func stageToItself() throws {
    let manifest = try PlanDefinition(Loop.self).manifest
    #expect(manifest.stages.map(\.from.description) == ["1.0.0"])
    #expect(manifest.notes.first?.hasPrefix("the stage from 2.0.0 to itself is ignored") == true)
    let container = try ModelContainer(
      for: Schema(versionedSchema: PlacesV2.self), migrationPlan: Loop.self,
      configurations: configuration)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<NewPlace>()) == 2)
  }

  private enum Cycle: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: PlacesV1.self, toVersion: PlacesV2.self),
        .lightweight(fromVersion: PlacesV2.self, toVersion: PlacesV1.self),
      ]
    }
  }

  private enum Loop: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: PlacesV1.self, toVersion: PlacesV2.self),
        .lightweight(fromVersion: PlacesV2.self, toVersion: PlacesV2.self),
      ]
    }
  }

  @Test("two schemas of one version are reported, with both their names")
  func duplicateVersions() throws {
    let cause = try refusal(Twins.self)
    #expect(cause.code == .invalidPlan)
    #expect(cause.cause == "the schemas PlacesV2 and SecondTwin have the same version, 2.0.0")
    #expect(
      cause.next
        == "give the one that no store has yet another version, such as: "
        + "static let versionIdentifier = Schema.Version(3, 0, 0)")
  }

  private enum SecondTwin: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { PlacesV2.models }
  }

  private enum Twins: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [PlacesV1.self, PlacesV2.self, SecondTwin.self]
    }
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: PlacesV1.self, toVersion: PlacesV2.self)]
    }
  }

  @Test("a stage of a version that is not among the schemas is reported")
  func unknownVersion() throws {
    let cause = try refusal(Stranger.self)
    #expect(cause.code == .invalidPlan)
    #expect(cause.cause.contains("names version 3.0.0, which is not in `schemas`"))
    #expect(cause.next == "add the schema of 3.0.0 to `schemas`")
  }

  private enum Stranger: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: PlacesV1.self, toVersion: Places3.self)]
    }
  }

  @Test("a version that lists root models only has its other models marked in the manifest")
  func unlistedModels() throws {
    let plan = try PlanDefinition(Incomplete.self)
    #expect(plan.manifest.versions.map(\.unlistedModels) == [["Visit"], [], []])
  }

  private enum Partial: VersionedSchema {
    static let versionIdentifier = Schema.Version(0, 9, 0)
    static var models: [any PersistentModel.Type] { [OldPlace.self] }
  }

  private enum Incomplete: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [Partial.self, PlacesV1.self, PlacesV2.self]
    }
    static var stages: [MigrationStage] { PlacesPlan.stages }
  }

  @Test("a plan without schemas is reported")
  func noSchemas() throws {
    #expect(try refusal(Empty.self).cause == "the plan has no schemas")
  }

  private enum Empty: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [] }
    static var stages: [MigrationStage] { [] }
  }
}
