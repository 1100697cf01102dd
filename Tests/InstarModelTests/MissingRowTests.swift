import GRDB
import Instar
import InstarTestSupport
import Testing

/// What a getter gives for a row that is gone, which a relationship of an old store may refer to: it cannot throw.
@Suite("Reading what is not there")
struct MissingRowTests {
  enum Models {
    enum Rank: String, Codable { case low, high }
    enum Event: Codable, Equatable { case moved(to: String, times: [Int]) }
    struct Address: Codable, Equatable {
      var street: String
      var number: Int?
      var rank: Rank
      var inner: [Address]
    }
    struct Checked: Codable, Equatable {
      var text: String
    }

    @Model
    final class Note {
      var title: String = ""
      var author: Author?
      init(title: String) { self.title = title }
    }

    @Model
    final class Author {
      var name: String
      var rank: Rank
      var event: Event
      var address: Address
      var day: Date
      var tags: [String]
      init() {
        name = "Ada"
        rank = .high
        event = .moved(to: "Riga", times: [1])
        address = Address(street: "A", number: 1, rank: .high, inner: [])
        day = .now
        tags = ["x"]
      }
    }
  }

  @Test("every property gives a placeholder, and the next fetch throws once, naming row and entity")
  func goneRow() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    func open() throws -> ModelContainer {
      try ModelContainer(
        for: Models.Note.self, Models.Author.self,
        configurations: ModelConfiguration(url: URL(filePath: path)))
    }
    let first = try open()
    let note = Models.Note(title: "a")
    note.author = Models.Author()
    let context = ModelContext(first)
    context.insert(note)
    try context.save()
    try first.close()
    try DatabaseQueue(path: path).write { try $0.execute(sql: "DELETE FROM ZAUTHOR") }

    let other = ModelContext(try open())
    let found = try #require(try other.fetch(FetchDescriptor<Models.Note>()).first)
    let author = try #require(found.author)
    #expect(author.name == "" && author.rank == .low)
    #expect(author.event == .moved(to: "", times: []))
    #expect(author.address == Models.Address(street: "", number: nil, rank: .low, inner: []))
    #expect(author.tags.isEmpty)
    let error = #expect(throws: InstarError.self) { try other.save() }
    #expect(error?.what.contains("Author 1") == true)
    _ = author.rank
    let second = #expect(throws: InstarError.self) {
      try other.fetch(FetchDescriptor<Models.Note>())
    }
    #expect(second?.cause.contains("'rank'") == true, "\(String(describing: second))")
    #expect(try other.fetch(FetchDescriptor<Models.Note>()).count == 1)
  }

  @Test(
    "an identifier of an entity that the schema does not have gives a model without a row, and an error"
  )
  func unknownEntity() throws {
    let all = ModelContext(
      try ModelContainer(
        for: Models.Note.self, Models.Author.self,
        configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let author = Models.Author()
    all.insert(author)
    try all.save()
    let context = ModelContext(
      try ModelContainer(
        for: Catalog.Room.self, Catalog.Shelf.self, Catalog.Item.self, Catalog.Label.self,
        configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let model = context.model(for: author.persistentModelID)
    #expect(model.isDeleted && model.modelContext == nil)
    #expect(throws: InstarError.self) { try context.save() }
  }

  @Test(
    "a value that its type cannot encode makes the save throw, also where an initializer was given it"
  )
  func unencodableValue() throws {
    let context = ModelContext(
      try ModelContainer(
        for: EveryType.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let model = EveryType()
    model.doubles = [.infinity]
    context.insert(model)
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.what.contains("'doubles' of EveryType") == true)
  }
}
