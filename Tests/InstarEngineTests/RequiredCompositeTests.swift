import Instar
import InstarWire
import Testing

/// Whole runs of an app's container over a stage that makes properties in several columns required.
@Suite("A struct or an enum that becomes required", .serialized)
struct RequiredCompositeTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  private func makeNotes() throws {
    try store.make(
      NotesV1.self,
      [
        NotesV1.Note("none"),
        NotesV1.Note("all", .angry, Place(name: "a", floor: 1), Size(width: 1)),
      ])
  }

  @Test("a struct or an enum that becomes required gets its initial value in rows without a value")
  func filled() throws {
    try makeNotes()
    let container = try store.open(NotesV2.self, ScriptedPlan<NotesV1, NotesV2>.self)
    let context = ModelContext(container)
    let notes = try context.fetch(
      FetchDescriptor<NotesV2.Note>(sortBy: [SortDescriptor(\.title)]))
    #expect(notes.map(\.title) == ["all", "none"])
    #expect(notes.map(\.mood) == [.angry, .calm])
    #expect(
      notes.map(\.place) == [Place(name: "a", floor: 1), Place(name: "home", floor: 2)])
    #expect(notes.map(\.size) == [Size(width: 1), Size(width: 3)])
    #expect(
      try context.fetchCount(
        FetchDescriptor<NotesV2.Note>(predicate: #Predicate { $0.place.floor == 2 })) == 1)
    #expect(try store.notes.isEmpty)
  }

  @Test(
    "a struct or an enum that becomes required gets its initial value by the statements that a plan shows"
  )
  func planned() throws {
    try makeNotes()
    let (planned, executed) = try store.statements(NotesV1.self, NotesV2.self)
    #expect(planned == executed)
    #expect(
      planned.contains(
        "UPDATE ZNOTE SET ZCALM = 'calm' WHERE ZCALM IS NULL AND ZANGRY IS NULL"), "\(planned)")
  }

  @Test(
    "a required struct or enum without an initial value is refused, with the rows that need one")
  func unfilled() throws {
    try makeNotes()
    let error = try store.refusal(NotesV1.self, NotesV3.self)
    #expect(error.code == .needsCustomStage)
    for property in ["mood", "place"] {
      #expect(
        error.cause.contains(
          "Note.\(property) becomes required, and rows without a value need one: 1 row of Note"),
        "\(error)")
    }
    // No field of this struct is required, so a row without any has a value.
    #expect(!error.cause.contains("Note.size"), "\(error)")
    let notes = try store.plan(NotesV1.self, NotesV3.self).notes
    #expect(
      notes.contains { $0.contains("runs only if no row of Note lacks 'mood'") }, "\(notes)")
  }

  @Test("a struct or an enum that becomes required needs no initial value if each row has a value")
  func complete() throws {
    try store.make(
      NotesV1.self, [NotesV1.Note("a", .angry, Place(name: "a", floor: 1), nil)])
    let container = try store.open(NotesV3.self, ScriptedPlan<NotesV1, NotesV3>.self)
    let notes = try ModelContext(container).fetch(FetchDescriptor<NotesV3.Note>())
    #expect(notes.map(\.mood) == [.angry])
    #expect(notes.map(\.size) == [Size()])
  }

  @Test(
    "a struct or an enum that becomes required must get its values from the code of a custom stage")
  func custom() throws {
    try makeNotes()
    Script.isLightweight = false
    let error = try store.refusal(NotesV1.self, NotesV3.self)
    #expect(error.code == .missingRequiredValues)
    #expect(
      error.cause.contains("no value for the required property 'mood'"), "\(error)")
    Script.willMigrate = { context in
      for note in try context.fetch(FetchDescriptor<NotesV1.Note>()) where note.mood == nil {
        note.mood = .calm
        note.place = Place(name: "b", floor: 3)
      }
    }
    let container = try store.open(NotesV3.self, ScriptedPlan<NotesV1, NotesV3>.self)
    let notes = try ModelContext(container).fetch(
      FetchDescriptor<NotesV3.Note>(sortBy: [SortDescriptor(\.title)]))
    #expect(notes.map(\.mood) == [.angry, .calm])
    #expect(notes.map(\.place.floor) == [1, 3])
  }

  @Test(
    "a struct or an enum that becomes required gets its initial value in an ordinary table too, altered or rebuilt",
    arguments: [false, true])
  func tables(isRebuilt: Bool) throws {
    try store.makeTables(
      """
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL, mood_calm TEXT, mood_angry TEXT);
      INSERT INTO note VALUES (1, 'a', NULL, NULL), (2, 'b', NULL, 'angry')
      """)
    let moods: [Mood]
    if isRebuilt {
      let container = try store.open(RebuiltV2.self, ScriptedPlan<TablesV1, RebuiltV2>.self)
      moods = try ModelContext(container).fetch(
        FetchDescriptor<RebuiltV2.Note>(sortBy: [SortDescriptor(\.id)])
      ).map(\.mood)
    } else {
      let container = try store.open(TablesV2.self, ScriptedPlan<TablesV1, TablesV2>.self)
      moods = try ModelContext(container).fetch(
        FetchDescriptor<TablesV2.Note>(sortBy: [SortDescriptor(\.id)])
      ).map(\.mood)
    }
    #expect(moods == [.calm, .angry])
  }

  // MARK: Models

  struct Place: Codable, Equatable {
    var name: String
    var floor: Int
    var room: String?
  }

  struct Size: Codable, Equatable {
    var width: Int?
    var height: Int?
  }

  enum Mood: Codable { case calm, angry }

  enum NotesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
      var title: String = ""
      var mood: Mood?
      var place: Place?
      var size: Size?
      init(
        _ title: String, _ mood: Mood? = nil, _ place: Place? = nil, _ size: Size? = nil
      ) {
        self.title = title
        self.mood = mood
        self.place = place
        self.size = size
      }
    }
  }

  enum NotesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
      var title: String = ""
      var mood: Mood = Mood.calm
      var place: Place = Place(name: "home", floor: 2)
      var size: Size = Size(width: 3)
      init() {}
    }
  }

  enum NotesV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
      var title: String = ""
      var mood: Mood
      var place: Place
      var size: Size
      init(_ mood: Mood, _ place: Place, _ size: Size) {
        self.mood = mood
        self.place = place
        self.size = size
      }
    }
  }

  enum TablesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      var title: String
      var mood: Mood?
      init(id: Int) {
        self.id = id
        title = ""
      }
    }
  }

  enum TablesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Table
    @Model final class Note {
      @Column(.primaryKey) var id: Int
      var title: String
      var mood: Mood = Mood.calm
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
      var mood: Mood = Mood.calm
      init(id: Int) {
        self.id = id
        title = ""
      }
    }
  }
}
