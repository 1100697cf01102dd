import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import Synchronization
import Testing

@Suite("Errors that the closures of a stage ignore", .serialized)
struct IgnoredErrorTests {
  private let path: String
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
  }

  // MARK: Both formats

  /// The closures of both formats' stages; a plan's members are static.
  private struct Script {
    var willMigrate: @Sendable (ModelContext) throws -> Void = { _ in }
    var didMigrate: @Sendable (ModelContext) throws -> Void = { _ in }
  }

  private static let script = Mutex(Script())

  private static func stage(
    _ old: any VersionedSchema.Type, _ new: any VersionedSchema.Type
  ) -> MigrationStage {
    let script = script.withLock { $0 }
    return .custom(
      fromVersion: old, toVersion: new, willMigrate: script.willMigrate,
      didMigrate: script.didMigrate)
  }

  /// Two notes, the second with a mood that its type cannot decode.
  private func makeStore(_ format: StoreFormat, mood: String = "bored") throws {
    if format == .coredata {
      let container = try ModelContainer(
        for: Schema(versionedSchema: MoodsV1.self),
        configurations: ModelConfiguration(url: URL(filePath: path)))
      let context = ModelContext(container)
      for text in ["a", "b"] { context.insert(MoodsV1.Note(text: text, mood: .good)) }
      try context.save()
      try container.close()
    }
    let queue = try DatabaseQueue(path: path)
    try queue.inDatabase { db in
      if format == .plain {
        try db.execute(
          sql: """
            CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL, mood TEXT NOT NULL);
            INSERT INTO note VALUES (1, 'a', 'good'), (2, 'b', 'good');
            """)
      }
      let (table, prefix) = format == .plain ? ("note", "") : ("ZNOTE", "Z")
      try db.execute(
        sql: "UPDATE \(table) SET \(prefix)MOOD = ? WHERE \(prefix)TEXT = 'b'", arguments: [mood])
    }
    try queue.close()
  }

  private func run(_ format: StoreFormat, _ script: Script) throws {
    Self.script.withLock { $0 = script }
    let definition = try PlanDefinition(
      format == .plain ? RowMoodPlan.self as any SchemaMigrationPlan.Type : MoodPlan.self)
    let connection = try StoreConnection(path: path, durability: .clone)
    defer { try? connection.close() }
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
        ) { _ in }
      ],
      plan: definition.name)
  }

  private func failure(_ format: StoreFormat, _ script: Script) throws -> InstarError {
    try #require(#expect(throws: InstarError.self) { try run(format, script) })
  }

  /// Each way to read a value without hearing of an error.
  private static func reads<Note: MoodyNote>(
    _ type: Note.Type
  ) -> [@Sendable (ModelContext) throws -> Void] {
    [
      { context in
        if let notes = try? context.fetch(FetchDescriptor<Note>()) {
          for note in notes { note.text += note.moodName }
        }
      },
      { context in
        try? context.enumerate(FetchDescriptor<Note>()) { note in note.text += note.moodName }
      },
      { context in
        // A getter cannot throw: it gives a placeholder.
        var texts = FetchDescriptor<Note>()
        texts.propertiesToFetch = [Note.textPath]
        for note in (try? context.fetch(texts)) ?? [] { _ = note.moodName }
        context.rollback()
      },
      { context in
        // A context that the closure makes itself counts too.
        let other = ModelContext(context.container)
        _ = try? other.fetch(FetchDescriptor<Note>(), batchSize: 1).map(\.moodName)
      },
    ]
  }

  @Test(
    "a value that its type cannot decode fails the stage, also where the closure ignores the error",
    arguments: [StoreFormat.coredata, .plain], 0..<4)
  func unreadableValues(format: StoreFormat, way: Int) throws {
    try makeStore(format)
    let read =
      format == .plain
      ? Self.reads(RowMoodsV1.Note.self)[way] : Self.reads(MoodsV1.Note.self)[way]
    let error = try failure(format, Script(willMigrate: read))
    #expect(error.code == .missingRequiredValues)
    #expect(error.stage == "1.0.0 → 2.0.0 (1 of 1), willMigrate")
    #expect(
      error.cause.contains("cannot read Note 2: 'mood' holds 'bored'"), "\(error)")
    #expect(error.cause.hasSuffix("; the plan's code ignored this error"))
  }

  @Test(
    "a value that no closure reads stays as it is, whatever its type decodes",
    arguments: [StoreFormat.coredata, .plain])
  func unreadValues(format: StoreFormat) throws {
    try makeStore(format)
    @Sendable func edit<Note: MoodyNote>(_ type: Note.Type, _ context: ModelContext) throws {
      for note in try context.fetch(FetchDescriptor<Note>()) { note.text += "!" }
    }
    try run(
      format,
      Script(
        willMigrate: { context in
          if format == .plain {
            try edit(RowMoodsV1.Note.self, context)
          } else {
            try edit(MoodsV1.Note.self, context)
          }
        },
        didMigrate: { context in
          if format == .plain {
            try edit(RowMoodsV2.Note.self, context)
          } else {
            try edit(MoodsV2.Note.self, context)
          }
        }))
    let columns = format == .plain ? "text || mood FROM note" : "ZTEXT || ZMOOD FROM ZNOTE"
    let rows = try DatabaseQueue(path: path).read { db in
      try String.fetchAll(db, sql: "SELECT \(columns) ORDER BY 1")
    }
    #expect(rows == ["a!!good", "b!!bored"])
  }

  @Test(
    "a value that its type cannot decode fails the stage also where didMigrate ignores the error",
    arguments: [StoreFormat.coredata, .plain])
  func unreadableInDidMigrate(format: StoreFormat) throws {
    try makeStore(format)
    let read =
      format == .plain
      ? Self.reads(RowMoodsV2.Note.self)[0] : Self.reads(MoodsV2.Note.self)[0]
    let error = try failure(format, Script(didMigrate: read))
    #expect(error.code == .missingRequiredValues)
    #expect(error.stage == "1.0.0 → 2.0.0 (1 of 1), didMigrate")
  }

  @Test(
    "a model of another version, counted and ignored, fails the stage",
    arguments: [StoreFormat.coredata, .plain])
  func wrongVersion(format: StoreFormat) throws {
    try makeStore(format, mood: "good")
    let error = try failure(
      format,
      Script { context in
        _ =
          format == .plain
          ? try? context.fetchCount(FetchDescriptor<RowMoodsV2.Note>())
          : try? context.fetchCount(FetchDescriptor<MoodsV2.Note>())
      })
    #expect(error.code == .modelNotInSchema)
  }

  @Test(
    "a save that failed and was rolled back fails the stage",
    arguments: [StoreFormat.coredata, .plain])
  func lostSave(format: StoreFormat) throws {
    try makeStore(format, mood: "good")
    let error = try failure(
      format,
      Script { context in
        insertUnknownNote(format, context)
        try? context.save()
        context.rollback()
        try renameNotes(format, context)
        try context.save()
      })
    #expect(error.code == .modelNotInSchema)
    #expect(error.cause.contains("in willMigrate"), "\(error)")
  }

  @Test(
    "a save that failed and was repeated with success does not fail the stage",
    arguments: [StoreFormat.coredata, .plain])
  func repeatedSave(format: StoreFormat) throws {
    try makeStore(format, mood: "good")
    try run(
      format,
      Script { context in
        try renameNotes(format, context)
        let unknown = insertUnknownNote(format, context)
        #expect(throws: (any Error).self) { try context.save() }
        context.delete(unknown)
        try context.save()
      })
  }

  @Test(
    "an error that the closure throws to itself is its own business",
    arguments: [StoreFormat.coredata, .plain])
  func ownErrors(format: StoreFormat) throws {
    struct Enough: Error {}
    try makeStore(format, mood: "good")
    try run(
      format,
      Script { context in
        if format == .plain {
          try? context.enumerate(FetchDescriptor<RowMoodsV1.Note>()) { _ in throw Enough() }
        } else {
          try? context.enumerate(FetchDescriptor<MoodsV1.Note>()) { _ in throw Enough() }
        }
      })
  }

  // MARK: Models

  enum Mood: String, Codable { case good, bad }

  protocol MoodyNote: PersistentModel {
    static var textPath: PartialKeyPath<Self> { get }
    var text: String { get set }
    var moodName: String { get }
  }

  enum MoodsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    final class Note: MoodyNote {
      static var textPath: PartialKeyPath<Note> { \Note.text }
      var text: String
      var mood: Mood
      var moodName: String { mood.rawValue }
      init(text: String, mood: Mood) { (self.text, self.mood) = (text, mood) }
    }
  }

  enum MoodsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model
    final class Note: MoodyNote {
      static var textPath: PartialKeyPath<Note> { \Note.text }
      var text: String
      var mood: Mood
      var summary: String?
      var moodName: String { mood.rawValue }
      init(text: String, mood: Mood) { (self.text, self.mood) = (text, mood) }
    }
  }

  enum MoodPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [MoodsV1.self, MoodsV2.self] }
    static var stages: [MigrationStage] { [stage(MoodsV1.self, MoodsV2.self)] }
  }

  enum RowMoodsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note: MoodyNote {
      static var textPath: PartialKeyPath<Note> { \Note.text }
      @Column(.primaryKey) var id: Int
      var text: String
      var mood: Mood
      var moodName: String { mood.rawValue }
      init(id: Int, text: String, mood: Mood) { (self.id, self.text, self.mood) = (id, text, mood) }
    }
  }

  enum RowMoodsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table("note")
    @Model
    final class Note: MoodyNote {
      static var textPath: PartialKeyPath<Note> { \Note.text }
      @Column(.primaryKey) var id: Int
      var text: String
      var mood: Mood
      var summary: String?
      var moodName: String { mood.rawValue }
      init(id: Int, text: String, mood: Mood) { (self.id, self.text, self.mood) = (id, text, mood) }
    }
  }

  enum RowMoodPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [RowMoodsV1.self, RowMoodsV2.self] }
    static var stages: [MigrationStage] { [stage(RowMoodsV1.self, RowMoodsV2.self)] }
  }
}

/// A note of the version after: the context cannot save it.
@discardableResult
private func insertUnknownNote(
  _ format: StoreFormat, _ context: ModelContext
) -> any PersistentModel {
  if format == .plain {
    let note = IgnoredErrorTests.RowMoodsV2.Note(id: 9, text: "new", mood: .good)
    context.insert(note)
    return note
  }
  let note = IgnoredErrorTests.MoodsV2.Note(text: "new", mood: .good)
  context.insert(note)
  return note
}

private func renameNotes(_ format: StoreFormat, _ context: ModelContext) throws {
  if format == .plain {
    for note in try context.fetch(FetchDescriptor<IgnoredErrorTests.RowMoodsV1.Note>()) {
      note.text += "!"
    }
  } else {
    for note in try context.fetch(FetchDescriptor<IgnoredErrorTests.MoodsV1.Note>()) {
      note.text += "!"
    }
  }
}
