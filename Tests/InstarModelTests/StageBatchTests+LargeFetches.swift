import Instar
@testable import InstarModel
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

extension StageBatchTests {
  /// How many models have values in memory.
  private func loadedCount(_ models: [Note]) -> Int {
    models.count { $0._modelStorage.state == .loaded }
  }

  /// How many models take the memory of a row. After a statement of the plan, faults have their former values.
  private func rowCount(_ models: [Note]) -> Int {
    models.count { !$0._modelStorage.slots.allSatisfy(\.isNull) }
  }

  private static var byCount: FetchDescriptor<Note> {
    FetchDescriptor(sortBy: [SortDescriptor(\.count)])
  }

  /// Calls `body` in a stage with all notes, of which seven are in memory.
  private func withLargeFetch(
    _ body: ([Note], ModelContext, StoreConnection) throws -> Void
  ) throws {
    try inStage(modelsInMemory: 7) { context, connection in
      try body(try context.fetch(Self.byCount), context, connection)
    }
  }

  /// Changes all notes as most plans for SwiftData do.
  private func appendMarksToArray(_ context: ModelContext) throws {
    for note in try context.fetch(FetchDescriptor<Note>()) { note.title += "!" }
  }

  @Test("an array of many models has the values of some of them, and all can be read in any order")
  func largeFetch() throws {
    try withLargeFetch { notes, context, _ in
      #expect(notes.count == 50)
      #expect(loadedCount(notes) == 7)
      #expect(notes.map(\.title) == Self.titles)
      for number in [49, 3, 20, 21, 22, 0] {
        #expect(notes[number].count == number)
        #expect(notes[number].folder?.uid == "old")
      }
      let again = try context.fetch(Self.byCount)
      #expect(zip(notes, again).allSatisfy { $0 === $1 })
      #expect(!context.hasChanges)
    }
  }

  @Test("a loop over a large array releases what it has changed, and one save writes all of it")
  func changesOfLargeFetch() throws {
    try inStage(modelsInMemory: 7) { context, connection in
      let notes = try context.fetch(FetchDescriptor<Note>())
      for (seen, note) in notes.enumerated() {
        note.title += "!"
        #expect(context.changedModelsArray.count <= 7, "\(seen)")
        #expect(loadedCount(notes) <= 7, "\(seen)")
      }
      #expect(try #require(try number(Self.marked, connection)) >= 7)
      #expect(context.hasChanges)
      #expect(notes.map(\.title) == Self.markedTitles)
      // Without the save nothing is kept.
    }
    #expect(try column(Self.marked) == ["0"])
    try inStage(modelsInMemory: 7) { context, _ in
      try appendMarksToArray(context)
      try context.finishStage()
      #expect(!context.hasChanges)
    }
    #expect(
      try column("SELECT ZTITLE FROM ZNOTE ORDER BY Z_PK") == Self.markedTitles)
    #expect(try column("SELECT count(*) FROM ATRANSACTION") == ["2"])
  }

  @Test("a context keeps no model of an array that the closure has released")
  func releasedArray() throws {
    try inStage(modelsInMemory: 7) { context, _ in
      let identifiers = try context.fetchIdentifiers(FetchDescriptor<Note>())
      func livingCount() -> Int {
        identifiers.count { (context.registeredModel(for: $0) as Note?) != nil }
      }
      for note in try context.fetch(FetchDescriptor<Note>()) where note.count < 20 {
        #expect(livingCount() == 50)
      }
      #expect(livingCount() == 0)
    }
  }

  @Test("models that outlive the closure keep the values of all rows")
  func keptModels() throws {
    var kept: [Note] = []
    try inStage(modelsInMemory: 7) { context, _ in
      kept = try context.fetch(Self.byCount)
      for note in kept { note.title += "!" }
      try context.finishStage()
    }
    #expect(kept.map(\.title) == Self.markedTitles)
  }

  @Test("a statement of the plan leaves the values of an array as they were")
  func statement() throws {
    try withLargeFetch { notes, context, _ in
      for note in notes where note.count > 60 { note.title = "" }
      try context.sql("DELETE FROM ZNOTE")
      #expect(notes.map(\.title) == Self.titles)
      try context.finishStage()
    }
  }

  @Test(
    "a statement that only reads, or writes another table, reads no models of an array",
    arguments: ["SELECT 1 FROM ZNOTE", "UPDATE ZFOLDER SET ZUID = ZUID || '!'"])
  func unrelatedStatement(sql: String) throws {
    try withLargeFetch { notes, context, _ in
      try context.sql(InstarModel.SQL(stringLiteral: sql))
      #expect(rowCount(notes) == 7)
      #expect(notes.map(\.title) == Self.titles)
      #expect(rowCount(notes) <= 7)
    }
  }

  @Test("a query reads no models of an array")
  func query() throws {
    try withLargeFetch { notes, context, _ in
      let counts = try context.sql("SELECT count(*) FROM ZNOTE", as: Int.self)
      #expect(counts == [50])
      #expect(loadedCount(notes) == 7)
    }
  }

  @Test("an array of few or many models shows what statements write, and keeps what they delete")
  func changingStatement() throws {
    for modelsInMemory in [7, 100] {
      let test = try StageBatchTests()
      try test.inStage(modelsInMemory: modelsInMemory) { context, _ in
        let notes = try context.fetch(Self.byCount)
        let deleted: InstarModel.SQL = "DELETE FROM ZNOTE WHERE ZCOUNT % 2 = 1"
        #expect(try context.sql(deleted) == 25)
        #expect(try context.sql("UPDATE ZNOTE SET ZTITLE = ZTITLE || '!'") == 25)
        #expect(
          notes.map(\.title) == (0..<50).map { "note \($0)" + ($0 % 2 == 0 ? "!" : "") },
          "\(modelsInMemory)")
        try context.finishStage()
      }
    }
  }

  @Test("an array keeps what a statement deletes as an earlier statement has left it")
  func deletedAfterChange() throws {
    try withLargeFetch { notes, context, _ in
      #expect(try context.sql("UPDATE ZNOTE SET ZTITLE = ZTITLE || '!'") == 50)
      #expect(try context.sql("DELETE FROM ZNOTE") == 50)
      #expect(notes.map(\.title) == Self.markedTitles)
      try context.finishStage()
    }
  }

  @Test("the rows that are read before a statement are released after it")
  func releasedAfterStatement() throws {
    try withLargeFetch { notes, context, _ in
      try context.sql("UPDATE ZNOTE SET ZTITLE = ZTITLE || '!'")
      for (number, note) in notes.enumerated() {
        #expect(note.title == "note \(number)!")
        #expect(rowCount(notes) <= 7, "\(number)")
      }
    }
  }

  @Test("an array keeps the rows that a trigger of the written table deletes")
  func trigger() throws {
    try inStage(modelsInMemory: 7) { context, connection in
      try connection.perform {
        try $0.run(
          "CREATE TRIGGER emptied AFTER UPDATE ON ZFOLDER BEGIN DELETE FROM ZNOTE; END")
      }
      let notes = try context.fetch(Self.byCount)
      try context.sql("UPDATE ZFOLDER SET ZUID = ZUID || '!'")
      #expect(try context.fetchCount(FetchDescriptor<Note>()) == 0)
      #expect(notes.map(\.title) == Self.titles)
      try context.finishStage()
    }
  }

  @Test("a row that another context deletes is an error for who reads it later")
  func deletedElsewhere() throws {
    try withLargeFetch { notes, context, _ in
      let other = ModelContext(context.container)
      for note in try other.fetch(FetchDescriptor<Note>()) { other.delete(note) }
      try other.save()
      _ = try context.fetchCount(FetchDescriptor<Folder>())
      _ = try context.fetch(FetchDescriptor<Folder>())
      #expect(notes[40].title.isEmpty)
      #expect(throws: InstarError.self) { try context.finishStage() }
    }
  }

  @Test("a model that the array's models retain stays the same object")
  func relatedObjects() throws {
    try inStage(modelsInMemory: 7) { context, _ in
      let notes = try context.fetch(FetchDescriptor<Note>())
      var folders: Set<ObjectIdentifier> = []
      for note in notes { if let folder = note.folder { folders.insert(ObjectIdentifier(folder)) } }
      for note in notes { if let folder = note.folder { folders.insert(ObjectIdentifier(folder)) } }
      #expect(folders.count == 1)
    }
  }

  @Test("a fetch of few models writes nothing, and a fetch in a block of enumerate reads all")
  func smallFetches() throws {
    try withLargeFetch { notes, context, connection in
      notes[0].title += "!"
      _ = try context.fetch(FetchDescriptor<Folder>())
      _ = try context.fetch(FetchDescriptor<Note>(predicate: #Predicate { $0.count == 3 }))
      #expect(try number(Self.marked, connection) == 0)
      context.rollback()
      try context.enumerate(FetchDescriptor<Folder>()) { _ in
        let all = try context.fetch(FetchDescriptor<Note>())
        #expect(loadedCount(all) == 50)
      }
    }
  }

  @Test("a rollback undoes what a loop over a large array has written")
  func rollbackOfLargeFetch() throws {
    try inStage(modelsInMemory: 7) { context, connection in
      let notes = try context.fetch(FetchDescriptor<Note>())
      for note in notes { note.title += "!" }
      context.rollback()
      #expect(!context.hasChanges)
      #expect(try number(Self.marked, connection) == 0)
      #expect(notes.map(\.title) == Self.titles)
      try appendMarksToArray(context)
      try context.save()
    }
    #expect(try column(Self.marked) == ["50"])
  }

  @Test("a row that cannot be read fails the code that reads it, and no other")
  func unreadableRow() throws {
    try inStage(modelsInMemory: 20) { context, connection in
      try connection.perform { try $0.run("UPDATE ZNOTE SET ZTITLE = NULL WHERE ZCOUNT = 31") }
      let notes = try context.fetch(Self.byCount)
      for number in 0..<50 where number != 31 { #expect(notes[number].count == number) }
      try context.save()
      #expect(notes[31].title.isEmpty)
      #expect(throws: InstarError.self) { try context.finishStage() }
    }
  }

  @Test("a change that must wait for a later one is written with that one")
  func swappedValues() throws {
    try withLargeFetch { notes, context, _ in
      for (note, other) in zip(notes, notes.reversed()) where note.count < 25 {
        (note.uid, other.uid) = (other.uid, note.uid)
      }
      try context.finishStage()
    }
    #expect(
      try column("SELECT ZUID FROM ZNOTE ORDER BY ZCOUNT") == (0..<50).reversed().map(String.init))
  }

  @Test("random work on a large array has the results of the same work with all rows in memory")
  func randomWork() throws {
    for seed in UInt64(1)...25 {
      let small = try StageBatchTests().play(seed: seed, modelsInMemory: Int(seed % 9) + 1)
      let whole = try StageBatchTests().play(seed: seed, modelsInMemory: .max)
      #expect(small == whole, "seed \(seed)")
    }
  }

  /// Does random work in one stage and returns what it has read, then the rows.
  private func play(seed: UInt64, modelsInMemory: Int) throws -> [String] {
    var random = SeededGenerator(seed: seed)
    var seen: [String] = []
    try inStage(modelsInMemory: modelsInMemory) { context, _ in
      let tags = ["red", "blue"].map { Library.Tag(name: $0) }
      tags.forEach { context.insert($0) }
      try context.save()
      var notes: [Note] = []
      var folders: [Folder] = []
      func fetch() throws {
        notes = try context.fetch(Self.byCount)
        folders = try context.fetch(FetchDescriptor(sortBy: [SortDescriptor(\.uid)]))
      }
      try fetch()
      for step in 0..<200 {
        guard let note = notes.randomElement(using: &random),
          let folder = folders.randomElement(using: &random),
          let tag = tags.randomElement(using: &random)
        else { break }
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<8: note.title += "\(step)"
        case 8..<10: note.uid = "u\(step)"
        case 10..<12:
          let other = notes.randomElement(using: &random) ?? note
          (note.uid, other.uid) = (other.uid, note.uid)
        case 12..<15: note.folder = folder
        case 15: note.folder = nil
        case 16: folder.notes.append(note)
        case 17..<20:
          if let position = note.tags.firstIndex(where: { $0 === tag }) {
            note.tags.remove(at: position)
          } else {
            tag.notes.append(note)
          }
        case 20:
          context.delete(note)
          try context.save()
          try fetch()
        case 21:
          let new = Note(uid: "n\(step)", title: "new")
          new.count = 100 + step
          context.insert(new)
          new.folder = folder
        case 22:
          context.rollback()
          try fetch()
        case 23: try context.save()
        case 24: try fetch()
        case 25:
          let found = try context.fetch(
            FetchDescriptor<Note>(predicate: #Predicate { $0.folder?.uid == "new" }))
          seen.append("\(found.map(\.uid).sorted())")
        case 26: seen.append("\(folder.uid) \(folder.notes.map(\.uid).sorted())")
        case 27: seen.append("\(tag.name) \(tag.notes.map(\.uid).sorted())")
        case 28: seen.append("\(try context.fetchCount(FetchDescriptor<Note>()))")
        case 29..<32:
          for note in notes where note.count % 3 == step % 3 { note.score = Double(step) }
        default:
          seen.append(
            "\(note.uid) \(note.title) \(note.folder?.uid ?? "-") \(note.tags.map(\.name).sorted())"
          )
        }
      }
      try context.finishStage()
    }
    return try seen
      + column(
        """
        SELECT ZNOTE.ZUID || ' ' || ZTITLE || ' ' || ifnull(ZSCORE, '-') || ' ' || ifnull(f.ZUID, '-')
        FROM ZNOTE LEFT JOIN ZFOLDER AS f ON f.Z_PK = ZFOLDER ORDER BY ZNOTE.ZUID
        """)
  }
}
