import Instar
import InstarTestSupport
import Testing

@Suite("A model context")
struct ModelContextTests {
  typealias Note = Library.Note
  typealias Folder = Library.Folder
  typealias Tag = Library.Tag

  @Test("every kind of value is read back as it was saved")
  func valuesRoundTrip() throws {
    let container = try Library.container()
    let key = UUID()
    let date = Date(timeIntervalSinceReferenceDate: 712_345_678.25)
    do {
      let context = ModelContext(container)
      let note = Note(uid: "a", title: "Größe 📏")
      note.count = -7
      note.score = 0.1
      note.createdAt = date
      note.key = key
      note.payload = Data([0, 1, 255])
      note.isPinned = true
      note.link = URL(string: "https://example.org/a?b=c")
      note.price = Decimal(string: "10.11")
      context.insert(note)
      try context.save()
    }
    let context = ModelContext(container)
    let note = try #require(try context.fetch(FetchDescriptor<Note>()).first)
    #expect(note.title == "Größe 📏")
    #expect(note.count == -7)
    #expect(note.score == 0.1)
    #expect(note.createdAt == date)
    #expect(note.key == key)
    #expect(note.payload == Data([0, 1, 255]))
    #expect(note.isPinned)
    #expect(note.link == URL(string: "https://example.org/a?b=c"))
    #expect(note.price == Decimal(string: "10.11"))
    #expect(note.shout == "GRÖSSE 📏")
  }

  @Test("optional properties without a value are nil, and stay nil")
  func nilRoundTrip() throws {
    let container = try Library.container()
    let first = ModelContext(container)
    first.insert(Note(uid: "a"))
    try first.save()
    let second = ModelContext(container)
    let note = try #require(try second.fetch(FetchDescriptor<Note>()).first)
    #expect(note.score == nil)
    #expect(note.payload == nil)
    #expect(note.folder == nil)
    #expect(note.tags.isEmpty)
  }

  @Test("one row is one object within a context")
  func uniquing() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    context.insert(Note(uid: "a"))
    try context.save()
    let one = try context.fetch(FetchDescriptor<Note>())[0]
    let two = try context.fetch(FetchDescriptor<Note>())[0]
    #expect(one === two)
    let other = ModelContext(container)
    #expect(try other.fetch(FetchDescriptor<Note>())[0] !== one)
  }

  @Test("a fetch is sorted and limited by SQL, and sees what was not saved yet")
  func fetchWithPendingChanges() throws {
    let context = ModelContext(try Library.container())
    for number in 0..<10 { context.insert(Note(uid: "\(number)", title: "note \(9 - number)")) }
    try context.save()
    var descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\.title)])
    descriptor.fetchLimit = 3
    #expect(try context.fetch(descriptor).map(\.title) == ["note 0", "note 1", "note 2"])
    descriptor.fetchOffset = 8
    #expect(try context.fetch(descriptor).map(\.title) == ["note 8", "note 9"])

    descriptor.fetchOffset = nil
    context.insert(Note(uid: "new", title: "note 00"))
    let last = try context.fetch(
      FetchDescriptor<Note>(predicate: #Predicate { $0.title == "note 9" }))
    last[0].title = "a"
    context.delete(
      try context.fetch(FetchDescriptor<Note>(predicate: #Predicate { $0.title == "note 0" }))[0])
    #expect(try context.fetch(descriptor).map(\.title) == ["a", "note 00", "note 1"])
    #expect(try context.fetchCount(FetchDescriptor<Note>()) == 10)
    descriptor.includePendingChanges = false
    #expect(try context.fetch(descriptor).count == 3)
  }

  @Test("a fetch can be sorted by two keys, and in reverse")
  func sortByTwoKeys() throws {
    let context = ModelContext(try Library.container())
    for (uid, title, count) in [("a", "x", 1), ("b", "y", 2), ("c", "x", 3)] {
      let note = Note(uid: uid, title: title)
      note.count = count
      context.insert(note)
    }
    try context.save()
    let fetched = try context.fetch(
      FetchDescriptor<Note>(sortBy: [
        SortDescriptor(\.title), SortDescriptor(\.count, order: .reverse),
      ]))
    #expect(fetched.map(\.uid) == ["c", "a", "b"])
  }

  @Test("both sides of a relationship are kept in step, before and after saving")
  func inversesInStep() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let inbox = Folder(uid: "inbox")
    let archive = Folder(uid: "archive")
    context.insert(inbox)
    context.insert(archive)
    let notes = (0..<4).map { Note(uid: "\($0)") }
    notes[0].folder = inbox
    inbox.notes.append(notes[1])
    #expect(notes[1].folder === inbox)
    #expect(Set(inbox.notes.map(\.uid)) == ["0", "1"])
    try context.save()
    notes[0].folder = archive
    #expect(inbox.notes.map(\.uid) == ["1"])
    #expect(archive.notes.map(\.uid) == ["0"])
    archive.notes = [notes[1], notes[2]]
    #expect(notes[0].folder == nil)
    #expect(inbox.notes.isEmpty)
    try context.save()

    let other = ModelContext(container)
    let folders = try other.fetch(FetchDescriptor<Folder>(sortBy: [SortDescriptor(\.uid)]))
    #expect(folders[0].notes.map(\.uid).sorted() == ["1", "2"])
    #expect(folders[1].notes.isEmpty)
  }

  @Test("a many-to-many relationship is one set of links, from whichever side it is changed")
  func manyToMany() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let tags = ["red", "green", "blue"].map { Tag(name: $0) }
    let note = Note(uid: "a")
    note.tags = [tags[0], tags[1], tags[1]]
    context.insert(note)
    context.insert(tags[2])
    try context.save()
    #expect(note.tags.count == 2)
    tags[2].notes.append(note)
    tags[0].notes = []
    try context.save()

    let other = ModelContext(container)
    let fetched = try #require(try other.fetch(FetchDescriptor<Note>()).first)
    #expect(Set(fetched.tags.map(\.name)) == ["green", "blue"])
    let red = try #require(
      try other.fetch(FetchDescriptor<Tag>(predicate: #Predicate { $0.name == "red" })).first)
    #expect(red.notes.isEmpty)
    // Changed from a side whose other one was not read yet.
    red.notes.append(fetched)
    #expect(Set(fetched.tags.map(\.name)) == ["green", "blue", "red"])
  }

  @Test("inserting a unique value that exists updates that row and keeps its key")
  func upsert() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let old = Note(uid: "a", title: "old")
    context.insert(old)
    try context.save()
    let identifier = old.persistentModelID
    let other = ModelContext(container)
    let new = Note(uid: "a", title: "new")
    other.insert(new)
    try other.save()
    #expect(new.persistentModelID == identifier)
    #expect(try other.fetch(FetchDescriptor<Note>()).map(\.title) == ["new"])
  }

  @Test("a model that moved to another owner is not deleted with its old one")
  func moveBeforeCascade() throws {
    let container = try Library.container()
    let first = ModelContext(container)
    let target = Folder(uid: "target")
    first.insert(target)
    for number in 0..<5 {
      let note = Note(uid: "\(number)")
      note.folder = Folder(uid: "f\(number)")
      first.insert(note)
    }
    try first.save()
    let context = ModelContext(container)
    let kept = try #require(
      try context.fetch(FetchDescriptor<Folder>(predicate: #Predicate { $0.uid == "target" })).first
    )
    for note in try context.fetch(FetchDescriptor<Note>()) {
      let old = note.folder
      note.folder = kept
      if let old { context.delete(old) }
    }
    try context.save()
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Note>()) == 5)
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Folder>()) == 1)
  }

  @Test("a link moved between two owners that have no inverse is kept, in either order")
  func moveWithoutInverse() throws {
    let container = try ModelContainer(
      for: Schema([Cart.self, Item.self]),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    let carts = [Cart(name: "a"), Cart(name: "b")]
    let items = [Item(name: "x"), Item(name: "y")]
    carts[0].items = [items[0]]
    carts[1].items = [items[1]]
    for cart in carts { context.insert(cart) }
    try context.save()
    carts[1].items.append(items[0])
    carts[0].items = []
    carts[0].items.append(items[1])
    carts[1].items.removeAll { $0 === items[1] }
    try context.save()
    let other = ModelContext(container)
    let fetched = try other.fetch(FetchDescriptor<Cart>(sortBy: [SortDescriptor(\.name)]))
    #expect(fetched.map { $0.items.map(\.name) } == [["y"], ["x"]])
  }

  @Test("a unique value that a changed model frees can be used by a new one")
  func uniqueValueGivenUp() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let old = Note(uid: "a", title: "old")
    context.insert(old)
    try context.save()
    old.uid = "renamed"
    context.insert(Note(uid: "a", title: "new"))
    try context.save()
    let fetched = try ModelContext(container).fetch(
      FetchDescriptor<Note>(sortBy: [SortDescriptor(\.uid)]))
    #expect(fetched.map(\.title) == ["new", "old"])
    #expect(old.uid == "renamed")
  }

  @Test("inserting a model of another context is an error, not a silent loss")
  func insertForeign() throws {
    let container = try Library.container()
    let first = ModelContext(container)
    let note = Note(uid: "a")
    first.insert(note)
    let second = ModelContext(container)
    second.insert(note)
    #expect(throws: InstarError.self) { try second.save() }
  }

  @Test("deleting a model of another context is an error, not a silent loss")
  func deleteForeign() throws {
    let container = try Library.container()
    let (first, second) = (ModelContext(container), ModelContext(container))
    let note = Note(uid: "a")
    first.insert(note)
    try first.save()
    second.delete(note)
    let error = #expect(throws: InstarError.self) { try second.save() }
    #expect(error?.code == .invalidModel && error?.what == "cannot delete Note 1")
    #expect(!note.isDeleted && !first.hasChanges)
    // A model without a context, or one that is gone already, has nothing to delete.
    second.delete(Note(uid: "b"))
    first.delete(note)
    try first.save()
    second.delete(note)
    try second.save()
    #expect(try second.fetchCount(FetchDescriptor<Note>()) == 0)
  }

  @Test("a link to a model of another context is an error, not a silent loss")
  func foreignLinks() throws {
    let container = try Library.container()
    let (first, second) = (ModelContext(container), ModelContext(container))
    let (folder, note) = (Folder(uid: "f"), Note(uid: "a"))
    let tags = [Tag(name: "own"), Tag(name: "foreign")]
    first.insert(folder)
    first.insert(tags[0])
    try first.save()
    second.insert(note)
    second.insert(tags[1])
    try second.save()
    func expectRefused(_ property: String, _ link: () -> Void) throws {
      link()
      let error = #expect(throws: InstarError.self) { try first.save() }
      #expect(error?.code == .invalidModel && error?.what == "cannot set \(property)")
      try first.save()
      #expect(!second.hasChanges)
    }
    try expectRefused("'notes' of Folder 1") { folder.notes = [note] }
    #expect(folder.notes.isEmpty && note.folder == nil)
    let own = Note(uid: "b")
    try expectRefused("'tags' of a new Note") { own.tags = tags }
    #expect(own.tags == [tags[0]] && tags[1].notes.isEmpty)
    try expectRefused("'tags' of Note 2") { own.tags.append(tags[1]) }
    let foreign = Folder(uid: "g")
    second.insert(foreign)
    try second.save()
    own.folder = folder
    try expectRefused("'folder' of Note 2") { own.folder = foreign }
    #expect(own.folder === folder && foreign.notes.isEmpty)
    let stored = try container.read { context in
      try context.all(Note.self).map { "\($0.uid) in \($0.folder?.uid ?? "none")" }
    }
    #expect(stored == ["a in none", "b in f"])
    withExtendedLifetime(second) {}
  }

  @Test("a link to a model of another context that an initializer sets is an error too")
  func foreignLinkOfInitializer() throws {
    let container = try CoreDataAccounts.User.container()
    let (first, second) = (ModelContext(container), ModelContext(container))
    let user = CoreDataAccounts.User("a", "x", size: 1)
    second.insert(user)
    try second.save()
    first.insert(CoreDataAccounts.Card(account: user))
    let error = #expect(throws: InstarError.self) { try first.save() }
    #expect(error?.what == "cannot set 'account' of a new Card")
    // The card has no user.
    #expect(throws: SwiftDataError.modelValidationFailure) { try first.save() }
    #expect(user.card == nil && !second.hasChanges)
  }

  @Test("each save reports a change of a model whose row does not exist", arguments: [false, true])
  func changeOfMissingRow(isReadBefore: Bool) throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let notes = [Note(uid: "a"), Note(uid: "b")]
    for note in notes { context.insert(note) }
    try context.save()
    let identifiers = notes.map(\.persistentModelID)
    for note in notes { context.delete(note) }
    try context.save()
    let other = ModelContext(container)
    func expectReported(_ gone: Note, _ change: () -> Void) throws {
      if isReadBefore {
        #expect(gone.title == "")
        #expect(throws: InstarError.self) { try other.save() }
      }
      change()
      for _ in 1...2 {
        let error = #expect(throws: InstarError.self) { try other.save() }
        #expect(error?.code == .storeChanged)
        #expect(other.hasChanges)
      }
      other.rollback()
      #expect(gone.isDeleted && gone.modelContext == nil)
      try other.save()
    }
    let first = try #require(other.model(for: identifiers[0]) as? Note)
    try expectReported(first) { first.title = "x" }
    let second = try #require(other.model(for: identifiers[1]) as? Note)
    try expectReported(second) { second.folder = Folder(uid: "f") }
    #expect(try ModelContext(container).all(Note.self).isEmpty)
    #expect(try ModelContext(container).all(Folder.self).isEmpty)
  }

  @Test("a save refuses NaN, which SQLite would store as NULL")
  func notANumber() throws {
    let container = try ModelContainer.inMemory(Gauge.self)
    let context = ModelContext(container)
    let gauge = Gauge()
    context.insert(gauge)
    let date = Date(timeIntervalSinceReferenceDate: .nan)
    let changes: [(String, () -> Void, () -> Void)] = [
      ("level", { gauge.level = .nan }, { gauge.level = 1 }),
      ("part", { gauge.part = .nan }, { gauge.part = 1 }),
      ("price", { gauge.price = .nan }, { gauge.price = 1 }),
      ("date", { gauge.date = date }, { gauge.date = nil }),
      ("kind", { gauge.kind = Gauge.Kind(rawValue: .nan) }, { gauge.kind.rawValue = 1 }),
      ("place", { gauge.place.height = .nan }, { gauge.place.height = 1 }),
    ]
    // First new, then changed.
    for title in ["a new Gauge", "Gauge 1"] {
      for (name, change, correct) in changes {
        change()
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error == .modelValidationFailure)
        #expect(error?.cause?.what == "cannot save \(title)")
        #expect(
          error?.cause?.cause == "'\(name)' is not a number (NaN), which SQLite cannot store")
        correct()
      }
      gauge.level = .infinity
      try context.save()
    }
    gauge.price = .nan
    #expect(gauge.price?.isNaN == true)
    context.rollback()
    #expect(try ModelContext(container).all(Gauge.self).map(\.level) == [.infinity])
  }

  @Test("the later one of two new models with one unique value is saved")
  func upsertWithinOneSave() throws {
    let context = ModelContext(try Library.container())
    let first = Note(uid: "a", title: "first")
    let second = Note(uid: "a", title: "second")
    context.insert(first)
    context.insert(second)
    try context.save()
    #expect(try context.fetch(FetchDescriptor<Note>()).map(\.title) == ["second"])
    #expect(first.persistentModelID == second.persistentModelID)
    #expect(first.title == "second")
  }

  @Test("deleting runs the delete rules: cascade deletes, nullify clears")
  func deleteRules() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    let folder = Folder(uid: "f")
    let tag = Tag(name: "t")
    for number in 0..<3 {
      let note = Note(uid: "\(number)")
      note.folder = folder
      note.tags = [tag]
      context.insert(note)
    }
    let free = Note(uid: "free")
    free.tags = [tag]
    context.insert(free)
    try context.save()
    context.delete(folder)
    try context.save()
    #expect(try context.fetch(FetchDescriptor<Note>()).map(\.uid) == ["free"])
    #expect(folder.isDeleted)
    #expect(folder.modelContext == nil)
    let other = ModelContext(container)
    #expect(try other.fetch(FetchDescriptor<Tag>())[0].notes.map(\.uid) == ["free"])
    other.delete(try other.fetch(FetchDescriptor<Tag>())[0])
    try other.save()
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Tag>()) == 0)
  }

  @Test("rollback brings back what the store holds")
  func rollback() throws {
    let context = ModelContext(try Library.container())
    let note = Note(uid: "a", title: "kept")
    context.insert(note)
    try context.save()
    note.title = "changed"
    context.insert(Note(uid: "b"))
    #expect(context.hasChanges)
    context.rollback()
    #expect(!context.hasChanges)
    #expect(note.title == "kept")
    #expect(try context.fetchCount(FetchDescriptor<Note>()) == 1)
    #expect(throws: CancellationError.self) {
      try context.transaction {
        note.title = "changed"
        throw CancellationError()
      }
    }
    #expect(note.title == "kept")
  }

  @Test("a save that fails writes nothing and keeps the changes pending")
  func failedSave() throws {
    let container = try Library.container()
    let context = ModelContext(container)
    context.insert(Note(uid: "a"))
    context.insert(Note(uid: "b"))
    try context.save()
    let notes = try context.fetch(FetchDescriptor<Note>(sortBy: [SortDescriptor(\.uid)]))
    notes[0].title = "changed"
    notes[1].uid = "a"
    let error = #expect(throws: SwiftDataError.self) { try context.save() }
    #expect(error == .modelValidationFailure && error?.cause?.code == .duplicateUniqueValues)
    #expect(error?.cause?.what == "cannot save Note 2")
    #expect(error?.cause?.cause == "'uid' is unique, and Note 1 has the same value")
    #expect(
      error?.cause?.next == "set another value, or change or delete Note 1 in the same save")
    #expect(context.hasChanges)
    let other = ModelContext(container)
    #expect(try other.fetch(FetchDescriptor<Note>()).allSatisfy { $0.title.isEmpty })
  }

  @Test("a model of another schema is refused by name")
  func foreignModel() throws {
    let container = try ModelContainer(
      for: Schema([Library.Tag.self, Library.Note.self, Library.Folder.self]),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    let error = #expect(throws: InstarError.self) {
      try context.fetch(FetchDescriptor<Lonely>())
    }
    #expect(error?.code == .modelNotInSchema)
    #expect(error?.what == "cannot fetch Lonely")
  }

  @Test("models that outlive their context keep their values")
  func modelsOutliveContext() throws {
    let container = try Library.container()
    var note: Note?
    do {
      let context = ModelContext(container)
      let made = Note(uid: "a", title: "kept")
      made.folder = Folder(uid: "f")
      context.insert(made)
      try context.save()
      note = made
    }
    #expect(note?.title == "kept")
    #expect(note?.modelContext == nil)
  }

  @Test("a value of a model that outlives its context is an error if it was not read before")
  func unreadOutlivesContext() throws {
    let container = try Library.container()
    let filling = ModelContext(container)
    let note = Note(uid: "a", title: "kept")
    note.folder = Folder(uid: "f")
    filling.insert(note)
    try filling.save()
    let found = try container.read { context in
      var descriptor = FetchDescriptor<Note>()
      descriptor.propertiesToFetch = [\.uid]
      return try #require(try context.fetch(descriptor).first)
    }
    #expect(found.uid == "a" && found.title == "")
    #expect(throws: InstarError.self) { try filling.fetchCount(FetchDescriptor<Note>()) }
    let folder = try container.read { context in
      try #require(try context.fetch(FetchDescriptor<Note>()).first?.folder)
    }
    #expect(folder.uid == "")
    #expect(throws: InstarError.self) { try filling.save() }
    #expect(try filling.fetchCount(FetchDescriptor<Note>()) == 1)
  }

  @Test("a required relationship of a model that outlives its context is an error")
  func relationshipOutlivesContext() throws {
    let container = try CoreDataAccounts.User.container()
    let filling = ModelContext(container)
    let user = CoreDataAccounts.User("a", "x", size: 1)
    filling.insert(user)
    filling.insert(CoreDataAccounts.Card(account: user))
    try filling.save()
    let card = try container.read { context in
      let card = try #require(try context.all(CoreDataAccounts.Card.self).first)
      #expect(card.account.email == "a")
      return card
    }
    #expect(card.account.email == "")
    let error = #expect(throws: InstarError.self) { try filling.save() }
    #expect(error?.what == "cannot read Card 1")
    #expect(
      error?.cause == "'account' was read after the row was deleted or the context was released")
    #expect(error?.next == "keep the context as long as its models")
    #expect(try filling.all(CoreDataAccounts.Card.self).map(\.account.email) == ["a"])
  }

  @Test("a model's own id takes the place of the persistent identifier")
  func ownIdentifier() throws {
    let lonely = Lonely(id: 7)
    #expect(lonely.id == 7)
    #expect(Note(uid: "a").id.entityName == "Note")
  }
}

@Model
final class Gauge {
  struct Kind: RawRepresentable, Codable {
    var rawValue: Double
  }
  struct Place: Codable {
    var name: String
    var height: Double?
  }
  var level: Double = 0
  var part: Float?
  var price: Decimal?
  var date: Date?
  var kind: Kind = Kind(rawValue: 0)
  var place: Place = Place(name: "", height: 0)
  init() {}
}

@Model
final class Lonely {
  var id: Int
  init(id: Int) { self.id = id }
}

@Model
final class Cart {
  var name: String
  var items: [Item] = []
  init(name: String) { self.name = name }
}

@Model
final class Item {
  var name: String
  init(name: String) { self.name = name }
}
