import GRDB
import Instar
import InstarModel
import InstarStore
import Synchronization
import Testing

@Suite("Fetching less, more, and in batches")
struct BatchTests {
  typealias Note = Library.Note
  typealias Folder = Library.Folder
  typealias Tag = Library.Tag

  /// A store with notes in folders, each with two tags, and a fresh context on it.
  private func library(notes: Int) throws -> ModelContext {
    let container = try Library.container()
    let context = ModelContext(container)
    let folders = (0..<4).map { Folder(uid: "f\($0)", name: "folder \($0)") }
    let tags = (0..<3).map { Tag(name: "tag \($0)") }
    folders.forEach { context.insert($0) }
    for number in 0..<notes {
      let note = Note(uid: "\(number)", title: "note \(number)")
      note.count = number
      note.folder = number % 5 == 4 ? nil : folders[number % 4]
      note.tags = [tags[number % 3], tags[(number + 1) % 3]]
      context.insert(note)
    }
    try context.save()
    return ModelContext(container)
  }

  /// The statements that `body` makes the container's store run.
  private func statements(of container: ModelContainer, _ body: () throws -> Void) throws
    -> [String]
  {
    let seen = Mutex<[String]>([])
    try container.connection.perform { session in
      session.database.trace { event in seen.withLock { $0.append("\(event)") } }
    }
    try body()
    try container.connection.perform { $0.database.trace(options: []) }
    return seen.withLock { $0 }
  }

  @Test("prefetching costs one statement for the rows and one for each relationship")
  func prefetching() throws {
    let context = try library(notes: 50)
    var descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.count)])
    descriptor.relationshipKeyPathsForPrefetching = [\.folder, \.tags]
    let seen = try statements(of: context.container) {
      for note in try context.fetch(descriptor) {
        #expect(note.folder?.name == (note.count % 5 == 4 ? nil : "folder \(note.count % 4)"))
        #expect(
          Set(note.tags.map(\.name))
            == ["tag \(note.count % 3)", "tag \((note.count + 1) % 3)"])
      }
    }
    #expect(seen.count == 3, "\(seen)")
    var folders = FetchDescriptor<Folder>()
    folders.relationshipKeyPathsForPrefetching = [\.notes]
    let other = ModelContext(context.container)
    let seenFromFolders = try statements(of: context.container) {
      let counts = try other.fetch(folders).map { $0.notes.count }
      #expect(counts == [10, 10, 10, 10])
    }
    #expect(seenFromFolders.count == 2, "\(seenFromFolders)")
  }

  @Test("a prefetched relationship has what was changed in memory, and can be changed and saved")
  func prefetchWithChanges() throws {
    let context = try library(notes: 10)
    let tag = Tag(name: "new")
    let note = try context.fetch(FetchDescriptor<Note>(predicate: #Predicate { $0.uid == "0" }))[0]
    tag.notes.append(note)
    context.insert(tag)
    var descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.uid)])
    descriptor.relationshipKeyPathsForPrefetching = [\.tags]
    let notes = try context.fetch(descriptor)
    #expect(notes[0].tags.count == 3)
    notes[1].tags.removeAll()
    try context.save()
    let other = ModelContext(context.container)
    #expect(try other.fetch(descriptor).prefix(3).map { $0.tags.count } == [3, 0, 2])
  }

  @Test("a fetch of some properties reads the others when they are asked for")
  func someProperties() throws {
    let context = try library(notes: 3)
    var descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.count)])
    descriptor.propertiesToFetch = [\.title, \.count]
    let seen = try statements(of: context.container) {
      let notes = try context.fetch(descriptor)
      #expect(notes.map(\.title) == ["note 0", "note 1", "note 2"])
      notes[1].title = "changed"
    }
    #expect(seen.count == 1)
    #expect(!seen.joined().contains("ZUID"))
    let notes = try context.fetch(descriptor)
    #expect(notes.map(\.uid) == ["0", "1", "2"])
    #expect(notes.map { $0.folder?.uid } == ["f0", "f1", "f2"])
    #expect(notes[1].title == "changed")
    try context.save()
    let other = try ModelContext(context.container).fetch(
      FetchDescriptor<Note>(sortBy: [SortDescriptor(\.count)]))
    #expect(other.map(\.title) == ["note 0", "changed", "note 2"])
    #expect(other.map(\.uid) == ["0", "1", "2"])
    var unknown = FetchDescriptor<Note>()
    unknown.propertiesToFetch = [\.shout]
    let error = #expect(throws: SwiftDataError.self) { try context.fetch(unknown) }
    #expect(SwiftDataError.unsupportedKeyPath ~= (error ?? SwiftDataError.unknownSchema))
  }

  @Test("enumerating passes every model once, in order, and holds one batch at a time")
  func enumerate() throws {
    let context = try library(notes: 97)
    for sortBy in [[], [SortDescriptor<Note>(\.count, order: .reverse)]] {
      var descriptor = FetchDescriptor<Note>(
        predicate: #Predicate { $0.count >= 7 }, sortBy: sortBy)
      descriptor.relationshipKeyPathsForPrefetching = [\.folder]
      var counts: [Int] = []
      var first: PersistentIdentifier?
      var others = 0
      try context.enumerate(descriptor, batchSize: 10) { note in
        counts.append(note.count)
        // Reached through relationships, both ways: the objects refer to each other.
        others += note.folder?.notes.count ?? 0
        first = first ?? note.persistentModelID
      }
      #expect(counts == (sortBy.isEmpty ? Array(7..<97) : Array((7..<97).reversed())))
      #expect(others > 0)
      let identifier = try #require(first)
      let living: Note? = context.registeredModel(for: identifier)
      #expect(living == nil)
    }
  }

  @Test("enumerating while changing and saving changes every row")
  func enumerateAndSave() throws {
    let context = try library(notes: 40)
    try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
      note.title = "seen \(note.uid)"
      if note.count % 7 == 6 { try context.save() }
    }
    try context.save()
    let other = ModelContext(context.container)
    #expect(try other.fetch(FetchDescriptor<Note>()).allSatisfy { $0.title == "seen \($0.uid)" })
    #expect(throws: CancellationError.self) {
      try context.enumerate(FetchDescriptor<Note>()) { _ in throw CancellationError() }
    }
  }

  @Test("a fetch in batches finds what a fetch finds")
  func batches() throws {
    let context = try library(notes: 25)
    let descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.count)])
    let batches = try context.fetch(descriptor, batchSize: 10)
    #expect(batches.count == 25)
    #expect(batches.map(\.count) == Array(0..<25))
    #expect(batches[24].title == "note 24")
    let identifiers = try context.fetchIdentifiers(descriptor)
    #expect(identifiers == batches.map(\.persistentModelID))
    #expect(try Array(context.fetchIdentifiers(descriptor, batchSize: 3)) == identifiers)
    batches[3].title = "changed"
    let error = #expect(throws: SwiftDataError.self) {
      try context.fetch(descriptor, batchSize: 10)
    }
    #expect(
      SwiftDataError.includePendingChangesWithBatchSize ~= (error ?? SwiftDataError.unknownSchema))
    #expect(try context.fetchIdentifiers(descriptor) == identifiers)
  }

  @Test("a model is found by its identifier, registered or not")
  func byIdentifier() throws {
    let context = try library(notes: 3)
    let identifier = try context.fetchIdentifiers(
      FetchDescriptor<Note>(predicate: #Predicate { $0.uid == "1" }))[0]
    #expect((context.registeredModel(for: identifier) as Note?) == nil)
    let note = try #require(context.model(for: identifier) as? Note)
    #expect(note.title == "note 1")
    #expect((context.registeredModel(for: identifier) as Note?) === note)
    let new = Note(uid: "new")
    context.insert(new)
    #expect(context.model(for: new.persistentModelID) === new)
    let decoded = try JSONDecoder().decode(
      PersistentIdentifier.self, from: JSONEncoder().encode(identifier))
    #expect(context.model(for: decoded) === note)
  }

  @Test("an identifier of a missing row makes the next fetch throw")
  func danglingIdentifier() throws {
    let context = try library(notes: 1)
    let lonely = try ModelContainer(
      for: Lonely.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let other = ModelContext(lonely)
    other.insert(Lonely(id: 1))
    try other.save()
    let foreign = try other.fetchIdentifiers(FetchDescriptor<Lonely>())[0]
    #expect(context.model(for: foreign).isDeleted)
    let error = #expect(throws: InstarError.self) { try context.fetch(FetchDescriptor<Note>()) }
    #expect(error?.code == .modelNotInSchema)
  }

  @Test("a value that the property's type cannot decode deletes no row", arguments: [0, 1, 2])
  func deleteByUndecodableValue(position: Int) throws {
    let above = #Predicate<Note> { $0.count > 2 }
    let other = #Predicate<Note> { $0.count != 0 }
    let negated = #Predicate<Note> { !($0.count < 2) }
    let container = try library(notes: 2).container
    try container.connection.perform {
      try $0.run("UPDATE ZNOTE SET ZCOUNT = 'many' WHERE ZCOUNT = 0")
    }
    let context = ModelContext(container)
    try context.delete(model: Note.self, where: [above, other, negated][position])
    try context.save()
    let count = try container.connection.perform {
      try $0.integer("SELECT count(*) FROM ZNOTE WHERE ZCOUNT = 'many'")
    }
    #expect(count == 1)
  }

  @Test("models are deleted by a predicate at the next save, with their delete rules")
  func deleteByPredicate() throws {
    let context = try library(notes: 20)
    try context.delete(model: Folder.self, where: #Predicate { $0.name == "folder 0" })
    #expect(try ModelContext(context.container).fetchCount(FetchDescriptor<Note>()) == 20)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Note>()) == 16)
    try context.delete(model: Note.self)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Note>()) == 0)
    #expect(try context.fetchCount(FetchDescriptor<Folder>()) == 3)
  }
}
