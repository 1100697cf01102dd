import Instar
import InstarTestSupport
import Synchronization
import Testing

/// Plans name the latest classes (`typealias Sample = SamplesV3.Sample`), also in stages between earlier versions.
@Suite("Classes of a later version in a stage", .serialized)
struct OtherVersionTests {
  typealias Sample = SamplesV3.Sample
  typealias Box = SamplesV3.Box

  private let folder: TemporaryFolder
  private let configuration: ModelConfiguration

  init() throws {
    folder = try TemporaryFolder()
    configuration = ModelConfiguration(url: URL(filePath: folder.path("a.store")))
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
    let container = try ModelContainer(
      for: Schema(versionedSchema: SamplesV1.self), configurations: configuration)
    let context = ModelContext(container)
    let box = SamplesV1.Box(name: "north")
    for (number, label) in ["b", "a"].enumerated() {
      let sample = SamplesV1.Sample(label: label, weight: number + 1)
      context.insert(sample)
      sample.box = box
    }
    try context.save()
    try container.close()
  }

  private enum Plan: SchemaMigrationPlan {
    static let didMigrate = Mutex<@Sendable (ModelContext) throws -> Void>({ _ in })

    static var schemas: [any VersionedSchema.Type] {
      [SamplesV1.self, SamplesV2.self, SamplesV3.self]
    }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: SamplesV1.self, toVersion: SamplesV2.self, willMigrate: nil,
          didMigrate: didMigrate.withLock { $0 }),
        .lightweight(fromVersion: SamplesV2.self, toVersion: SamplesV3.self),
      ]
    }
  }

  /// Migrates the store with that code in the stage from 1 to 2.
  private func migrate(
    _ didMigrate: @escaping @Sendable (ModelContext) throws -> Void
  ) throws -> ModelContext {
    Plan.didMigrate.withLock { $0 = didMigrate }
    return ModelContext(
      try ModelContainer(
        for: Schema(versionedSchema: SamplesV3.self), migrationPlan: Plan.self,
        configurations: configuration))
  }

  private func failure(
    _ didMigrate: @escaping @Sendable (ModelContext) throws -> Void
  ) throws -> InstarError {
    let error = #expect(throws: SwiftDataError.self) { _ = try migrate(didMigrate) }
    let cause = try #require(error?.cause)
    #expect(cause.state == "unchanged")
    return cause
  }

  @Test(
    "classes of a later version read and change the rows of their entities, and the related ones")
  func fetched() throws {
    let context = try migrate { context in
      let samples = try context.fetch(
        FetchDescriptor<Sample>(
          predicate: #Predicate { $0.weight > 0 }, sortBy: [SortDescriptor(\.label)]))
      #expect(samples.map(\.label) == ["a", "b"])
      #expect(samples.map(\.checked) == [true, true])
      for sample in samples {
        sample.note = "\(sample.box?.name ?? "-") \(sample.box?.samples.count ?? 0)"
      }
      context.insert(Sample(label: "c", weight: 3))
      context.insert(Box(name: "south"))
    }
    let samples = try context.fetch(FetchDescriptor<Sample>(sortBy: [SortDescriptor(\.label)]))
    #expect(samples.map(\.note) == ["north 2", "north 2", ""])
    #expect(samples.map(\.weight) == [2, 1, 3])
    #expect(try context.fetchCount(FetchDescriptor<Box>()) == 2)
  }

  @Test("the stage's own rules for unique values hold, not those of the later version")
  func unique() throws {
    let context = try migrate { context in
      context.insert(Sample(label: "b", weight: 9))
      try context.save()
      let count = try context.fetchCount(FetchDescriptor<Sample>())
      #expect(count == 3)
      for sample in try context.fetch(FetchDescriptor<Sample>()) where sample.weight == 9 {
        context.delete(sample)
      }
    }
    #expect(try context.fetchCount(FetchDescriptor<Sample>()) == 2)
  }

  @Test("a value of a property that the version does not have is refused, and nothing is lost")
  func missingProperty() throws {
    for change: @Sendable (ModelContext) throws -> Void in [
      { for sample in try $0.fetch(FetchDescriptor<Sample>()) { sample.checked = false } },
      {
        let sample = Sample(label: "c", weight: 3)
        sample.checked = false
        $0.insert(sample)
      },
    ] {
      let cause = try failure(change)
      #expect(
        cause.cause.contains("'checked' has a value, but the Sample of 2.0.0 has no 'checked'"),
        "\(cause)")
    }
  }

  @Test(
    "a class of a later version whose property has another type is refused with the name of the property"
  )
  func unfitting() throws {
    let cause = try failure { _ = try $0.fetch(FetchDescriptor<SamplesV4.Sample>()) }
    #expect(cause.code == .modelNotInSchema)
    #expect(
      cause.cause.contains(
        "whose Sample is SamplesV2.Sample, not SamplesV4.Sample; SamplesV4.Sample cannot replace SamplesV2.Sample: 'weight' has another type"
      ), "\(cause)")
  }

  @Test("asking for a model in memory by the class of the stage's other version fails the stage")
  func registered() throws {
    let cause = try failure { context in
      let samples = try context.fetch(FetchDescriptor<SamplesV2.Sample>())
      for sample in samples {
        let other: SamplesV1.Sample? = context.registeredModel(for: sample.persistentModelID)
        #expect(other == nil)
      }
    }
    #expect(cause.code == .modelNotInSchema)
    #expect(cause.cause.contains("SamplesV1.Sample"), "\(cause)")
  }

  @Test("a row is not an object of two classes")
  func twoClasses() throws {
    let cause = try failure { context in
      let own = try context.fetch(FetchDescriptor<SamplesV2.Sample>())
      try withExtendedLifetime(own) { _ = try context.fetch(FetchDescriptor<Sample>()) }
    }
    #expect(cause.cause.contains("already has models of SamplesV2.Sample"), "\(cause)")
    _ = try migrate { context in
      let counts = [
        try context.fetch(FetchDescriptor<SamplesV2.Sample>()).count,
        try context.fetch(FetchDescriptor<Sample>()).count,
        try context.fetch(FetchDescriptor<SamplesV2.Sample>()).count,
      ]
      #expect(counts == [2, 2, 2])
    }
  }
}

enum SamplesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Sample.self, Box.self] }

  @Model final class Sample {
    var label: String
    var weight: Int
    var box: Box?
    init(label: String, weight: Int) { (self.label, self.weight) = (label, weight) }
  }

  @Model final class Box {
    var name: String
    @Relationship(inverse: \Sample.box) var samples: [Sample] = []
    init(name: String) { self.name = name }
  }
}

enum SamplesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Sample.self, Box.self] }

  @Model final class Sample {
    var label: String
    var weight: Int
    var note: String = ""
    var box: Box?
    init(label: String, weight: Int) { (self.label, self.weight) = (label, weight) }
  }

  @Model final class Box {
    var name: String
    @Relationship(inverse: \Sample.box) var samples: [Sample] = []
    init(name: String) { self.name = name }
  }
}

enum SamplesV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Sample.self, Box.self, Owner.self] }

  @Model final class Sample {
    @Attribute(.unique) var label: String
    var weight: Int
    var note: String = ""
    var checked: Bool = true
    var box: Box?
    var owner: Owner?
    init(label: String, weight: Int) { (self.label, self.weight) = (label, weight) }
  }

  @Model final class Box {
    var name: String
    @Relationship(inverse: \Sample.box) var samples: [Sample] = []
    init(name: String) { self.name = name }
  }

  @Model final class Owner {
    var name: String
    @Relationship(inverse: \Sample.owner) var samples: [Sample] = []
    init(name: String) { self.name = name }
  }
}

/// Not a version of the plan.
enum SamplesV4 {
  @Model final class Sample {
    var label: String
    var weight: String
    init(label: String, weight: String) { (self.label, self.weight) = (label, weight) }
  }
}
