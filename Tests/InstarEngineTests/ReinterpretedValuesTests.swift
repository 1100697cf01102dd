import Instar
import InstarChange
import InstarEngine
import InstarWire
import Testing

/// Whole runs of an app's container over versions whose properties have other Swift types, and the same stored ones.
@Suite("Values that another Swift type reads", .serialized)
struct ReinterpretedValuesTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private func makeTasks() throws {
    try store.make(
      FirstV1.self,
      [FirstV1.Kind.open, .closed, .open].enumerated().map { number, kind in
        FirstV1.Task(kind, tags: ["\(number)"], author: FirstV1.Author(name: "n"))
      })
  }

  @Test(
    "values are refused where an enum has no such case, with their number and rows",
    arguments: [true, false])
  func otherCases(isLightweight: Bool) throws {
    try makeTasks()
    Script.isLightweight = isLightweight
    let error = try store.refusal(FirstV1.self, CasesV2.self)
    #expect(error.code == .missingRequiredValues)
    #expect(
      error.cause
        == "1 values of Task.kind cannot be read in 2.0.0: row 2; 'kind' holds 'closed'; "
        + "Kind accepts 'open', 'done'", "\(error)")
    #expect(error.next?.contains("let willMigrate write values that 2.0.0 reads") == true)
    Script.isLightweight = false
    Script.willMigrate = { context in
      for task in try context.fetch(FetchDescriptor<FirstV1.Task>()) { task.kind = .open }
    }
    try store.migrate(FirstV1.self, CasesV2.self)
  }

  @Test("unreadable values are refused in an ordinary table too")
  func table() throws {
    try store.makeTables(
      "CREATE TABLE task (id INTEGER PRIMARY KEY, kind TEXT); "
        + "INSERT INTO task VALUES (1, 'open'), (2, NULL), (3, 'later'), (4, 'closed')")
    let error = try store.refusal(RowsV1.self, RowsV2.self)
    #expect(error.cause.hasPrefix("2 values of Task.kind cannot be read in 2.0.0: rows 3, 4;"))
    try store.execute("UPDATE task SET kind = 'open'")
    try store.migrate(RowsV1.self, RowsV2.self)
  }

  @Test("no run has to read the values of an enum that only gets more cases")
  func moreCases() throws {
    try makeTasks()
    Script.isLightweight = true
    try store.migrate(FirstV1.self, MoreV2.self)
    let plan = try PlanDefinition(ScriptedPlan<FirstV1, MoreV2>.self)
    #expect(try plan.path(from: FirstV1.versionIdentifier).map(\.schemas).readingChanges.isEmpty)
  }

  @Test("values are refused where elements of an array have a type that does not decode")
  func otherElements() throws {
    try makeTasks()
    let error = try store.refusal(FirstV1.self, ElementsV2.self)
    #expect(error.cause.hasPrefix("3 values of Task.tags cannot be read in 2.0.0: rows 1, 2, 3;"))
  }

  @Test("didMigrate replaces values without reading them")
  func replacedElements() throws {
    try makeTasks()
    Script.didMigrate = { context in
      for task in try context.fetch(FetchDescriptor<ElementsV2.Task>()) { task.tags = [7] }
    }
    try store.migrate(FirstV1.self, ElementsV2.self)
    #expect(try store.read("SELECT DISTINCT CAST(ZTAGS AS TEXT) FROM ZTASK") == ["[7]"])
  }

  @Test(
    "unreadable values keep their bytes where no closure reads them, and fail the stage where one does",
    arguments: [false, true])
  func unread(isRead: Bool) throws {
    try store.make(LooseV1.self, [LooseV1.Box(), LooseV1.Box()])
    try store.execute(
      "UPDATE ZBOX SET ZTAGS = CAST('{\"old\":1}' AS BLOB) WHERE Z_PK = 2")
    Script.didMigrate = { context in
      for box in try context.fetch(FetchDescriptor<LooseV2.Box>()) {
        box.count += 1
        if isRead, box.tags == nil { box.count += 1 }
      }
    }
    guard isRead else {
      try store.migrate(LooseV1.self, LooseV2.self)
      #expect(
        try store.read("SELECT ZCOUNT || CAST(ZTAGS AS TEXT) FROM ZBOX WHERE Z_PK = 2")
          == [#"1{"old":1}"#])
      return
    }
    let error = try store.refusal(LooseV1.self, LooseV2.self)
    #expect(error.code == .missingRequiredValues)
    #expect(error.cause.contains("the value stored in 'tags' is not of type"), "\(error)")
  }

  @Test(
    "values are refused where an integer does not fit a narrower type",
    arguments: [true, false])
  func narrowed(isLightweight: Bool) throws {
    try store.make(WideV1.self, [WideV1.Box(size: 7), WideV1.Box(size: 5_000_000_000)])
    Script.isLightweight = isLightweight
    let error = try store.refusal(WideV1.self, NarrowV2.self)
    #expect(error.code == .missingRequiredValues)
    #expect(
      error.cause
        == "1 values of Box.size cannot be read in 2.0.0: row 2; the value stored in 'size' is not of type "
        + "Int32: the value is not between -2147483648 and 2147483647", "\(error)")
    try store.execute("UPDATE ZBOX SET ZSIZE = 2147483647 WHERE Z_PK = 2")
    let container = try store.open(NarrowV2.self, ScriptedPlan<WideV1, NarrowV2>.self)
    let boxes = try ModelContext(container).fetch(FetchDescriptor<NarrowV2.Box>())
    #expect(boxes.map(\.size).sorted() == [7, .max] && boxes.compactMap(\.weight) == [7, 7])
  }

  @Test("composites are refused too: a struct with one more required field does not decode")
  func otherFields() throws {
    try makeTasks()
    let error = try store.refusal(FirstV1.self, FieldsV2.self)
    #expect(
      error.cause.hasPrefix("3 values of Task.author cannot be read in 2.0.0: rows 1, 2, 3;"),
      "\(error)")
  }

  @Test("only the values of the last version are read: a later stage may remove or convert them")
  func removedLater() throws {
    try makeTasks()
    try store.open(LastV3.self, Long.self).close()
  }

  @Test("values that another type reads have the shapes of their types in the plan")
  func shapes() throws {
    func text(_ old: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type) throws
      -> [String]
    {
      try PlanDefinition(plan).path(from: old.versionIdentifier).map(\.schemas).readingChanges
        .map(\.sentence)
    }
    #expect(
      try text(FirstV1.self, ScriptedPlan<FirstV1, CasesV2>.self) == [
        "reads the values of Task.kind as 'done' | 'open' instead of 'closed' | 'open'"
      ])
    #expect(
      try text(FirstV1.self, ScriptedPlan<FirstV1, ElementsV2>.self) == [
        "reads the values of Task.tags as [Int] instead of [String]"
      ])
    #expect(
      try text(FirstV1.self, ScriptedPlan<FirstV1, FieldsV2>.self) == [
        "reads the values of Task.author as {age: Int, name: String} instead of {name: String}"
      ])
    #expect(
      try text(RowsV1.self, ScriptedPlan<RowsV1, RowsV2>.self) == [
        "reads the values of Task.kind as 'open' instead of String"
      ])
    #expect(
      try text(WideV1.self, ScriptedPlan<WideV1, NarrowV2>.self) == [
        "reads the values of Box.size as Int32 instead of Int"
      ])
    #expect(try text(FirstV1.self, Long.self) == [])
  }

  // MARK: Models

  enum Long: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [FirstV1.self, CasesV2.self, LastV3.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: FirstV1.self, toVersion: CasesV2.self),
        .lightweight(fromVersion: CasesV2.self, toVersion: LastV3.self),
      ]
    }
  }

  enum FirstV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum Kind: String, Codable {
      case open, closed
    }

    struct Author: Codable {
      var name: String
    }

    @Model
    final class Task {
      var kind: Kind
      var tags: [String]
      var author: Author
      init(_ kind: Kind, tags: [String], author: Author) {
        (self.tags, self.author) = (tags, author)
        self.kind = kind
      }
    }
  }

  enum CasesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum Kind: String, Codable {
      case open, done
    }

    @Model
    final class Task {
      var kind: Kind
      var tags: [String]
      var author: FirstV1.Author
      init(kind: Kind, tags: [String], author: FirstV1.Author) {
        (self.kind, self.tags, self.author) = (kind, tags, author)
      }
    }
  }

  enum MoreV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum Kind: String, Codable {
      case open, closed, later
    }

    @Model
    final class Task {
      var kind: Kind
      var tags: [String]
      var author: FirstV1.Author
      init(kind: Kind, tags: [String], author: FirstV1.Author) {
        (self.kind, self.tags, self.author) = (kind, tags, author)
      }
    }
  }

  enum ElementsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    @Model
    final class Task {
      var kind: FirstV1.Kind
      var tags: [Int]
      var author: FirstV1.Author
      init(kind: FirstV1.Kind, tags: [Int], author: FirstV1.Author) {
        (self.kind, self.tags, self.author) = (kind, tags, author)
      }
    }
  }

  enum FieldsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    struct Author: Codable {
      var name: String
      var age: Int
    }

    @Model
    final class Task {
      var kind: FirstV1.Kind
      var tags: [String]
      var author: Author
      init(kind: FirstV1.Kind, tags: [String], author: Author) {
        (self.kind, self.tags, self.author) = (kind, tags, author)
      }
    }
  }

  enum LastV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    @Model
    final class Task {
      var tags: [String]
      var author: FirstV1.Author
      init(tags: [String], author: FirstV1.Author) {
        (self.tags, self.author) = (tags, author)
      }
    }
  }

  enum LooseV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Box.self] }

    @Model
    final class Box {
      var tags: [String]? = ["a"]
      init() {}
    }
  }

  enum LooseV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Box.self] }

    @Model
    final class Box {
      var tags: [String]? = ["a"]
      var count = 0
      init() {}
    }
  }

  enum WideV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Box.self] }

    @Model
    final class Box {
      var size: Int
      var weight: Int16?
      init(size: Int) {
        self.size = size
        weight = 7
      }
    }
  }

  enum NarrowV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Box.self] }

    @Model
    final class Box {
      var size: Int32
      var weight: Int32?
      init(size: Int32) { self.size = size }
    }
  }

  enum RowsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    @Table("task")
    @Model
    final class Task {
      var id: Int
      var kind: String?
      init(id: Int) { self.id = id }
    }
  }

  enum RowsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum Kind: String, Codable {
      case open
    }

    @Table("task")
    @Model
    final class Task {
      var id: Int
      var kind: Kind?
      init(id: Int) { self.id = id }
    }
  }
}
