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
    /// Refuses what is empty, in whichever way it is made.
    struct MailAddress: Codable, Equatable {
      let text: String
      init?(_ text: String) {
        guard text.contains("@") else { return nil }
        self.text = text
      }
      init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
        guard text.contains("@") else { throw CocoaError(.coderInvalidValue) }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
      }
    }
    struct Mailbox: Codable, Equatable {
      enum Kind: Int, Codable { case inbox = 1 }
      let address: MailAddress
      let quota: Double
      let kinds: [Kind]
      let names: Set<String>
      weak var owner: Owner?
      let spare: MailAddress?

      enum CodingKeys: CodingKey { case address, quota }
      init(address: MailAddress) {
        (self.address, quota, kinds, names, spare) = (address, 1, [.inbox], ["a"], address)
      }
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(address: try container.decode(MailAddress.self, forKey: .address))
        guard try container.decode(Double.self, forKey: .quota) > 0 else {
          throw CocoaError(.coderInvalidValue)
        }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(address, forKey: .address)
        try container.encode(quota, forKey: .quota)
      }
      static func == (one: Mailbox, other: Mailbox) -> Bool { one.address == other.address }
    }
    final class Owner {}

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
      var mail: MailAddress?
      var requiredMail: MailAddress
      var mailbox: Mailbox
      init() throws {
        let ada = try #require(MailAddress("ada@example.org"))
        requiredMail = ada
        mailbox = Mailbox(address: ada)
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
    note.author = try Models.Author()
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
    #expect(author.mail == nil && author.requiredMail.text == "")
    #expect(author.mailbox.address.text == "" && author.mailbox.quota == 0)
    #expect(author.mailbox.kinds.isEmpty && author.mailbox.names.isEmpty)
    #expect(author.mailbox.owner == nil && author.mailbox.spare == nil)
    let error = #expect(throws: InstarError.self) { try other.save() }
    #expect(error?.what.contains("Author 1") == true)
    _ = author.rank
    let second = #expect(throws: InstarError.self) {
      try other.fetch(FetchDescriptor<Models.Note>())
    }
    #expect(second?.cause.contains("'rank'") == true, "\(String(describing: second))")
    #expect(try other.fetch(FetchDescriptor<Models.Note>()).count == 1)
  }

  @Test("a batch has its models in their places, also where a row went after its key was read")
  func goneRowOfBatch() throws {
    let container = try ModelContainer(
      for: Models.Note.self, Models.Author.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    for title in ["a", "b", "c"] { context.insert(Models.Note(title: title)) }
    try context.save()
    let reading = ModelContext(container)
    let notes = try reading.fetch(
      FetchDescriptor<Models.Note>(sortBy: [SortDescriptor(\.title)]), batchSize: 10)
    try context.delete(model: Models.Note.self, where: #Predicate { $0.title == "b" })
    try context.save()
    #expect(notes.map(\.title) == ["a", "", "c"])
    let error = #expect(throws: InstarError.self) {
      try reading.fetchCount(FetchDescriptor<Models.Note>())
    }
    #expect(error?.what == "cannot read Note 2")
    #expect(try reading.fetchCount(FetchDescriptor<Models.Note>()) == 2)
  }

  @Test("a change of a model whose other values cannot be read is saved after that error")
  func changeOfUnreadable() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    func open() throws -> ModelContainer {
      try ModelContainer(
        for: Models.Note.self, Models.Author.self,
        configurations: ModelConfiguration(url: URL(filePath: path)))
    }
    let first = try open()
    let author = try Models.Author()
    let context = ModelContext(first)
    context.insert(author)
    try context.save()
    let identifier = author.persistentModelID
    try first.close()
    try DatabaseQueue(path: path).write { try $0.execute(sql: "UPDATE ZAUTHOR SET ZRANK = 'x'") }
    let changing = ModelContext(try open())
    let unreadable = try #require(changing.model(for: identifier) as? Models.Author)
    unreadable.name = "Eve"
    let error = #expect(throws: InstarError.self) { try changing.save() }
    #expect(error?.code == .missingRequiredValues)
    #expect(changing.hasChanges && unreadable.name == "Eve")
    try changing.save()
    let names = try DatabaseQueue(path: path).read {
      try String.fetchAll($0, sql: "SELECT ZNAME FROM ZAUTHOR")
    }
    #expect(names == ["Eve"])
  }

  @Test("a schema without models gives a model without a row, and an error")
  func noModels() throws {
    let container = try ModelContainer(
      for: Models.Note.self, Models.Author.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    let note = Models.Note(title: "a")
    context.insert(note)
    try context.save()
    let empty = ModelContext(
      try ModelContainer(
        for: Schema([]), configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    #expect(empty.model(for: note.persistentModelID).isDeleted)
    let error = #expect(throws: InstarError.self) { try empty.save() }
    #expect(error?.code == .modelNotInSchema)
  }

  @Test(
    "an identifier of an entity that the schema does not have gives a model without a row, and an error"
  )
  func unknownEntity() throws {
    let all = ModelContext(
      try ModelContainer(
        for: Models.Note.self, Models.Author.self,
        configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let author = try Models.Author()
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
    #expect(error?.what.contains("'doubles' of a new EveryType") == true)
  }

  @Model
  final class Measurement {
    var values: [Double] = [.infinity]
    init() {}
  }

  @Test("an initial value that its type cannot encode is refused when the schema is used")
  func unencodableDefault() throws {
    let problems = Schema(Measurement.self).modelProblems()
    #expect(problems.count == 1)
    #expect(
      problems.first?.cause.hasPrefix(
        "the initial value of Measurement.values cannot be stored: ") == true)
  }

  @Test("a value that its type cannot decode is refused with what the type says of it")
  func undecodableValue() throws {
    let folder = try TemporaryFolder()
    let configuration = ModelConfiguration(url: URL(filePath: folder.path("a.store")))
    func open() throws -> ModelContainer {
      try ModelContainer(
        for: Models.Note.self, Models.Author.self, configurations: configuration)
    }
    let first = try open()
    let context = ModelContext(first)
    context.insert(try Models.Author())
    try context.save()
    try first.close()
    try DatabaseQueue(path: folder.path("a.store")).write {
      try $0.execute(sql: "UPDATE ZAUTHOR SET ZMAILBOX = CAST('{\"quota\":1}' AS BLOB)")
    }
    let reading = ModelContext(try open())
    let error = #expect(throws: InstarError.self) {
      try reading.fetch(FetchDescriptor<Models.Author>())
    }
    #expect(
      error?.cause
        == "the value stored in 'mailbox' is not of type Mailbox: the value has no 'address'")
    #expect(error?.next?.hasPrefix("correct the value in the store") == true)
  }
}
