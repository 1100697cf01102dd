import GRDB
import Instar
import InstarSchema
import InstarTestSupport
import Testing

@Model
final class DeckModel {
  var cards: [CardModel] = []
  init() {}
}

@Model
final class CardModel {
  var name: String
  init(name: String) { self.name = name }
}

@Model
final class BoxModel {
  var name = ""
  init() {}
}

@Suite("API page: errors people meet with SwiftData, and what ours say")
struct ErrorTableConformanceTests {
  @Test("a relationship to a row that is gone is named, with its row and the number of others")
  func missingRow() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: Library.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    for number in 1...3 {
      let note = Library.Note(uid: "\(number)")
      note.folder = Library.Folder(uid: "\(number)")
      context.insert(note)
    }
    try context.save()
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: "DELETE FROM ZFOLDER") }
    try queue.close()

    let fresh = ModelContext(container)
    let note = try #require(
      try fresh.fetch(FetchDescriptor<Library.Note>(sortBy: [SortDescriptor(\.uid)])).first)
    _ = note.folder?.name
    let error = #expect(throws: InstarError.self) { try fresh.save() }
    #expect(error?.code == .brokenReferences)
    let text = try #require(error?.description)
    #expect(text.contains("cannot read Folder "))
    #expect(text.contains("Note.folder of 1 row references it, but the row does not exist"))
    #expect(text.contains("2 more links of Note.folder reference missing rows"))
    #expect(text.contains("instarctl plan"))
  }

  enum Tangled: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Song.self, Playlist.self] }
    @Model
    final class Song {
      var title: String
      var playlists: [Playlist] = []
      init(title: String) { self.title = title }
    }
    @Model
    final class Playlist {
      var name: String
      var songs: [Song] = []
      init(name: String) { self.name = name }
    }
  }

  @Test(
    "two arrays of which neither names the other stay apart, and a note names both and what to write"
  )
  func separateArrays() throws {
    let schema = Schema(versionedSchema: Tangled.self)
    let container = try ModelContainer(
      for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    #expect(container.schema.entities.flatMap(\.relationships).allSatisfy { $0.inverseName == nil })
    let (note, correction) = try #require([schema].separateArrayNotes.first)
    #expect(note.contains("in 1.0.0, Playlist.songs and Song.playlists are arrays without inverse"))
    #expect(
      correction?.contains("@Relationship(inverse: \\Song.playlists) before Playlist.songs") == true
    )
  }

  enum Partial: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Library.Note.self, Library.Tag.self] }
  }

  @Test("a model missing from a version is added, because another one references it")
  func missingModel() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Partial.self),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    #expect(container.schema.entities.map(\.name) == ["Folder", "Note", "Tag"])
  }

  enum Cards: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Cards.CardModel.self, DeckModel.self] }

    @Model
    final class CardModel {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  @Test("two classes of one name, a nested and a global one, are told apart")
  func classesOfOneName() throws {
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let (global, nested) = (
      "InstarModelTests.CardModel", "InstarModelTests.ErrorTableConformanceTests.Cards.CardModel"
    )
    let version = try ModelContainer(
      for: Schema(versionedSchema: Cards.self), configurations: memory)
    let stranger = #expect(throws: InstarError.self) {
      try ModelContext(version).fetch(FetchDescriptor<CardModel>())
    }
    #expect(
      stranger?.cause == "the store is at 1.0.0, whose CardModel is \(nested), not \(global)")
    let doubled = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema([Cards.CardModel.self, DeckModel.self]), configurations: memory)
    }
    #expect(doubled?.cause?.cause == "two models are named CardModel: \(nested) and \(global)")
    let container = try ModelContainer(for: DeckModel.self, configurations: memory)
    let foreign = #expect(throws: InstarError.self) {
      try ModelContext(container).fetch(FetchDescriptor<Cards.CardModel>())
    }
    #expect(
      foreign?.cause == "the store is at 1.0.0, whose CardModel is \(global), not \(nested)")
  }

  enum Boxes: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Shelf.self, InstarModelTests.BoxModel.self] }

    @Model
    final class Shelf {
      @Relationship(inverse: \BoxModel.shelf) var boxes: [BoxModel] = []
      init() {}
    }

    @Model
    final class BoxModel {
      var shelf: Shelf?
      init() {}
    }
  }

  @Test("an inverse of another class of that name is named with both classes")
  func inverseOfOtherClass() throws {
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: Boxes.self),
        configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    }
    #expect(
      error?.cause?.cause
        == "the inverse of Shelf.boxes, InstarModelTests.ErrorTableConformanceTests.Boxes.BoxModel.shelf, "
        + "is not a relationship of InstarModelTests.BoxModel", "\(String(describing: error))")
  }

  @Test("a store of another structure is described, without a plan too")
  func incompatible() throws {
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let other = try ModelContainer(
      for: Schema(versionedSchema: Library.self), configurations: memory)
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(for: Other.self, configurations: memory)
    }
    #expect(error?.description.contains("table ZNOTE is not expected") == true)
    #expect(error.map { SwiftDataError.unknownSchema ~= $0 } == true)
    #expect(error?.cause?.state == "unchanged")
    _ = other
  }

  @Test("a store of no version of the plan is refused with the nearest version and the difference")
  func unknownVersion() throws {
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let other = try ModelContainer(for: Other.self, configurations: memory)
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: Library.self), migrationPlan: LibraryPlan.self,
        configurations: memory)
    }
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    #expect(error.map { SwiftDataError.unknownSchema ~= $0 } == true)
    let cause = try #require(error?.cause)
    #expect(cause.code == .unknownVersion && cause.state == "unchanged")
    #expect(cause.cause.contains("the nearest version of LibraryPlan is 1.0.0"))
    #expect(cause.cause.contains("table ZNOTE is missing"))
    // No command can open a store in memory.
    #expect(cause.next == "add the schema of this store to the plan, and a stage that starts at it")
    _ = other
  }

  enum LibraryPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [Library.self] }
    static var stages: [MigrationStage] { [] }
  }

  @Model
  final class Other {
    var name: String
    init(name: String) { self.name = name }
  }
}
