import Foundation
import GRDB
import Instar
import InstarModel
import InstarSchema
import InstarStore
import InstarTestSupport
import Synchronization
import Testing

@Suite("Changing models in batches in a stage")
struct StageBatchTests {
  typealias Note = Library.Note
  typealias Folder = Library.Folder

  private let folder: TemporaryFolder
  private let path: String

  /// The titles of the notes by count, and after each was marked.
  static let titles = (0..<50).map { "note \($0)" }
  static let markedTitles = titles.map { $0 + "!" }
  /// How many notes are marked.
  static let marked = "SELECT count(*) FROM ZNOTE WHERE ZTITLE LIKE '%!'"

  /// A store with 50 notes in one folder, and another folder.
  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: Library.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let folders = ["old", "new"].map { Folder(uid: $0) }
    folders.forEach { context.insert($0) }
    for number in 0..<50 {
      let note = Note(uid: "\(number)", title: "note \(number)")
      note.count = number
      note.folder = folders[0]
      context.insert(note)
    }
    try context.save()
    try container.close()
  }

  /// Calls `body` with the context of a stage's closure, as the closure gets it.
  func inStage(
    meter: WorkMeter? = nil, log: SQLLog? = nil, modelsInMemory: Int? = nil,
    isReadOnly: Bool = false,
    _ body: (ModelContext, StoreConnection) throws -> Void
  ) throws {
    let connection = try StoreConnection(path: path, durability: .clone, log: log)
    let context = try ModelContext.forStage(
      [(schema: Schema(versionedSchema: Library.self), connection: connection, store: nil)],
      other: [],
      closure: .didMigrate, keptValues: ScratchpadStore(), isReadOnly: isReadOnly, meter: meter)
    if let modelsInMemory { context.modelsInMemory = modelsInMemory }
    try body(context, connection)
    try connection.close()
  }

  func column(_ sql: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { db in
      try Row.fetchAll(db, sql: sql).map { row in
        let value: DatabaseValue = row[0]
        return String.fromDatabaseValue(value) ?? Int.fromDatabaseValue(value).map(String.init)
          ?? ""
      }
    }
  }

  /// What the connection reads in its own transaction.
  func number(_ sql: String, _ connection: StoreConnection) throws -> Int64? {
    try connection.perform { try $0.integer(sql) }
  }

  private func appendMarks(_ context: ModelContext, escaping: Bool = false) throws {
    try context.enumerate(
      FetchDescriptor<Note>(), batchSize: 7, allowEscapingMutations: escaping
    ) { note in note.title += "!" }
  }

  /// A meter that finds a report due each time that it reads the clock.
  private func meter(
    isCanceled: @escaping () -> Bool = { false },
    report: @escaping (WorkProgress) -> Void = { _ in }
  ) -> WorkMeter {
    var time = ContinuousClock.now
    return WorkMeter(
      now: {
        time += .seconds(1)
        return time
      }, isCanceled: isCanceled, report: report)
  }

  @Test("enumerate reports its rows, and ends where the run is canceled")
  func progress() throws {
    var reports: [WorkProgress] = []
    var isCanceled = false
    let meter = meter(isCanceled: { isCanceled }, report: { reports.append($0) })
    try inStage(meter: meter) { context, _ in
      let descriptor = FetchDescriptor<Note>(predicate: #Predicate { $0.count >= 10 })
      try context.enumerate(descriptor, batchSize: 7) { note in note.title += "!" }
      // The end is a report of its own.
      #expect(reports.map(\.done) == Array(1...40) + [40])
      #expect(reports.allSatisfy { $0.what == "rows of Note" && $0.total == 40 })
      var seen = 0
      #expect(throws: CancellationError.self) {
        try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { _ in
          seen += 1
          isCanceled = true
        }
      }
      #expect(seen == 7)
    }
  }

  @Test(
    "a statement of a closure reports the rows that it has read, as part of what the closure names")
  func statementProgress() throws {
    var reports: [WorkProgress] = []
    try inStage(meter: meter(report: { reports.append($0) })) { context, connection in
      let rows = try connection.perform { session in
        try session.run(
          """
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400)
          INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) SELECT Z_ENT, 1, ZTITLE FROM ZNOTE, n
          """)
        return try session.integer("SELECT count(*) FROM ZNOTE")
      }
      let count = try #require(rows)
      let update: InstarModel.SQL = "UPDATE ZNOTE SET ZTITLE = ZTITLE || \("!")"
      #expect(try context.sql(update) == Int(count))
      #expect(reports.count > 2)
      #expect(reports.allSatisfy { $0.what == "rows of table 'ZNOTE'" && $0.total == Int(count) })
      #expect(reports.last?.done == Int(count))
      reports = []
      context.progress.begin("steps", total: 2)
      try context.sql(update)
      #expect(reports.isEmpty)
    }
  }

  @Test("enumerate counts its rows in the store, also while some models are changed")
  func progressMakesNoModels() throws {
    let lines = Mutex<[String]>([])
    let log = SQLLog(SQLDebug(level: 1)) { line in lines.withLock { $0.append(line) } }
    try inStage(meter: meter(), log: log) { context, _ in
      lines.withLock { $0 = [] }
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 25) { note in note.title += "!" }
      let selects = lines.withLock { $0 }.filter { $0.contains("sql: SELECT") }
      #expect(selects.filter { $0.contains("SELECT COUNT(*) FROM ZNOTE") }.count == 1)
      // Two batches, and the one behind them that has no rows.
      #expect(selects.filter { $0.contains(" LIMIT ") }.count == 3, "\(selects)")
    }
  }

  @Test("batches are written and released while the closure runs, and committed by its save")
  func released() throws {
    try inStage { context, connection in
      let identifiers = try context.fetchIdentifiers(FetchDescriptor<Note>())
      var seen = 0
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        let written = try number(Self.marked, connection)
        #expect(written == Int64(seen / 7 * 7))
        note.title += "!"
        seen += 1
      }
      let living = identifiers.filter { (context.registeredModel(for: $0) as Note?) != nil }
      #expect(living.count == 1, "only the last, incomplete batch is in memory")
      #expect(context.hasChanges)
      // Without the save nothing is kept.
    }
    #expect(try column("SELECT ZTITLE FROM ZNOTE WHERE ZTITLE LIKE '%!'") == [])
    try inStage { context, _ in
      try appendMarks(context)
      try context.save()
      #expect(!context.hasChanges)
    }
    let titles = try column("SELECT ZTITLE FROM ZNOTE ORDER BY Z_PK")
    #expect(titles == Self.markedTitles)
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(files == ["a.store"])
  }

  @Test("a model that the closure keeps stays the same object with its values")
  func keptObjects() throws {
    try inStage { context, _ in
      var kept: [Note] = []
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        note.title += "!"
        if note.count % 10 == 0 { kept.append(note) }
      }
      for note in kept {
        #expect(note.title == "note \(note.count)!")
        let registered: Note? = context.registeredModel(for: note.persistentModelID)
        #expect(registered === note)
      }
      let fetched = try context.fetch(
        FetchDescriptor<Note>(predicate: #Predicate { $0.count % 10 == 0 }))
      #expect(Set(fetched.map { ObjectIdentifier($0) }) == Set(kept.map { ObjectIdentifier($0) }))
      kept[0].title = "again"
      try context.save()
    }
    #expect(try column("SELECT ZTITLE FROM ZNOTE WHERE ZCOUNT < 2") == ["again", "note 1!"])
  }

  @Test("rolling back undoes the batches too, and kept models read their rows again")
  func rollback() throws {
    try inStage { context, connection in
      var kept: Note?
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        note.title += "!"
        kept = kept ?? note
      }
      context.rollback()
      #expect(!context.hasChanges)
      #expect(kept?.title == "note 0")
      #expect(try number(Self.marked, connection) == 0)
      // The context works as before.
      try appendMarks(context)
      try context.save()
      try appendMarks(context)
      #expect(throws: CancellationError.self) {
        try context.transaction { throw CancellationError() }
      }
    }
    let titles = try column("SELECT ZTITLE FROM ZNOTE ORDER BY Z_PK")
    #expect(titles == Self.markedTitles)
  }

  @Test("mutations that may escape stay pending until the save")
  func escapingMutations() throws {
    try inStage { context, connection in
      try appendMarks(context, escaping: true)
      #expect(try number(Self.marked, connection) == 0)
      #expect(context.changedModelsArray.count == 50)
      try context.save()
    }
    #expect(try column(Self.marked) == ["50"])
  }

  @Test("what references a new model waits for the save, the other changes do not")
  func newModels() throws {
    try inStage { context, connection in
      let target = Folder(uid: "target")
      context.insert(target)
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        if note.count % 2 == 0 { note.folder = target } else { note.title += "!" }
      }
      let written = try #require(try number(Self.marked, connection))
      #expect(written > 0)
      #expect(try number("SELECT count(*) FROM ZFOLDER", connection) == 2)
      #expect(target.notes.count == 25)
      try context.save()
    }
    #expect(try column(Self.marked) == ["25"])
    #expect(
      try column(
        "SELECT count(*) FROM ZNOTE JOIN ZFOLDER AS f ON f.Z_PK = ZFOLDER WHERE f.ZUID = 'target'")
        == ["25"])
  }

  @Test("references to saved models are written in batches, and both sides stay consistent")
  func references() throws {
    try inStage { context, connection in
      let folders = try context.fetch(FetchDescriptor<Folder>(sortBy: [SortDescriptor(\.uid)]))
      #expect(folders[1].notes.count == 50)
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { $0.folder = folders[0] }
      #expect(
        try number("SELECT count(DISTINCT ZFOLDER) FROM ZNOTE", connection) == 2)
      #expect(folders[0].notes.count == 50)
      #expect(folders[1].notes.isEmpty)
      try context.save()
      #expect(folders[0].notes.count == 50)
    }
    #expect(
      try column("SELECT DISTINCT f.ZUID FROM ZNOTE JOIN ZFOLDER AS f ON f.Z_PK = ZFOLDER")
        == ["new"])
  }

  @Test("a batch that cannot be written stays pending, and the save reports the error")
  func refusedBatch() throws {
    try inStage { context, connection in
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        note.uid = note.count == 9 ? "x3" : "x\(note.count)"
      }
      #expect(try number("SELECT count(*) FROM ZNOTE WHERE ZUID LIKE 'x%'", connection) == 7)
      #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
      // The closure can still correct it.
      for note in context.changedModelsArray.compactMap({ $0 as? Note }) where note.count == 9 {
        note.uid = "x9"
      }
      try context.save()
    }
    #expect(try column("SELECT count(*) FROM ZNOTE WHERE ZUID LIKE 'x%'") == ["50"])
  }

  @Test("a value that a later batch frees can be taken before")
  func valueOfLaterBatch() throws {
    try inStage { context, _ in
      try context.enumerate(FetchDescriptor<Note>(), batchSize: 7) { note in
        note.uid = note.count == 9 ? "49" : "x\(note.count)"
      }
      try context.save()
    }
    #expect(try column("SELECT count(*) FROM ZNOTE WHERE ZUID LIKE 'x%'") == ["49"])
    #expect(try column("SELECT count(*) FROM ZNOTE WHERE ZUID = '49'") == ["1"])
  }

  @Test("the history of a store has one transaction for all batches of a save")
  func history() throws {
    try inStage { context, _ in
      try appendMarks(context)
      try context.save()
    }
    #expect(try column("SELECT count(*) FROM ATRANSACTION") == ["2"])
    #expect(
      try column(
        "SELECT count(*) || ' ' || count(DISTINCT ZENTITYPK) FROM ACHANGE WHERE ZTRANSACTIONID = 2")
        == ["50 50"])
  }

  @Test("with another context of the closure, changes wait for the save")
  func otherContext() throws {
    try inStage { context, connection in
      let other = ModelContext(context.container)
      try appendMarks(context)
      #expect(try number(Self.marked, connection) == 0)
      try context.save()
      #expect(try other.fetchCount(FetchDescriptor<Note>()) == 50)
    }
    #expect(try column(Self.marked) == ["50"])
  }

  @Test("a save of `old` is refused with the same error in a context that the closure creates")
  func contextOfReadOnlyClosure() throws {
    try inStage(isReadOnly: true) { context, _ in
      for context in [context, ModelContext(context.container)] {
        context.insert(Folder(uid: "other"))
        let error = #expect(throws: InstarError.self) { try context.save() }
        #expect(error?.what == "cannot save the changes of `old`")
      }
    }
  }

  @Test("a save in a stage posts no notification, whichever context saves")
  func notifications() throws {
    try inStage { context, _ in
      for context in [context, ModelContext(context.container)] {
        let count = Mutex(0)
        let observer = NotificationCenter.default.addObserver(
          forName: ModelContext.didSave, object: context, queue: nil
        ) { _ in count.withLock { $0 += 1 } }
        defer { NotificationCenter.default.removeObserver(observer) }
        context.insert(Folder(uid: "\(UUID())"))
        try context.save()
        #expect(count.withLock { $0 } == 0)
      }
    }
  }

  @Test(
    "after a failed save, another context of the stage can keep members of what is deleted",
    arguments: [false, true])
  func movedAfterFailedSave(comesLater: Bool) throws {
    try inStage { context, _ in
      let folders = FetchDescriptor<Folder>(sortBy: [SortDescriptor(\.uid)])
      let old = try #require(try context.fetch(folders).last)
      #expect(old.uid == "old" && old.notes.count == 50)
      let earlier = comesLater ? nil : ModelContext(context.container)
      context.delete(old)
      context.beforeWrite = { throw CancellationError() }
      #expect(throws: CancellationError.self) { try context.save() }
      context.beforeWrite = nil
      let other = earlier ?? ModelContext(context.container)
      let new = try #require(try other.fetch(folders).first)
      for note in try other.fetch(FetchDescriptor<Note>()) { note.folder = new }
      try other.save()
      try context.finishStage()
    }
    #expect(try column("SELECT count(*) FROM ZNOTE") == ["50"])
    #expect(try column("SELECT ZUID FROM ZFOLDER") == ["new"])
  }

  @Test("a rollback of batches after the save of another context fails the stage")
  func otherSave() throws {
    func appendMarksAndSaveOther(_ context: ModelContext) throws {
      try appendMarks(context)
      let other = ModelContext(context.container)
      other.insert(Folder(uid: "other"))
      try other.save()
    }
    try inStage { context, _ in
      try appendMarksAndSaveOther(context)
      context.rollback()
      let error = #expect(throws: InstarError.self) { try context.finishStage() }
      #expect(error?.what == "cannot roll back")
    }
    try inStage { context, _ in
      try appendMarksAndSaveOther(context)
      try context.finishStage()
    }
    #expect(try column(Self.marked) == ["50"])
    #expect(try column("SELECT count(*) FROM ZFOLDER") == ["3"])
  }
}
