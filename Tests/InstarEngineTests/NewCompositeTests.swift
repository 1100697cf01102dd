import Instar
import InstarSchema
import Testing

/// Whole runs of an app's container over a stage that adds properties which are kept in several columns.
@Suite("Existing rows get the initial value of a new struct or enum", .serialized)
struct NewCompositeTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  @Test("in all its columns, so that predicates find it")
  func columns() throws {
    try store.make(NotesV1.self, [NotesV1.Note(), NotesV1.Note()])
    let container = try store.open(NotesV2.self, ScriptedPlan<NotesV1, NotesV2>.self)
    let context = ModelContext(container)
    for note in try context.fetch(FetchDescriptor<NotesV2.Note>()) {
      #expect(note.mood == .calm)
      #expect(note.place == Place(name: "home", floor: 2, room: nil))
      #expect(note.size == Size(width: 3, height: nil))
      #expect(note.kind == .text("plain"))
      #expect(note.former == nil)
    }
    let calm = NotesV2.Mood.calm
    #expect(
      try context.fetchCount(
        FetchDescriptor<NotesV2.Note>(predicate: #Predicate { $0.mood == calm }))
        == 2)
    #expect(
      try context.fetchCount(
        FetchDescriptor<NotesV2.Note>(predicate: #Predicate { $0.place.floor == 2 })) == 2)
    try container.close()
    #expect(
      try store.read("SELECT ifnull(ZCALM, '-') || ifnull(ZANGRY, '-') FROM ZNOTE") == [
        "calm-", "calm-",
      ])
    #expect(try store.notes.isEmpty)
  }

  @Test("by the statements that a plan shows")
  func planned() throws {
    try store.make(NotesV1.self, [NotesV1.Note()])
    let (planned, executed) = try store.statements(NotesV1.self, NotesV2.self)
    #expect(planned == executed)
    #expect(planned.contains { $0.contains("SET ZCALM = 'calm'") }, "\(planned)")
  }

  @Test("also in ordinary tables, altered or rebuilt", arguments: [false, true])
  func tables(isRebuilt: Bool) throws {
    try store.makeTables(
      "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL); INSERT INTO note VALUES (1, 'a')"
    )
    let moods: [TablesV2.Mood]
    if isRebuilt {
      let container = try store.open(RebuiltV2.self, ScriptedPlan<TablesV1, RebuiltV2>.self)
      let notes = try ModelContext(container).fetch(FetchDescriptor<RebuiltV2.Note>())
      moods = notes.map(\.mood)
      #expect(notes.map(\.size) == [Size(width: 3, height: nil)])
      try container.close()
    } else {
      let container = try store.open(TablesV2.self, ScriptedPlan<TablesV1, TablesV2>.self)
      let notes = try ModelContext(container).fetch(FetchDescriptor<TablesV2.Note>())
      moods = notes.map(\.mood)
      #expect(notes.map(\.size) == [Size(width: 3, height: nil)])
      try container.close()
    }
    #expect(moods == [.calm])
    #expect(
      try store.read("SELECT ifnull(mood_calm, '-') || ifnull(mood_angry, '-') FROM note") == [
        "calm-"
      ])
  }

  @Test(
    "of the version that adds it: a later version with another one, and one more case, keeps it")
  func laterInitialValue() throws {
    try store.make(NotesV1.self, [NotesV1.Note()])
    let container = try store.open(NotesV3.self, Long.self)
    let notes = try ModelContext(container).fetch(FetchDescriptor<NotesV3.Note>())
    #expect(notes.map(\.mood) == [.calm])
  }

  // MARK: Models

  struct Place: Codable, Equatable {
    var name: String
    var floor: Int
    var room: String?
  }

  /// A value without any field is a value, so a row that was not written would have that.
  struct Size: Codable, Equatable {
    var width: Int?
    var height: Int?
  }

  enum Long: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self, NotesV3.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self),
        .lightweight(fromVersion: NotesV2.self, toVersion: NotesV3.self),
      ]
    }
  }

  enum NotesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
      var title: String = ""
      init() {}
    }
  }

  enum NotesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    enum Mood: Codable { case calm, angry }
    enum Kind: Codable, Equatable { case text(String), number(Int) }
    enum Former: Codable { case formerCalm, formerAngry }

    @Model final class Note {
      var title: String = ""
      var mood: Mood = Mood.calm
      var place: Place = Place(name: "home", floor: 2)
      var size: Size = Size(width: 3)
      var kind: Kind = Kind.text("plain")
      var former: Former? = Former.formerCalm
      init() {}
    }
  }

  enum NotesV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    enum Mood: Codable { case calm, angry, happy }

    @Model final class Note {
      var title: String = ""
      var mood: Mood = Mood.happy
      init() {}
    }
  }

  enum TablesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      var title: String
      init(id: Int) {
        self.id = id
        title = ""
      }
    }
  }

  enum TablesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    enum Mood: Codable { case calm, angry }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      var title: String
      var mood: Mood = Mood.calm
      var size: Size = Size(width: 3)
      init(id: Int) {
        self.id = id
        title = ""
      }
    }
  }

  enum RebuiltV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      // A column that changes is one that SQLite cannot alter.
      @Column(.collation("NOCASE")) var title: String
      var mood: TablesV2.Mood = TablesV2.Mood.calm
      var size: Size = Size(width: 3)
      init(id: Int) {
        self.id = id
        title = ""
      }
    }
  }
}
