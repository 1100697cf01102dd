import GRDB
import Instar
import InstarStore
import InstarTestSupport
import Testing

/// Indexes of the app's over a column that goes while, then or later, another one gets its name.
@Suite("Columns that take the name of one that goes", .serialized)
struct ReplacedColumnTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.db")
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
  }

  private static let indexes = [
    "CREATE INDEX by_due ON note(due)",
    "CREATE UNIQUE INDEX by_due_and_rank ON note (rank DESC, due) WHERE due <> 'x'",
    "CREATE INDEX by_length ON note (length(due), length(rank))",
    "CREATE INDEX by_rank ON note(length(rank))",
  ]

  private func make(_ sql: String = "") throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE note (id INTEGER PRIMARY KEY, due TEXT, later INTEGER, rank INTEGER);
          INSERT INTO note VALUES (1, 'a', 5, 1), (2, 'b', 5, 2), (3, NULL, NULL, 3);
          \(Self.indexes.joined(separator: ";\n"));
          \(sql); PRAGMA user_version = 1;
          """)
    }
    try queue.close()
  }

  private func migrate(
    _ version: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type
  ) throws {
    try ModelContainer(
      for: Schema(versionedSchema: version), migrationPlan: plan,
      configurations: ModelConfiguration(url: URL(filePath: path))
    ).close()
  }

  /// The texts of the indexes, and the rows.
  private func read() throws -> (indexes: [String], rows: [String]) {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { db in
      (
        try String.fetchAll(
          db, sql: "SELECT sql FROM sqlite_schema WHERE type = 'index' ORDER BY name"),
        try String.fetchAll(db, sql: "SELECT id || ifnull(due, '-') || rank FROM note ORDER BY id")
      )
    }
  }

  @Test("columns that replace another one at once keep its indexes, which no model describes")
  func atOnce() throws {
    try make()
    try migrate(TakenV2.self, TakenPlan.self)
    let (indexes, rows) = try read()
    #expect(indexes == Self.indexes)
    #expect(rows == ["151", "252", "3-3"])
  }

  @Test("columns that code fills keep the indexes of the one that goes")
  func filled() throws {
    try make()
    try migrate(FilledV2.self, FilledPlan.self)
    let (indexes, rows) = try read()
    #expect(indexes == Self.indexes)
    #expect(rows == ["1101", "2202", "3303"])
  }

  @Test("columns lose the indexes where a version on the way has no such column")
  func later() throws {
    try make()
    try migrate(AgainV3.self, AgainPlan.self)
    let (indexes, rows) = try read()
    #expect(indexes == [Self.indexes[3]])
    #expect(rows == ["1-1", "2-2", "3-3"])
  }

  @Test("values that an index refuses leave the store as it was")
  func refused() throws {
    try make("CREATE UNIQUE INDEX one_due ON note (due)")
    let before = try read()
    let error = #expect(throws: SwiftDataError.self) {
      try migrate(TakenV2.self, TakenPlan.self)
    }
    #expect(error?.cause?.state == "unchanged")
    let text = String(describing: error?.cause)
    #expect(text.contains("one_due"))
    let after = try read()
    #expect(after.indexes == before.indexes && after.rows == before.rows)
  }

  enum NotesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      var id: Int
      var due: String?
      var later: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum TakenV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      var id: Int
      @Attribute(originalName: "later") var due: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum TakenPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, TakenV2.self] }
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: NotesV1.self, toVersion: TakenV2.self)]
    }
  }

  enum FilledV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      var id: Int
      var due: Int = 0
      var later: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum FilledPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, FilledV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: NotesV1.self, toVersion: FilledV2.self, willMigrate: nil,
          didMigrate: { context in
            for note in try context.fetch(FetchDescriptor<FilledV2.Note>()) {
              note.due = note.id * 10
            }
          })
      ]
    }
  }

  enum AgainV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      var id: Int
      var later: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum AgainV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note {
      var id: Int
      var due: Int?
      var later: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum AgainPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [NotesV1.self, AgainV2.self, AgainV3.self]
    }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: NotesV1.self, toVersion: AgainV2.self),
        .lightweight(fromVersion: AgainV2.self, toVersion: AgainV3.self),
      ]
    }
  }
}
