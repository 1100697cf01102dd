import Instar
import Testing

@Suite("Model actors")
struct ModelActorTests {
  @Model
  final class Note {
    var title: String
    init(_ title: String) { self.title = title }
  }

  @ModelActor
  actor Importer {
    private var count = 0

    func add(_ titles: [String]) throws -> [PersistentIdentifier] {
      let notes = titles.map { Note($0) }
      for note in notes { modelContext.insert(note) }
      try modelContext.save()
      count += titles.count
      return notes.map(\.persistentModelID)
    }

    func title(of id: PersistentIdentifier) -> String? { self[id, as: Note.self]?.title }

    func remove(_ id: PersistentIdentifier) throws {
      guard let note = self[id, as: Note.self] else { return }
      modelContext.delete(note)
      try modelContext.save()
    }

    func isOnMainThread() -> Bool { Thread.isMainThread }
    func total() -> Int { count }
  }

  @ModelActor(disableGenerateInit: true)
  actor Renamer {
    private let prefix: String

    init(modelContainer: ModelContainer, prefix: String) {
      self.modelContainer = modelContainer
      modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(modelContainer))
      self.prefix = prefix
    }

    func run() throws {
      for note in try modelContext.fetch(FetchDescriptor<Note>()) {
        note.title = prefix + note.title
      }
      try modelContext.save()
    }
  }

  /// One written without the macro.
  actor Counter: ModelActor {
    nonisolated let modelContainer: ModelContainer
    nonisolated let modelExecutor: any ModelExecutor

    init(_ container: ModelContainer) {
      modelContainer = container
      modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
    }

    func count() throws -> Int { try modelContext.fetchCount(FetchDescriptor<Note>()) }
  }

  private let container: ModelContainer

  init() throws {
    container = try ModelContainer(
      for: Note.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }

  @Test("model actors work on a context of their own, away from the main thread")
  func ownContext() async throws {
    let importer = Importer(modelContainer: container)
    _ = try await importer.add(["a", "b"])
    #expect(await importer.isOnMainThread() == false)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Note>()) == 2)
    #expect(importer.modelContainer === container)
  }

  @Test("model actors take initializers of their own, and need not be made by the macro")
  func ownInitializers() async throws {
    _ = try await Importer(modelContainer: container).add(["a"])
    try await Renamer(modelContainer: container, prefix: "my ").run()
    #expect(try ModelContext(container).fetch(FetchDescriptor<Note>()).map(\.title) == ["my a"])
    #expect(try await Counter(container).count() == 1)
  }

  @Test(
    "model actors find a model by its identifier, also of another actor, and none whose row is gone"
  )
  func byIdentifier() async throws {
    let (one, other) = (
      Importer(modelContainer: container), Importer(modelContainer: container)
    )
    let ids = try await one.add(["a", "b"])
    #expect(await other.title(of: ids[0]) == "a")
    try await one.remove(ids[0])
    #expect(await other.title(of: ids[0]) == nil)
    #expect(await other.title(of: ids[1]) == "b")
  }

  @Test("model actors run one job at a time, however many jobs there are")
  func serial() async throws {
    let importer = Importer(modelContainer: container)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<50 {
        group.addTask { _ = try await importer.add(["\(number)"]) }
      }
      try await group.waitForAll()
    }
    #expect(await importer.total() == 50)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Note>()) == 50)
  }
}
