import Foundation
import Instar
import InstarTestSupport
import Synchronization
import Testing

@Model private final class Player {
  var name: String
  @Attribute(.ephemeral) var position = 0
  init(name: String) { self.name = name }
}

@Model private final class Team {
  var name: String
  @Relationship(deleteRule: .cascade, inverse: \Member.team) var members: [Member] = []
  @Relationship(deleteRule: .nullify, inverse: \Flag.team) var flags: [Flag] = []
  init(name: String) { self.name = name }
}

@Model private final class Member {
  var team: Team?
  init(team: Team) { self.team = team }
}

@Model private final class Flag {
  var team: Team?
  init(team: Team) { self.team = team }
}

@Suite("Several contexts of one container")
struct SeveralContextsTests {
  private let container: ModelContainer
  private let first: ModelContext
  private let second: ModelContext

  init() throws {
    container = try Library.container()
    first = ModelContext(container)
    second = ModelContext(container)
    let folder = Library.Folder(uid: "A")
    for number in 1...3 {
      let note = Library.Note(uid: "\(number)", title: "Book \(number)")
      note.folder = folder
      first.insert(note)
    }
    try first.save()
  }

  private func notes(_ context: ModelContext) throws -> [Library.Note] {
    try context.fetch(FetchDescriptor<Library.Note>(sortBy: [SortDescriptor(\.uid)]))
  }

  @Test("a fetch returns what another context saved in models that are in memory already")
  func changes() throws {
    let mine = try notes(second)
    #expect(mine.map(\.title) == ["Book 1", "Book 2", "Book 3"])
    try notes(first)[0].title = "changed"
    try first.save()
    #expect(mine[0].title == "Book 1")
    let again = try notes(second)
    #expect(again.map(\.title) == ["changed", "Book 2", "Book 3"])
    #expect(again[0] === mine[0])
    #expect(!second.hasChanges)
  }

  @Test("what another context deleted is gone")
  func deletion() throws {
    let mine = try notes(second)
    try first.delete(notes(first)[1])
    try first.save()
    #expect(try notes(second).map(\.uid) == ["1", "3"])
    #expect(mine[1].isDeleted && mine[1].modelContext == nil)
    #expect(mine[1].title == "Book 2")
  }

  @Test("unsaved changes win; the other values of the model are the other context's")
  func conflict() throws {
    let mine = try notes(second)
    mine[0].title = "mine"
    let theirs = try notes(first)[0]
    theirs.title = "theirs"
    theirs.count = 77
    try first.save()
    let again = try notes(second)
    #expect(again[0].title == "mine" && again[0].count == 77)
    try second.save()
    #expect(try notes(first)[0].title == "mine")
    #expect(try notes(first)[0].count == 77)
  }

  @Test("a change of what was deleted elsewhere is an error at the save, and undone by rollback()")
  func changeOfDeleted() throws {
    let mine = try notes(second)
    mine[0].title = "mine"
    try first.delete(notes(first)[0])
    try first.save()
    let error = #expect(throws: InstarError.self) { try second.save() }
    #expect(error?.code == .storeChanged)
    second.rollback()
    #expect(try notes(second).map(\.uid) == ["2", "3"])
  }

  @Test("a changed model that is deleted elsewhere after a failed save is gone after rollback()")
  func deletedAfterFailure() throws {
    let mine = try notes(second)[0]
    mine.title = "mine"
    second.beforeWrite = { throw CancellationError() }
    #expect(throws: CancellationError.self) { try second.save() }
    second.beforeWrite = nil
    let theirs = try notes(first)[0]
    theirs.title = "theirs"
    try first.save()
    first.delete(theirs)
    try first.save()
    for _ in 1...2 {
      let error = #expect(throws: InstarError.self) { try second.save() }
      #expect(error?.code == .storeChanged)
      #expect(mine.title == "mine" && mine.modelContext === second)
      // Another row may get its key.
      #expect(second.registeredModel(for: mine.id) as Library.Note? == nil)
    }
    let id = mine.id
    second.rollback()
    #expect(mine.isDeleted && mine.modelContext == nil)
    #expect(second.registeredModel(for: id) as Library.Note? == nil)
    #expect(try notes(second).map(\.uid) == ["2", "3"])
    try second.save()
  }

  @Test(
    "fetches leave out a changed model that was deleted elsewhere after its values were unloaded")
  func fetchWithDeleted() throws {
    let mine = try notes(second)
    mine[0].title = "mine"
    mine[1].title = "also mine"
    let theirs = try notes(first)[0]
    theirs.score = 1
    try first.save()
    // Unloads the values that the other context may have changed.
    #expect(try second.all(Library.Folder.self).count == 1)
    first.delete(theirs)
    try first.save()
    let descriptor = FetchDescriptor<Library.Note>(
      predicate: #Predicate { $0.count == 3 }, sortBy: [SortDescriptor(\.uid)])
    for _ in 1...2 {
      #expect(try second.fetch(descriptor).map(\.title) == ["also mine", "Book 3"])
      #expect(try second.fetchCount(descriptor) == 2)
    }
    let reads: [(String, () -> Void)] = [
      ("count", { #expect(mine[0].count == 0) }), ("score", { #expect(mine[0].score == nil) }),
    ]
    for (name, read) in reads {
      read()
      let error = #expect(throws: InstarError.self) { try second.fetch(descriptor) }
      #expect(error?.what.hasPrefix("cannot read Note ") == true)
      #expect(
        error?.cause == "'\(name)' was read after another context or process deleted the row")
      #expect(error?.next == "call rollback(), or delete the model here too")
    }
    #expect(mine[0].title == "mine")
    second.rollback()
    #expect(try second.fetch(descriptor).map(\.title) == ["Book 2", "Book 3"])
  }

  @Test("a change of the members of a model that was deleted elsewhere is an error too")
  func membersOfDeleted() throws {
    let mine = try #require(try second.fetch(FetchDescriptor<Library.Folder>()).first)
    mine.notes.append(Library.Note(uid: "9", title: "new"))
    let folder = try #require(try first.fetch(FetchDescriptor<Library.Folder>()).first)
    folder.notes = []
    first.delete(folder)
    try first.save()
    let error = #expect(throws: InstarError.self) { try second.save() }
    #expect(error?.code == .storeChanged)
    second.rollback()
    #expect(try notes(second).map(\.uid) == ["1", "2", "3"])
    #expect(try notes(second).allSatisfy { $0.folder == nil })
  }

  @Test(
    "a changed model that was deleted elsewhere does not touch a new row that has its key",
    arguments: [false, true])
  func reusedKey(isDeletedHere: Bool) throws {
    // A table without AUTOINCREMENT uses the highest key again when its row was deleted.
    let container = try PlainPantry.Store.container()
    let (mine, theirs) = (ModelContext(container), ModelContext(container))
    for name in ["a", "b", "c"] { mine.insert(PlainPantry.Jar(name, name)) }
    try mine.save()
    let lost = try #require(try mine.all(PlainPantry.Jar.self).first { $0.name == "c" })
    lost.code = "q"
    lost.labels = [PlainPantry.Label("mine")]
    let other = try #require(try theirs.all(PlainPantry.Jar.self).first { $0.name == "c" })
    theirs.delete(other)
    try theirs.save()
    let error = #expect(throws: InstarError.self) { try mine.save() }
    #expect(error?.code == .storeChanged)
    let new = PlainPantry.Jar("d", "d")
    theirs.insert(new)
    new.labels = [PlainPantry.Label("theirs")]
    try theirs.save()
    #expect(new.id == lost.id)
    let found = try #require(try mine.all(PlainPantry.Jar.self).first { $0.name == "d" })
    #expect(found !== lost && found.code == "d" && found.labels.map(\.text) == ["theirs"])
    if isDeletedHere {
      mine.delete(lost)
      try mine.save()
    } else {
      let error = #expect(throws: InstarError.self) { try mine.save() }
      #expect(error?.code == .storeChanged && error?.what == "cannot save Jar 3")
      mine.rollback()
    }
    #expect(lost.isDeleted && lost.modelContext == nil)
    #expect(found.modelContext === mine)
    for context in [mine, theirs, ModelContext(container)] {
      let jars = try context.all(PlainPantry.Jar.self).filter { $0.name > "b" }
      #expect(jars.map(\.code) == ["d"] && jars.first?.labels.map(\.text) == ["theirs"])
    }
  }

  @Test(
    "a reference to a model that was deleted elsewhere is an error at the save",
    arguments: [false, true])
  func referenceToDeleted(isNew: Bool) throws {
    let mine = try #require(try second.fetch(FetchDescriptor<Library.Folder>()).first)
    let note = try isNew ? Library.Note(uid: "9") : notes(second)[0]
    note.folder = nil
    if !isNew { try second.save() }
    note.folder = mine
    try first.delete(#require(try first.fetch(FetchDescriptor<Library.Folder>()).first))
    try first.save()
    for _ in 1...2 {
      let error = #expect(throws: InstarError.self) { try second.save() }
      #expect(error?.code == .storeChanged)
      #expect(error?.cause.hasPrefix("relationship 'folder' references Folder 1") == true)
    }
    second.rollback()
    #expect(!second.hasChanges)
    #expect(try notes(second).map(\.uid) == (isNew ? [] : ["1"]))
    #expect(try notes(second).allSatisfy { $0.folder == nil })
  }

  @Test("a reference to a model that another process deleted is an error at the save")
  func referenceToDeletedElsewhere() throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path("a.store"))
    let schema = Schema(versionedSchema: Library.self)
    let here = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let there = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let (mine, theirs) = (ModelContext(here), ModelContext(there))
    let (note, owner) = (Library.Note(uid: "1"), Library.Folder(uid: "A"))
    mine.insert(note)
    mine.insert(owner)
    try mine.save()
    note.folder = owner
    try theirs.delete(#require(try theirs.fetch(FetchDescriptor<Library.Folder>()).first))
    try theirs.save()
    // Nothing has read the store since, so only the transaction of the save can notice.
    let error = #expect(throws: InstarError.self) { try mine.save() }
    #expect(error?.code == .storeChanged)
    mine.rollback()
    note.title = "saved"
    try mine.save()
    // Without its context a model has no relationships.
    let reader = ModelContext(there)
    let stored = try notes(reader)
    #expect(stored.map(\.title) == ["saved"])
    #expect(stored.map(\.folder?.uid) == [nil])
    withExtendedLifetime(reader) {}
  }

  @Test("a deleted model that was deleted elsewhere cannot be inserted again")
  func insertionOfDeleted() throws {
    let mine = try notes(second)[0]
    second.delete(mine)
    try first.delete(notes(first)[0])
    try first.save()
    #expect(try notes(second).map(\.uid) == ["2", "3"])
    second.insert(mine)
    #expect(mine.isDeleted && mine.modelContext == nil)
    let error = #expect(throws: InstarError.self) { try second.save() }
    #expect(error?.code == .invalidModel)
    #expect(!second.hasChanges)
    #expect(try notes(second).map(\.uid) == ["2", "3"])
  }

  @Test("the former object of a row that was deleted elsewhere is gone", arguments: [false, true])
  func formerObject(isChanged: Bool) throws {
    let former = try notes(second)[0]
    let current = Library.Note(uid: "1", title: "new edition")
    second.insert(current)
    try second.save()
    if isChanged { former.title = "mine" }
    try first.delete(notes(first)[0])
    try first.save()
    if isChanged {
      let error = #expect(throws: InstarError.self) { try second.save() }
      #expect(error?.code == .storeChanged)
      second.rollback()
    } else {
      try second.save()
      #expect(try notes(second).count == 2)
    }
    #expect(former.isDeleted && former.modelContext == nil)
    #expect(current.isDeleted && current.modelContext == nil)
    _ = former.title
    #expect(try notes(second).map(\.uid) == ["2", "3"])
  }

  @Test("rollback() sees what another context has deleted")
  func rollbackOfDeleted() throws {
    let mine = try notes(second)[0]
    mine.title = "mine"
    try first.delete(notes(first)[0])
    try first.save()
    second.rollback()
    #expect(mine.isDeleted && mine.modelContext == nil)
    _ = mine.title
    #expect(try notes(second).map(\.uid) == ["2", "3"])
  }

  @Test("the error about a lost model names it, not a new one that has its unique value")
  func lostUniqueValue() throws {
    let mine = try notes(second)[0]
    mine.title = "mine"
    second.insert(Library.Note(uid: "1", title: "new"))
    try first.delete(notes(first)[0])
    try first.save()
    let error = #expect(throws: InstarError.self) { try second.save() }
    #expect(error?.code == .storeChanged && error?.what.hasPrefix("cannot save Note ") == true)
    second.delete(mine)
    try second.save()
    #expect(try notes(second).map(\.title) == ["new", "Book 2", "Book 3"])
  }

  @Test("a member that was moved elsewhere stays when its former owner is deleted in both contexts")
  func movedMember() throws {
    let container = try ModelContainer.inMemory(Team.self, Member.self)
    let (mine, theirs) = (ModelContext(container), ModelContext(container))
    let (team, other) = (Team(name: "a"), Team(name: "b"))
    mine.insert(team)
    mine.insert(other)
    mine.insert(Member(team: team))
    try mine.save()
    #expect(team.members.count == 1)
    team.name = "changed"

    let moved = try #require(try theirs.all(Member.self).first)
    moved.team = try theirs.all(Team.self).first { $0.name == "b" }
    try theirs.delete(#require(try theirs.all(Team.self).first { $0.name == "a" }))
    try theirs.save()
    func owners() throws -> [String?] {
      let fresh = ModelContext(container)
      return try withExtendedLifetime(fresh) { try $0.all(Member.self).map(\.team?.name) }
    }
    var stored = try owners()
    #expect(stored == ["b"])

    #expect(throws: InstarError.self) { try mine.save() }
    mine.delete(team)
    try mine.save()
    stored = try owners()
    #expect(stored == ["b"])
  }

  /// When another context moves the members of a team that a save deletes.
  enum Moment: CaseIterable {
    case duringDeleteRules, afterFailure
  }

  @Test(
    "what another context moves to another owner stays there when a save deletes the former one",
    arguments: Moment.allCases)
  func movedFromDeleted(moment: Moment) throws {
    let container = try ModelContainer.inMemory(Team.self, Member.self, Flag.self)
    let mine = ModelContext(container)
    let old = Team(name: "old")
    let (member, flag) = (Member(team: old), Flag(team: old))
    for team in [old, Team(name: "new")] { mine.insert(team) }
    mine.insert(member)
    mine.insert(flag)
    try mine.save()
    // It saves in this thread.
    nonisolated(unsafe) let theirs = ModelContext(container)
    let new = try theirs.all(Team.self).first { $0.name == "new" }
    try #require(try theirs.all(Member.self).first).team = new
    try #require(try theirs.all(Flag.self).first).team = new

    mine.delete(old)
    switch moment {
    case .duringDeleteRules:
      withObservationTracking {
        _ = flag.team
      } onChange: {
        #expect(throws: Never.self) { try theirs.save() }
      }
    case .afterFailure:
      mine.beforeWrite = { throw CancellationError() }
      #expect(throws: CancellationError.self) { try mine.save() }
      mine.beforeWrite = nil
      #expect(mine.deletedModelsArray.count == 1 && mine.changedModelsArray.isEmpty)
      #expect(!member.isDeleted && flag.team === old)
      try theirs.save()
    }
    try mine.save()
    #expect(!theirs.hasChanges)
    #expect(old.isDeleted && old.modelContext == nil && !member.isDeleted)
    for context in [mine, ModelContext(container)] {
      #expect(try context.all(Team.self).map(\.name) == ["new"])
      #expect(try context.all(Member.self).map(\.team?.name) == ["new"])
      #expect(try context.all(Flag.self).map(\.team?.name) == ["new"])
    }
  }

  @Test("after a failed save, new members of a deleted model are in the context again")
  func newMembersOfDeleted() throws {
    let container = try ModelContainer.inMemory(Team.self, Member.self, Flag.self)
    let context = ModelContext(container)
    let (old, new) = (Team(name: "old"), Team(name: "new"))
    for team in [old, new] { context.insert(team) }
    try context.save()
    let (member, flag) = (Member(team: old), Flag(team: old))
    context.insert(member)
    context.insert(flag)
    context.delete(old)
    context.beforeWrite = { throw CancellationError() }
    #expect(throws: CancellationError.self) { try context.save() }
    context.beforeWrite = nil
    #expect(context.insertedModelsArray.count == 2)
    #expect(member.team === old && flag.team === old && member.modelContext === context)
    member.team = new
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Member.self).map(\.team?.name) == ["new"])
      #expect(try context.all(Flag.self).map(\.team?.name) == [nil])
    }
  }

  @Test("two threads that save at once leave no reference to a deleted model")
  func threads() throws {
    let container = try ModelContainer.inMemory(Team.self, Member.self, Flag.self)
    // Each is used by one thread at a time.
    nonisolated(unsafe) let contexts = [ModelContext(container), ModelContext(container)]
    contexts[0].insert(Flag(team: Team(name: "first")))
    try contexts[0].save()
    let flag = try #require(try contexts[1].all(Flag.self).first)
    for round in 1...400 {
      let team = Team(name: "\(round)")
      contexts[0].insert(team)
      try contexts[0].save()
      contexts[0].delete(team)
      flag.team = try contexts[1].all(Team.self).first { $0.name == "\(round)" }
      #expect(flag.team != nil)
      let failures = Mutex<[String]>([])
      DispatchQueue.concurrentPerform(iterations: 2) { number in
        do {
          try contexts[number].save()
        } catch let error as InstarError where number == 1 && error.code == .storeChanged {
          // The other thread has deleted the team first.
          contexts[number].rollback()
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
      #expect(failures.withLock { $0 } == [])
      // A getter of a missing row makes the next fetch throw.
      try container.read { context in
        for flag in try context.all(Flag.self) { _ = flag.team?.name }
        _ = try context.fetchCount(FetchDescriptor<Flag>())
      }
    }
  }

  @Test("a change in memory of what was deleted elsewhere is gone after rollback()")
  func changeInMemoryAndRollback() throws {
    let container = try ModelContainer.inMemory(Player.self)
    let (mine, theirs) = (ModelContext(container), ModelContext(container))
    let player = Player(name: "a")
    mine.insert(player)
    try mine.save()
    player.position = 7
    try theirs.delete(#require(try theirs.all(Player.self).first))
    try theirs.save()
    mine.rollback()
    #expect(player.isDeleted && player.modelContext == nil && !mine.hasChanges)
  }

  @Test("a reference is refused too if the save reads before its transaction")
  func referenceAfterRead() throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path("a.store"))
    let schema = Schema(versionedSchema: Library.self)
    let here = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let there = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let (mine, theirs) = (ModelContext(here), ModelContext(there))
    let (note, owner) = (Library.Note(uid: "1"), Library.Folder(uid: "A"))
    for model in [note, Library.Note(uid: "2")] { mine.insert(model) }
    mine.insert(owner)
    try mine.save()
    let fresh = ModelContext(here)
    let (one, two) = (try notes(fresh)[0], try notes(fresh)[1])
    one.folder = try fresh.fetch(FetchDescriptor<Library.Folder>()).first
    // The delete rules read the relationships of this one.
    fresh.delete(two)
    try theirs.delete(#require(try theirs.fetch(FetchDescriptor<Library.Folder>()).first))
    try theirs.save()
    #expect(throws: InstarError.self) { try fresh.save() }
    let reader = ModelContext(there)
    #expect(try notes(reader).map { $0.folder?.uid } == [nil, nil])
    withExtendedLifetime(reader) {}
  }

  @Test("a change that no save writes does not keep a model that was deleted elsewhere")
  func changeInMemoryOnly() throws {
    let container = try ModelContainer.inMemory(Player.self)
    let (mine, theirs) = (ModelContext(container), ModelContext(container))
    let player = Player(name: "a")
    mine.insert(player)
    try mine.save()
    player.position = 7
    try theirs.delete(#require(try theirs.all(Player.self).first))
    try theirs.save()
    try mine.save()
    #expect(player.position == 7 && player.isDeleted && player.modelContext == nil)
    #expect(!mine.hasChanges)
  }

  @Test("rows exchange a part of their unique values after another context saved them")
  func exchangedUniqueValues() throws {
    let container = try CoreDataLinks.Owner.container()
    let (mine, theirs) = (ModelContext(container), ModelContext(container))
    let owner = CoreDataLinks.Owner("o")
    mine.insert(owner)
    let tickets = (1...2).map { CoreDataLinks.Ticket($0, owner: owner, text: "") }
    for ticket in tickets { mine.insert(ticket) }
    try mine.save()
    (tickets[0].number, tickets[1].number) = (2, 1)
    for ticket in try theirs.all(CoreDataLinks.Ticket.self) { ticket.text = "\(ticket.number)" }
    try theirs.save()
    try mine.save()
    let saved = try container.read { context in
      try context.all(CoreDataLinks.Ticket.self).map { "\($0.number) \($0.text)" }
    }
    #expect(Set(saved) == ["2 1", "1 2"])
  }

  @Test("a member that another context adds to an assigned array is there after the save")
  func memberAddedElsewhere() throws {
    let mine = try #require(try second.fetch(FetchDescriptor<Library.Folder>()).first)
    mine.notes = mine.notes.filter { $0.uid != "1" }
    let theirs = try #require(try first.fetch(FetchDescriptor<Library.Folder>()).first)
    let added = Library.Note(uid: "9", title: "added")
    added.folder = theirs
    try first.save()
    try second.save()
    #expect(Set(mine.notes.map(\.uid)) == ["2", "3", "9"])
    _ = try notes(second)
    #expect(Set(mine.notes.map(\.uid)) == ["2", "3", "9"])
  }

  @Test("members of a relationship are those of the store, and those not saved yet")
  func members() throws {
    let folder = try #require(try second.fetch(FetchDescriptor<Library.Folder>()).first)
    #expect(folder.notes.count == 3)
    let pending = Library.Note(uid: "8", title: "pending")
    second.insert(pending)
    pending.folder = folder
    let removed = try #require(folder.notes.first { $0.uid == "2" })
    removed.folder = nil

    let added = Library.Note(uid: "9", title: "added")
    added.folder = try first.fetch(FetchDescriptor<Library.Folder>()).first
    try first.save()
    _ = try notes(second)
    #expect(Set(folder.notes.map(\.uid)) == ["1", "3", "8", "9"])
    _ = try notes(second)
    #expect(Set(folder.notes.map(\.uid)) == ["1", "3", "8", "9"])
    try second.save()
    #expect(Set(folder.notes.map(\.uid)) == ["1", "3", "8", "9"])
    let theirs = try #require(try first.fetch(FetchDescriptor<Library.Folder>()).first)
    #expect(Set(theirs.notes.map(\.uid)) == ["1", "3", "8", "9"])
  }

  @Test("a row that was taken over by its unique value is read again")
  func upsert() throws {
    let mine = try notes(second)
    first.insert(Library.Note(uid: "1", title: "new edition"))
    try first.save()
    #expect(try notes(second).map(\.title) == ["new edition", "Book 2", "Book 3"])
    #expect(mine[0].title == "new edition")
  }

  @Test("many saves are seen, also those that were too many to be listed")
  func manySaves() throws {
    let mine = try notes(second)
    let theirs = try notes(first)
    for number in 0..<5000 {
      theirs[number % 3].title = "\(number)"
      try first.save()
    }
    #expect(try notes(second).map(\.title) == theirs.map(\.title))
    #expect(mine.map(\.title) == theirs.map(\.title))
  }

  @Test("another container of the same file is another writer like any other")
  func otherContainer() throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path("a.store"))
    let schema = Schema(versionedSchema: Library.self)
    let here = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let there = try ModelContainer(for: schema, configurations: ModelConfiguration(url: url))
    let (mine, theirs) = (ModelContext(here), ModelContext(there))
    mine.insert(Library.Note(uid: "1", title: "one"))
    mine.insert(Library.Note(uid: "2", title: "two"))
    try mine.save()
    let before = try notes(mine)
    let others = try notes(theirs)
    others[0].title = "changed"
    theirs.delete(others[1])
    try theirs.save()
    #expect(try notes(mine).map(\.title) == ["changed"])
    #expect(before[1].isDeleted)
  }

  @Test(
    "erasing leaves an open, empty store; models in memory are gone, and keys are not used again")
  func erasing() throws {
    let mine = try notes(second)
    try container.erase()
    #expect(try notes(first).isEmpty)
    #expect(try notes(second).isEmpty)
    #expect(mine.allSatisfy { $0.isDeleted })
    #expect(try first.fetchCount(FetchDescriptor<Library.Folder>()) == 0)
    first.insert(Library.Note(uid: "1", title: "again"))
    try first.save()
    #expect(try notes(second).map(\.title) == ["again"])
    container.deleteAllData()
    #expect(try notes(second).isEmpty)
  }

  @Test("the main context lives as long as its container, and does not keep the container alive")
  @MainActor
  func mainContext() throws {
    weak var gone: ModelContainer?
    var context: ModelContext?
    do {
      let container = try Library.container()
      gone = container
      container.mainContext.insert(Library.Note(uid: "1", title: "one"))
      #expect(container.mainContext.hasChanges)
      #expect(container.mainContext === container.mainContext)
      #expect(container.mainContext.container === container)
      try container.mainContext.save()
      context = container.mainContext
    }
    #expect(gone == nil)
    // A main context that outlives its container still works.
    #expect(try context?.fetchCount(FetchDescriptor<Library.Note>()) == 1)
    #expect(context?.container.schema.entity(named: "Note") != nil)
  }
}
