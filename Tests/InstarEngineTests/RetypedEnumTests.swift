import Instar
import InstarEngine
import InstarWire
import Testing

@Suite("Enums that get raw values, or lose them", .serialized)
struct RetypedEnumTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private static let cases =
    "SELECT Z_PK || ifnull(ZOPEN, '-') || ifnull(ZCLOSED, '-') FROM ZTASK ORDER BY 1"

  @Test(
    "enums that lose raw values keep the values that are names of cases, and say how many others are dropped",
    arguments: [true, false])
  func toCases(isLightweight: Bool) throws {
    try store.make(TextV1.self, [.open, .closed, .later].map(TextV1.Task.init))
    Script.isLightweight = isLightweight
    Script.losses = []
    if !isLightweight {
      Script.didMigrate = { context in
        for task in try context.fetch(FetchDescriptor<CasesV2.Task>()) { task.number += 1 }
      }
    }
    try store.migrate(TextV1.self, CasesV2.self)
    #expect(try store.read(Self.cases) == ["1open-", "2-closed", "3--"])
    #expect(
      try store.notes == [
        "drops 1 non-null values of Task.state, which are not the name of a case: closed, open"
      ])
    let container = try store.open(CasesV2.self)
    let context = ModelContext(container)
    let tasks = try context.fetch(
      FetchDescriptor<CasesV2.Task>(sortBy: [SortDescriptor(\.number)]))
    #expect(tasks.filter { $0.state == .closed }.count == 1)
    try container.close()
  }

  @Test(
    "enums that get raw values write the names of cases as text, where the new type has such a raw value"
  )
  func toText() throws {
    try store.make(CasesV2.self, [.open, .closed, .open].map(CasesV2.Task.init))
    Script.isLightweight = true
    try store.migrate(CasesV2.self, TextV3.self)
    #expect(
      try store.read("SELECT Z_PK || ZSTATUS FROM ZTASK ORDER BY 1")
        == ["1open", "2closed", "3open"])
    #expect(try store.notes.isEmpty)
  }

  @Test("enums that lose raw values and get them again keep their values over both changes")
  func bothChanges() throws {
    try store.make(TextV1.self, [.open, .closed].map(TextV1.Task.init))
    try store.open(TextV3.self, Long.self).close()
    #expect(
      try store.read("SELECT Z_PK || ZSTATUS FROM ZTASK ORDER BY 1") == ["1open", "2closed"])
    #expect(try store.notes.isEmpty)
  }

  @Test("all values of an enum are dropped where a later stage removes the property")
  func removedLater() throws {
    try store.make(TextV1.self, [.open, .closed].map(TextV1.Task.init))
    try store.open(GoneV4.self, Removing.self).close()
    #expect(try store.notes == ["drops 2 non-null values of Task.state"])
  }

  @Test("a plan shows the statements that a run executes on the enums")
  func planned() throws {
    try store.make(TextV1.self, [TextV1.Task(.open)])
    Script.isLightweight = true
    let changes = try store.plan(TextV1.self, CasesV2.self).stages.flatMap(\.changes)
    #expect(
      changes.contains(
        "changes the type of Task.state from String to an enum without raw values, and keeps the values that are "
          + "names of its cases (closed, open)"), "\(changes)")
    let (planned, executed) = try store.statements(TextV1.self, CasesV2.self)
    #expect(planned == executed)
  }

  enum Long: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [TextV1.self, CasesV2.self, TextV3.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: TextV1.self, toVersion: CasesV2.self),
        .lightweight(fromVersion: CasesV2.self, toVersion: TextV3.self),
      ]
    }
  }

  enum Removing: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [TextV1.self, CasesV2.self, GoneV4.self] }
    static var stages: [MigrationStage] { [] }
  }

  enum GoneV4: VersionedSchema {
    static let versionIdentifier = Schema.Version(4, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    @Model final class Task {
      var number = 0
      init() {}
    }
  }

  enum TextV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum State: String, Codable { case open, closed, later }

    @Model final class Task {
      var state: State
      init(_ state: State) { self.state = state }
    }
  }

  enum CasesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum State: Codable { case open, closed }

    @Model final class Task {
      var state: State = State.open
      var number = 0
      init(_ state: State) { self.state = state }
    }
  }

  enum TextV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Task.self] }

    enum State: String, Codable { case open, closed }

    @Model final class Task {
      @Attribute(originalName: "state") var status: State
      var number = 0
      init(_ state: State) { status = state }
    }
  }
}
