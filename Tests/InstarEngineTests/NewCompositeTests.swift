import Instar
import InstarSchema
import InstarWire
import Testing

/// Whole runs of an app's container over a stage that adds properties which are kept in several columns.
@Suite("Existing rows get the initial value of a new struct or enum", .serialized)
struct NewCompositeTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  @Test("existing rows get the initial value in all its columns, so that predicates find it")
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

  @Test(
    "existing rows get the initial value of a new struct or enum by the statements that a plan shows"
  )
  func planned() throws {
    try store.make(NotesV1.self, [NotesV1.Note()])
    let (planned, executed) = try store.statements(NotesV1.self, NotesV2.self)
    #expect(planned == executed)
    #expect(planned.contains { $0.contains("SET ZCALM = 'calm'") }, "\(planned)")
  }

  @Test(
    "existing rows of ordinary tables, altered or rebuilt, get the initial value of a new struct or enum",
    arguments: [false, true])
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
    "existing rows keep the initial value of the version that adds the property, though a later version has another one"
  )
  func laterInitialValue() throws {
    try store.make(NotesV1.self, [NotesV1.Note()])
    let container = try store.open(NotesV3.self, Long.self)
    let notes = try ModelContext(container).fetch(FetchDescriptor<NotesV3.Note>())
    #expect(notes.map(\.mood) == [.calm])
  }

  // MARK: Without an initial value

  @Test(
    "existing rows refuse a lightweight stage with a new struct or enum without an initial value, and the store stays"
  )
  func refused() throws {
    try store.make(NotesV1.self, [NotesV1.Note(), NotesV1.Note()])
    let error = try store.refusal(NotesV1.self, UnfilledV2.self)
    #expect(error.code == .needsCustomStage)
    for property in ["mood", "place", "whole"] {
      #expect(
        error.cause.contains(
          "Note.\(property) is required, and existing rows have no value for it: 2 rows of Note"),
        "\(error)")
    }
    // No field of this struct is required, so a row without any has a value.
    #expect(!error.cause.contains("Note.size"), "\(error)")
    #expect(
      error.next?.hasPrefix("give the property an initial value, make it optional, or") == true)
    let notes = try store.plan(NotesV1.self, UnfilledV2.self).notes
    #expect(
      notes.contains { $0.contains("runs only if Note has no rows: Note.place is required") },
      "\(notes)")
  }

  @Test("existing rows of ordinary tables refuse a new struct or enum without an initial value too")
  func refusedTables() throws {
    try store.makeTables(
      "CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL); INSERT INTO note VALUES (7, 'a')"
    )
    let error = try store.refusal(TablesV1.self, UnfilledTablesV2.self)
    #expect(error.code == .needsCustomStage)
    for property in ["mood", "place"] {
      #expect(
        error.cause.contains(
          "Note.\(property) is required, and existing rows have no value for it: 1 row of Note (row 7)"
        ), "\(error)")
    }
    let notes = try store.plan(TablesV1.self, UnfilledTablesV2.self).notes
    #expect(
      notes.contains { $0.contains("runs only if Note has no rows: Note.place is required") },
      "\(notes)")
  }

  @Test("a store without rows needs no initial value of a new struct or enum")
  func empty() throws {
    try store.make(NotesV1.self, [])
    let container = try store.open(UnfilledV2.self, ScriptedPlan<NotesV1, UnfilledV2>.self)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<UnfilledV2.Note>()) == 0)
    try container.close()
    #expect(try store.notes.isEmpty)
  }

  @Test(
    "the code of a custom stage must write each row if a new struct or enum has no initial value")
  func custom() throws {
    try store.make(NotesV1.self, [NotesV1.Note(), NotesV1.Note()])
    Script.isLightweight = false
    Script.didMigrate = { context in
      for note in try context.fetch(FetchDescriptor<UnfilledV2.Note>()).dropFirst() {
        note.mood = .angry
        (note.place, note.whole) = (Place(name: "b", floor: 3), Place(name: "c", floor: 4))
      }
    }
    let error = try store.refusal(NotesV1.self, UnfilledV2.self)
    #expect(error.code == .missingRequiredValues)
    #expect(error.rows?.count == 1, "\(error)")
    Script.didMigrate = { context in
      for note in try context.fetch(FetchDescriptor<UnfilledV2.Note>()) {
        note.mood = .angry
        (note.place, note.whole) = (Place(name: "b", floor: 3), Place(name: "c", floor: 4))
      }
    }
    let container = try store.open(UnfilledV2.self, ScriptedPlan<NotesV1, UnfilledV2>.self)
    let notes = try ModelContext(container).fetch(FetchDescriptor<UnfilledV2.Note>())
    #expect(notes.map(\.mood) == [.angry, .angry])
    #expect(notes.map(\.place.floor) == [3, 3])
    #expect(notes.map(\.size) == [Size(), Size()])
  }

  @Test(
    "existing rows refuse a new struct or enum without an initial value, also if a later stage gives it one"
  )
  func refusedFirst() throws {
    try store.make(NotesV1.self, [NotesV1.Note()])
    let error = try store.refusal(NotesV2.self, Late.self)
    #expect(error.code == .needsCustomStage)
    #expect(error.cause.contains("Note.mood is required"), "\(error)")
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

  enum UnfilledV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    enum Mood: Codable { case calm, angry }

    @Model final class Note {
      var title: String = ""
      var mood: Mood
      var place: Place
      @Attribute(.codable) var whole: Place
      var size: Size
      var former: Mood?
      init(_ mood: Mood, _ place: Place, _ size: Size) {
        (self.mood, self.place, whole, self.size) = (mood, place, place, size)
      }
    }
  }

  enum EarlyV1_5: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 5, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
      var title: String = ""
      var mood: NotesV2.Mood
      init(_ mood: NotesV2.Mood) { self.mood = mood }
    }
  }

  enum Late: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [NotesV1.self, EarlyV1_5.self, NotesV2.self]
    }
    static var stages: [MigrationStage] { [] }
  }

  enum UnfilledTablesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      var title: String
      var mood: TablesV2.Mood
      var place: Place
      init(id: Int, _ mood: TablesV2.Mood, _ place: Place) {
        (self.id, title, self.mood, self.place) = (id, "", mood, place)
      }
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
