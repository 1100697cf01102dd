import Instar
import Testing

@Suite("The models of a version")
struct VersionedSchemaTests {
  enum Diary1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Entry.self] }

    @Model
    final class Entry {
      var text: String
      @Relationship(inverse: \Topic.entries) var topics: [Topic] = []
      var place: Place?
      init(text: String) { self.text = text }
    }

    /// Shared with `Diary2`.
    @Model
    final class Topic {
      var name: String
      var entries: [Entry] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Place {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum Diary2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Entry.self, Diary1.Topic.self] }

    @Model
    final class Entry {
      var text: String
      var mood: String?
      @Relationship(originalName: "topics", inverse: \Diary1.Topic.entries)
      var subjects: [Diary1.Topic] = []
      init(text: String) { self.text = text }
    }
  }

  @Test("a version that lists its root models brings along the models that they reference")
  func related() {
    let schema = Schema(versionedSchema: Diary1.self)
    #expect(schema.entities.map(\.name) == ["Entry", "Place", "Topic"])
    #expect(schema.modelTypes.reached == ["Place", "Topic"])
    #expect(schema.modelProblems().isEmpty)
  }

  @Test("a shared model references the class of its entity in each version")
  func shared() throws {
    let schema = Schema(versionedSchema: Diary2.self)
    #expect(schema.entities.map(\.name) == ["Entry", "Topic"])
    #expect(schema.modelProblems().isEmpty)
    let entries = schema.entity(named: "Topic")?.relationshipsByName["entries"]
    #expect(entries?.destination == "Entry" && entries?.inverseName == "subjects")
    let first = Schema(versionedSchema: Diary1.self).entity(named: "Topic")
    #expect(first?.relationshipsByName["entries"]?.inverseName == "topics")

    let container = try ModelContainer(
      for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    let entry = Diary2.Entry(text: "Rain")
    let (weather, work) = (Diary1.Topic(name: "weather"), Diary1.Topic(name: "work"))
    entry.subjects = [weather, work]
    context.insert(entry)
    try context.save()
    context.delete(weather)
    try context.save()
    let other = ModelContext(container)
    #expect(
      try other.fetch(FetchDescriptor<Diary2.Entry>()).first?.subjects.map(\.name) == ["work"])
  }

  @Test("reading a shared model's relationship as another version's class throws at the next fetch")
  func otherClass() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Diary2.self),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    let topic = Diary1.Topic(name: "weather")
    let entry = Diary2.Entry(text: "Rain")
    context.insert(entry)
    entry.subjects = [topic]
    try context.save()
    #expect(topic.entries.isEmpty)
    let error = #expect(throws: InstarError.self) {
      try context.fetchCount(FetchDescriptor<Diary2.Entry>())
    }
    #expect(
      error?.cause.contains("is declared with VersionedSchemaTests.Diary1.Entry") == true)
    #expect(error?.cause.hasSuffix("it references VersionedSchemaTests.Diary2.Entry") == true)
  }
}
