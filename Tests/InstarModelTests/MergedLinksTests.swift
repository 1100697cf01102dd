import GRDB
import Instar
import InstarTestSupport
import Testing

/// A new model with unique values of two rows takes one of them, and the other gives way to it.
@Suite("Relationships without an inverse of rows that are merged")
struct MergedLinksTests {
  /// The pantries with their jars, as text.
  private func pantries<P: Pantry>(_ type: P.Type, in context: ModelContext) throws -> [String] {
    let pantries = try context.all(P.self).map { pantry in
      ([pantry.name + ":"] + pantry.jars.map { "\($0.name) \($0.code)" }.sorted())
        .joined(separator: " ")
    }
    return pantries.sorted()
  }

  @Test("the new model gets the members of both rows", arguments: LinkedFormat.allCases)
  func members(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let jars = [P.JarModel("a", "x"), P.JarModel("b", "y")]
      for (jar, text) in zip(jars, ["1", "2"]) {
        context.insert(jar)
        jar.labels = [P.JarModel.LabelModel(text)]
      }
      try context.save()
      let new = P.JarModel("a", "y")
      context.insert(new)
      new.labels = [P.JarModel.LabelModel("3")]
      try context.save()
      for context in [context, ModelContext(container)] {
        let found = try context.all(P.JarModel.self).map { $0.labels.map(\.text).sorted() }
        #expect(found == [["1", "2", "3"]])
      }
    }
    try check(format.pantry)
  }

  @Test(
    "the owner of the row that gives way gets the new model",
    arguments: LinkedFormat.allCases, [false, true])
  func owner(format: LinkedFormat, isInMemory: Bool) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let filling = ModelContext(container)
      let pantry = P("p")
      filling.insert(P.JarModel("a", "x"))
      filling.insert(pantry)
      pantry.jars = [P.JarModel("b", "y"), P.JarModel("c", "z")]
      try filling.save()
      let context = isInMemory ? filling : ModelContext(container)
      context.insert(P.JarModel("a", "y"))
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == ["p: a y c z"])
        #expect(!context.hasChanges)
      }
    }
    try check(format.pantry)
  }

  /// In a Core Data store the row of a jar references its pantry, so it has one at most.
  @Test(
    "an owner of the row that stays keeps it; only a join table has another owner too",
    arguments: LinkedFormat.allCases, [false, true])
  func twoOwners(format: LinkedFormat, isNew: Bool) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let (one, two) = (P.JarModel("a", "x"), P.JarModel("b", "y"))
      let (p, q) = (P("p"), P("q"))
      for model in [p, q] { context.insert(model) }
      if !isNew { p.jars = [one] }
      context.insert(one)
      q.jars = [two]
      try context.save()
      let new = P.JarModel("a", "y")
      if isNew { p.jars = [new] } else { context.insert(new) }
      try context.save()
      for context in [context, ModelContext(container)] {
        let other = format == .plain ? "q: a y" : "q:"
        #expect(try pantries(P.self, in: context) == ["p: a y", other])
      }
    }
    try check(format.pantry)
  }

  /// What happens to the owner of the row that stays.
  enum Loss: CaseIterable {
    case cleared, replaced, deleted
  }

  @Test(
    "if the row that stays loses its owner in the same save, it gets that of the row that gives way",
    arguments: LinkedFormat.allCases, Loss.allCases)
  func lostOwner(format: LinkedFormat, loss: Loss) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let (p, q) = (P("p"), P("q"))
      for model in [p, q] { context.insert(model) }
      p.jars = [P.JarModel("a", "x")]
      q.jars = [P.JarModel("b", "y")]
      try context.save()
      switch loss {
      case .cleared: p.jars = []
      case .replaced: p.jars = [P.JarModel("c", "z")]
      case .deleted: context.delete(p)
      }
      context.insert(P.JarModel("a", "y"))
      try context.save()
      let others =
        switch loss {
        case .cleared: ["p:"]
        case .replaced: ["p: c z"]
        case .deleted: [String]()
        }
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == others + ["q: a y"])
      }
    }
    try check(format.pantry)
  }

  @Test(
    "an owner that gets one of the rows in the same save gets the new model",
    arguments: LinkedFormat.allCases, ["a", "b"])
  func newOwner(format: LinkedFormat, name: String) throws {
    func check<P: Pantry>(_ type: P.Type, isNew: Bool) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let (q, r) = (P("q"), P("r"))
      let jars = [P.JarModel("a", "x"), P.JarModel("b", "y")]
      for jar in jars { context.insert(jar) }
      context.insert(q)
      q.jars = [jars[1]]
      if !isNew { context.insert(r) }
      try context.save()
      context.insert(r)
      // In a Core Data store the jar b leaves q with this save.
      r.jars = jars.filter { $0.name == name }
      context.insert(P.JarModel("a", "y"))
      try context.save()
      for context in [context, ModelContext(container)] {
        let former = format == .plain ? "q: a y" : "q:"
        #expect(try pantries(P.self, in: context) == [former, "r: a y"])
      }
    }
    for isNew in [false, true] { try check(format.pantry, isNew: isNew) }
  }

  @Test(
    "members that the save gives to another model do not follow the row that gives way",
    arguments: LinkedFormat.allCases)
  func movedMembers(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let jars = [P.JarModel("a", "x"), P.JarModel("b", "y"), P.JarModel("c", "z")]
      for jar in jars { context.insert(jar) }
      jars[1].labels = [P.JarModel.LabelModel("1"), P.JarModel.LabelModel("2")]
      try context.save()
      jars[2].labels = jars[1].labels.filter { $0.text == "2" }
      context.insert(P.JarModel("a", "y"))
      try context.save()
      let expected = [["1"] + (format == .plain ? ["2"] : []), ["2"]]
      for context in [context, ModelContext(container)] {
        let found = try context.all(P.JarModel.self).sorted { $0.name < $1.name }
        #expect(found.map { $0.labels.map(\.text).sorted() } == expected)
      }
    }
    try check(format.pantry)
  }

  @Test(
    "an owner with assigned members gets the new model in place of a row that another context added",
    arguments: LinkedFormat.allCases)
  func ownerElsewhere(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let pantry = P("p")
      for jar in [P.JarModel("a", "x"), P.JarModel("b", "y")] { context.insert(jar) }
      context.insert(pantry)
      pantry.jars = [P.JarModel("d", "d"), P.JarModel("e", "e")]
      try context.save()
      pantry.jars = pantry.jars + [P.JarModel("c", "z")]
      let other = ModelContext(container)
      let theirs = try #require(try other.all(P.self).first)
      let jars = try other.all(P.JarModel.self)
      theirs.jars = jars.filter { $0.name == "b" || $0.name == "d" }
      try other.save()
      context.insert(P.JarModel("a", "y"))
      try context.save()
      for context in [context, ModelContext(container)] {
        // The other context has removed e.
        #expect(try pantries(P.self, in: context) == ["p: a y c z d d"])
      }
    }
    try check(format.pantry)
  }

  @Test(
    "a new model that takes the row of a former member is a member, even if another context removed that one",
    arguments: LinkedFormat.allCases)
  func memberRemovedElsewhere(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let pantry = P("p")
      context.insert(pantry)
      pantry.jars = [P.JarModel("a", "x")]
      try context.save()
      pantry.jars = [P.JarModel("a", "y")]
      let other = ModelContext(container)
      try other.all(P.self).first?.jars = []
      try other.save()
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == ["p: a y"])
      }
    }
    try check(format.pantry)
  }

  @Test(
    "after a save that failed, a model that another context deleted meanwhile is gone",
    arguments: LinkedFormat.allCases)
  func deletedElsewhere(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let pantry = P("p")
      let doomed = P.JarModel("c", "z")
      for jar in [P.JarModel("a", "x"), doomed] { context.insert(jar) }
      context.insert(pantry)
      pantry.jars = [P.JarModel("b", "y")]
      try context.save()
      // It runs in this thread, between the two attempts to write.
      nonisolated(unsafe) let other = ModelContext(container)
      for jar in try other.all(P.JarModel.self) where jar.name == "c" { other.delete(jar) }
      withObservationTracking {
        _ = pantry.jars
      } onChange: {
        #expect(throws: Never.self) { try other.save() }
      }
      context.insert(P.JarModel("a", "y"))
      context.beforeWrite = { throw CancellationError() }
      #expect(throws: CancellationError.self) { try context.save() }
      context.beforeWrite = nil
      #expect(!other.hasChanges)
      #expect(try context.all(P.JarModel.self).map(\.name) == ["a", "b", "a"])
      #expect(doomed.isDeleted && doomed.modelContext == nil)
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == ["p: a y"])
      }
    }
    try check(format.pantry)
  }

  @Test(
    "an owner that another context deletes during the merge does not fail the save",
    arguments: LinkedFormat.allCases)
  func ownerDeletedElsewhere(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let pantry = P("q")
      context.insert(P.JarModel("a", "x"))
      context.insert(pantry)
      pantry.jars = [P.JarModel("b", "y")]
      try context.save()
      // It runs in this thread, when the merge changes the pantry.
      nonisolated(unsafe) let other = ModelContext(container)
      try other.delete(#require(try other.all(P.self).first))
      withObservationTracking {
        _ = pantry.jars
      } onChange: {
        #expect(throws: Never.self) { try other.save() }
      }
      context.insert(P.JarModel("a", "y"))
      try context.save()
      #expect(!other.hasChanges)
      #expect(pantry.isDeleted && pantry.modelContext == nil)
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == [])
        #expect(try context.all(P.JarModel.self).map { $0.name + $0.code } == ["ay"])
      }
    }
    try check(format.pantry)
  }

  @Test("the new model goes to an owner that another context gave the row during the save")
  func ownerDuringSave() throws {
    typealias P = CoreDataPantry.Store
    let container = try ModelContainer.inMemory(
      P.self, CoreDataPantry.Jar.self, CoreDataPantry.Label.self, Library.Folder.self,
      Library.Note.self, Library.Tag.self)
    let context = ModelContext(container)
    let (pantry, note, tag) = (P("q"), Library.Note(uid: "1"), Library.Tag(name: "t"))
    context.insert(pantry)
    context.insert(note)
    note.tags = [tag]
    for jar in [P.JarModel("a", "x"), P.JarModel("b", "y")] { context.insert(jar) }
    try context.save()
    #expect(pantry.jars.isEmpty)
    nonisolated(unsafe) let other = ModelContext(container)
    let theirs = try #require(try other.all(P.self).first)
    theirs.jars = try other.all(P.JarModel.self).filter { $0.name == "b" }
    // The save takes the deleted tag from its note after it has looked for the saves of others.
    withObservationTracking {
      _ = note.tags
    } onChange: {
      #expect(throws: Never.self) { try other.save() }
    }
    context.delete(tag)
    context.insert(P.JarModel("a", "y"))
    try context.save()
    #expect(!other.hasChanges)
    for context in [context, ModelContext(container)] {
      #expect(try pantries(P.self, in: context) == ["q: a y"])
    }
  }

  @Test("a save does not write the link of a new model that takes the row of a member again")
  func linkWrittenOnce() throws {
    typealias P = CoreDataPantry.Store
    let folder = try TemporaryFolder()
    func container() throws -> ModelContainer {
      try ModelContainer(
        for: Schema([P.self, CoreDataPantry.Jar.self, CoreDataPantry.Label.self]),
        configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    }
    let filled = try container()
    let filling = ModelContext(filled)
    let filledPantry = P("p")
    filling.insert(filledPantry)
    filledPantry.jars = [P.JarModel("a", "x")]
    try filling.save()
    try filled.close()
    let queue = try DatabaseQueue(path: folder.path("a.store"))
    try queue.writeWithoutTransaction { db in
      let columns = try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info('ZJAR')")
      let link = try #require(columns.first { $0.contains("JARS") })
      try db.execute(
        sql: """
          CREATE TRIGGER again BEFORE UPDATE OF \(link) ON ZJAR WHEN new.\(link) IS old.\(link)
          BEGIN SELECT RAISE(ABORT, 'the link is there'); END
          """)
    }
    try queue.close()
    let opened = try container()
    let context = ModelContext(opened)
    let pantry = try #require(try context.all(P.self).first)
    #expect(pantry.jars.count == 1)
    pantry.jars = [P.JarModel("a", "y")]
    try context.save()
    #expect(try pantries(P.self, in: ModelContext(opened)) == ["p: a y"])
    try opened.close()
  }

  @Test("if the save fails, the owner has its former members", arguments: LinkedFormat.allCases)
  func failedSave(format: LinkedFormat) throws {
    func check<P: Pantry>(_ type: P.Type) throws {
      let container = try P.container()
      let context = ModelContext(container)
      let pantry = P("p")
      let changed = P.JarModel("c", "z")
      for jar in [P.JarModel("a", "x"), changed] { context.insert(jar) }
      context.insert(pantry)
      pantry.jars = [P.JarModel("b", "y")]
      try context.save()
      let other = ModelContext(container)
      other.insert(P.JarModel("d", "d"))
      try other.save()
      context.insert(P.JarModel("a", "y"))
      // No model of the save frees this value.
      changed.code = "d"
      #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
      #expect(pantry.jars.map(\.code) == ["y"] && pantry.jars.map(\.name) == ["b"])
      changed.code = "z"
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try pantries(P.self, in: context) == ["p: a y"])
      }
    }
    try check(format.pantry)
  }
}
