import Instar
import InstarEngine
import InstarWire
import Testing

/// Whole runs of an app's container: the keeper counts, the change of schema carries values over.
@Suite("Values of a property whose type changes", .serialized)
struct ConvertedValuesTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  /// Three tags with values of each kind.
  private func make(_ format: StoreFormat, flavors: Data? = Data(#"["sweet"]"#.utf8)) throws {
    if format == .plain {
      return try store.makeTables(
        """
        CREATE TABLE tag (id INTEGER PRIMARY KEY, text TEXT, number INTEGER);
        INSERT INTO tag VALUES (1, '1', 1), (2, '2', 2), (3, NULL, 3)
        """)
    }
    try store.make(
      TagsV1.self,
      (1...3).map { number in
        TagsV1.Tag(
          text: number < 3 ? "\(number)" : nil, number: number,
          compiled: TagsV1.Compiled(name: "\(number)", flavors: flavors))
      })
  }

  @Test(
    "a run never drops unconverted values silently: it is refused, and the store is as it was",
    arguments: [StoreFormat.coredata, .plain])
  func refused(format: StoreFormat) throws {
    try make(format)
    let error =
      format == .plain
      ? try store.refusal(RowTagsV2.self, RowPlan<Silent>.self)
      : try store.refusal(TagsV2.self, Plan<Silent>.self)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 2 non-null values of Tag.text"), "\(error)")
    #expect(error.cause.contains("from String to Int"))
    #expect(
      error.next?.contains("instarctl migrate --plugin FILE.so --accept-loss '\(store.path)'")
        == true)
    #expect(error.state == "unchanged")
    #expect(try store.lastReport?.result == .refused)
  }

  @Test(
    "values may be dropped where the plan says so, and the report says how many",
    arguments: [StoreFormat.coredata, .plain])
  func accepted(format: StoreFormat) throws {
    try make(format)
    if format == .plain {
      try store.open(RowTagsV2.self, RowPlan<Accepting>.self).close()
    } else {
      try store.open(TagsV2.self, Plan<Accepting>.self).close()
    }
    #expect(try store.lastReport?.notes.contains("drops 2 non-null values of Tag.text") == true)
  }

  @Test(
    "the plan's code writes the values that do not convert",
    arguments: [StoreFormat.coredata, .plain])
  func written(format: StoreFormat) throws {
    try make(format)
    let texts: [Int?]
    if format == .plain {
      let context = ModelContext(try store.open(RowTagsV2.self, RowPlan<Writing>.self))
      texts = try context.fetch(FetchDescriptor<RowTagsV2.Tag>(sortBy: [SortDescriptor(\.number)]))
        .map(\.text)
    } else {
      let context = ModelContext(try store.open(TagsV2.self, Plan<Writing>.self))
      texts = try context.fetch(FetchDescriptor<TagsV2.Tag>(sortBy: [SortDescriptor(\.number)]))
        .map(\.text)
    }
    #expect(texts == [10, 20, 30])
    #expect(try store.lastReport?.notes.contains { $0.contains("Tag.text") } == false)
  }

  @Test(
    "values are carried over to numbers of another kind", arguments: [StoreFormat.coredata, .plain])
  func numbers(format: StoreFormat) throws {
    try make(format)
    let numbers: [Double]
    if format == .plain {
      let context = ModelContext(try store.open(RowTagsV2.self, RowPlan<Accepting>.self))
      numbers = try context.fetch(FetchDescriptor<RowTagsV2.Tag>()).map(\.number)
    } else {
      let context = ModelContext(try store.open(TagsV2.self, Plan<Accepting>.self))
      numbers = try context.fetch(FetchDescriptor<TagsV2.Tag>()).map(\.number)
    }
    #expect(numbers.sorted() == [1, 2, 3])
  }

  @Test("values are carried over where the new type decodes them, in a field of a composite too")
  func decoded() throws {
    try make(.coredata)
    let context = ModelContext(try store.open(TagsV2.self, Plan<Accepting>.self))
    let tags = try context.fetch(FetchDescriptor<TagsV2.Tag>())
    #expect(tags.map(\.compiled.flavors) == Array(repeating: ["sweet"], count: 3))
  }

  @Test("keyed archives are carried over")
  func archived() throws {
    let archive = try NSKeyedArchiver.archivedData(
      withRootObject: ["sweet", "sour"] as NSArray, requiringSecureCoding: true)
    try make(.coredata, flavors: archive)
    let context = ModelContext(try store.open(TagsV2.self, Plan<Accepting>.self))
    let tags = try context.fetch(FetchDescriptor<TagsV2.Tag>())
    #expect(tags.map(\.compiled.flavors) == Array(repeating: ["sweet", "sour"], count: 3))
  }

  @Test("values that the new type does not decode are refused")
  func undecodable() throws {
    try make(.coredata, flavors: Data("no JSON".utf8))
    let error = try store.refusal(TagsV2.self, Plan<Accepting>.self)
    #expect(error.code == .unacceptedLoss)
    #expect(
      error.cause.contains("drops 3 non-null values of Tag.compiled.flavors"), "\(error)")
  }

  @Test(
    "values that no conversion keeps make the planned change destructive",
    arguments: [StoreFormat.coredata, .plain])
  func classes(format: StoreFormat) throws {
    let plan = try PlanDefinition(
      format == .plain ? RowPlan<Silent>.self : Plan<Silent>.self as any SchemaMigrationPlan.Type)
    let planned = try plan.migration(from: Schema.Version(1, 0, 0)).stages[0].planned
    func kind(_ path: String) -> ChangeKind? {
      planned.first { $0.reason.hasPrefix("changes the type of Tag.\(path) ") }?.kind
    }
    #expect(kind("text") == .destructive)
    #expect(kind("number") == .conversion)
    if format == .coredata { #expect(kind("compiled.flavors") == .conversion) }
  }

  // MARK: Plans

  /// What the stage does about the texts.
  protocol Manner: SendableMetatype {
    static var losses: [String] { get }
    static var writes: Bool { get }
  }

  enum Silent: Manner {
    static var losses: [String] { [] }
    static var writes: Bool { false }
  }

  enum Accepting: Manner {
    static var losses: [String] { ["Tag.text"] }
    static var writes: Bool { false }
  }

  enum Writing: Manner {
    static var losses: [String] { [] }
    static var writes: Bool { true }
  }

  enum Plan<How: Manner>: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [TagsV1.self, TagsV2.self] }
    static var acceptedLosses: [String] { How.losses }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: TagsV1.self, toVersion: TagsV2.self, willMigrate: nil,
          didMigrate: { context in
            guard How.writes else { return }
            for tag in try context.fetch(FetchDescriptor<TagsV2.Tag>()) {
              tag.text = Int(tag.number) * 10
            }
          })
      ]
    }
  }

  enum RowPlan<How: Manner>: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [RowTagsV1.self, RowTagsV2.self] }
    static var acceptedLosses: [String] { How.losses }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: RowTagsV1.self, toVersion: RowTagsV2.self, willMigrate: nil,
          didMigrate: { context in
            guard How.writes else { return }
            for tag in try context.fetch(FetchDescriptor<RowTagsV2.Tag>()) {
              tag.text = Int(tag.number) * 10
            }
          })
      ]
    }
  }

  // MARK: Models

  enum TagsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Tag.self] }

    struct Compiled: Codable {
      var name: String
      var flavors: Data?
    }

    @Model
    final class Tag {
      var text: String?
      var number: Int
      var compiled: Compiled
      init(text: String?, number: Int, compiled: Compiled) {
        (self.text, self.number, self.compiled) = (text, number, compiled)
      }
    }
  }

  enum TagsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Tag.self] }

    struct Compiled: Codable {
      var name: String
      var flavors: [String]?
    }

    @Model
    final class Tag {
      var text: Int?
      var number: Double
      var compiled: Compiled
      init(text: Int?, number: Double, compiled: Compiled) {
        (self.text, self.number, self.compiled) = (text, number, compiled)
      }
    }
  }

  enum RowTagsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Tag.self] }

    @Table("tag")
    @Model
    final class Tag {
      @Column(.primaryKey) var id: Int
      var text: String?
      var number: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum RowTagsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Tag.self] }

    @Table("tag")
    @Model
    final class Tag {
      @Column(.primaryKey) var id: Int
      var text: Int?
      var number: Double = -1
      init(id: Int) { self.id = id }
    }
  }
}
