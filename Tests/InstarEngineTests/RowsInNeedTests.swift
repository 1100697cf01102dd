import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("A lightweight stage that adds a required property without a default")
struct RowsInNeedTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
  }

  private func make(_ format: StoreFormat, rows: Int) throws {
    if format == .plain {
      let queue = try DatabaseQueue(path: path)
      try queue.inDatabase { db in
        try db.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
        for number in 0..<rows {
          try db.execute(sql: "INSERT INTO note (text) VALUES (?)", arguments: ["\(number)"])
        }
      }
      return try queue.close()
    }
    let container = try ModelContainer(
      for: Schema(versionedSchema: NeedV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    for number in 0..<rows { context.insert(NeedV1.Note(text: "\(number)")) }
    try context.save()
    try container.close()
  }

  private func plan(_ format: StoreFormat) throws -> PlanDefinition {
    try PlanDefinition(
      format == .plain ? RowNeedPlan.self as any SchemaMigrationPlan.Type : NeedPlan.self)
  }

  private func migrate(_ format: StoreFormat) throws {
    let plan = try plan(format)
    let connection = try StoreConnection(path: path, durability: .clone)
    defer { try? connection.close() }
    try StageExecutor.run(
      [
        StageExecutor.Clone(connection: connection, path: plan.path(from: Schema.Version(1, 0, 0)))
        { _ in }
      ],
      plan: plan.name)
  }

  @Test(
    "a lightweight stage that adds a required property without a default runs on an empty table",
    arguments: [StoreFormat.coredata, .plain])
  func empty(format: StoreFormat) throws {
    try make(format, rows: 0)
    try migrate(format)
    let queue = try DatabaseQueue(path: path)
    try queue.read { db in
      let table = format == .plain ? "note" : "ZNOTE"
      #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") == 0)
      let columns = try db.columns(in: table).map { $0.name.lowercased() }
      #expect(columns.contains { $0.hasSuffix("mood") })
    }
  }

  @Test(
    "a lightweight stage is refused with the number of rows in need of a value",
    arguments: [StoreFormat.coredata, .plain])
  func rows(format: StoreFormat) throws {
    try make(format, rows: 3)
    let error = try #require(#expect(throws: InstarError.self) { try migrate(format) })
    #expect(error.code == .needsCustomStage)
    #expect(
      error.cause.contains(
        "Note.mood is required, and existing rows have no value for it: 3 rows of Note"), "\(error)"
    )
    // In an ordinary table a custom stage would fail too.
    #expect(
      error.next?.hasPrefix(
        format == .plain
          ? "give Note.mood an initial value, which didMigrate can replace; or"
          : "give the property an initial value, make it optional, or write the stage as a custom one:"
      ) == true, "\(error)")
    #expect(error.next?.contains(".custom(") == (format == .coredata), "\(error)")
  }

  @Test(
    "the plan says on what a lightweight stage depends that adds a required property without a default",
    arguments: [StoreFormat.coredata, .plain])
  func planned(format: StoreFormat) throws {
    let migration = try plan(format).migration(from: Schema.Version(1, 0, 0))
    #expect(
      migration.notes.contains {
        $0.hasPrefix("the stage from 1.0.0 to 2.0.0 runs only if Note has no rows: Note.mood is")
      }, "\(migration.notes)")
  }

  enum NeedV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    final class Note {
      var text: String?
      init(text: String?) { self.text = text }
    }
  }

  enum NeedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    final class Note {
      var text: String?
      var mood: String
      init(mood: String) { self.mood = mood }
    }
  }

  enum NeedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NeedV1.self, NeedV2.self] }
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: NeedV1.self, toVersion: NeedV2.self)]
    }
  }

  enum RowNeedV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      @Column(.primaryKey) var id: Int
      var text: String?
      init(id: Int) { self.id = id }
    }
  }

  enum RowNeedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      @Column(.primaryKey) var id: Int
      var text: String?
      var mood: String
      init(id: Int, mood: String) { (self.id, self.mood) = (id, mood) }
    }
  }

  enum RowNeedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [RowNeedV1.self, RowNeedV2.self] }
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: RowNeedV1.self, toVersion: RowNeedV2.self)]
    }
  }
}
