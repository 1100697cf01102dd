import GRDB
import Instar
import InstarModel
import InstarStore
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@Suite("Opening a container with a plan", .serialized)
struct ContainerMigrationTests {
  private let folder: TemporaryFolder
  private let path: String
  private var configuration: ModelConfiguration { ModelConfiguration(url: URL(filePath: path)) }

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
  }

  // MARK: Helpers

  private var lastSchema: Schema { Schema(versionedSchema: ShelfV3.self) }

  private func openLast(_ configuration: ModelConfiguration? = nil) throws -> ModelContainer {
    try ModelContainer(
      for: lastSchema, migrationPlan: ShelfPlan.self,
      configurations: configuration ?? self.configuration)
  }

  private func openFirst(_ configuration: ModelConfiguration? = nil) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: ShelfV1.self),
      configurations: configuration ?? self.configuration)
  }

  private func fill(_ container: ModelContainer) throws {
    let context = ModelContext(container)
    let author = ShelfV1.Author(name: "Ann")
    for number in 0..<3 {
      let book = ShelfV1.Book(isbn: "\(number)", name: "Book \(number)", pages: "\(number * 10)")
      book.authors = [author]
      context.insert(book)
    }
    try context.save()
  }

  private func makeFirst() throws {
    let container = try openFirst()
    try fill(container)
    try container.close()
  }

  private func execute(_ sql: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  private func expectLast(_ container: ModelContainer) throws {
    let context = ModelContext(container)
    let books = try context.fetch(
      FetchDescriptor<ShelfV3.Book>(sortBy: [SortDescriptor(\.isbn)]))
    #expect(books.map(\.title) == ["Book 0", "Book 1", "Book 2"])
    #expect(books.map(\.pages) == [0, 10, 20])
    #expect(books.map { $0.writers.map(\.name) } == [["Ann"], ["Ann"], ["Ann"]])
  }

  private var history: [RunReport] {
    get throws { try StateFolder(path: folder.path("state")).history().reports }
  }

  private func error(_ body: () throws -> Void) -> SwiftDataError? {
    #expect(throws: SwiftDataError.self, performing: body)
  }

  // MARK: Files

  @Test("a store that is behind is migrated, with a verified backup and an entry in the ledger")
  func behind() throws {
    try makeFirst()
    let container = try openLast()
    #expect(container.schema.version == Schema.Version(3, 0, 0))
    try expectLast(container)
    let report = try #require(try history.first)
    #expect(report.result == .migrated && report.stages.count == 3)
    #expect(
      report.notes == [
        "replaces 3 non-null values of Book.pages with values of the plan's code",
        "drops 3 non-null values of Book.shelf",
      ])
    let backup = try #require(report.backup)
    #expect(backup.hasPrefix(folder.path("state/backups/a.store.")))
    #expect(try StoreProbe.read(backup).identity.version == Schema.Version(1, 0, 0))
    #expect(!folder.names().contains(".instar"))
    try container.close()
    #expect(try StoreProbe.read(path).identity.version == Schema.Version(3, 0, 0))
    // The second time there is nothing to do.
    try expectLast(openLast())
    #expect(try history.count == 1)
  }

  @Test("a report counts the rows of replaced values that are gone, also if new rows came")
  func rowsGone() throws {
    try makeFirst()
    try ModelContainer(
      for: lastSchema, migrationPlan: SwappingShelfPlan.self, configurations: configuration
    ).close()
    let notes = try history.first?.notes ?? []
    #expect(
      notes.contains(
        "replaces 2 of 3 non-null values of Book.pages with values of the plan's code; "
          + "the rows of the other 1 are gone"), "\(notes)")
  }

  @Test("the types of the last version are enough; its version is the plan's")
  func types() throws {
    try makeFirst()
    let container = try ModelContainer(
      for: ShelfV3.Book.self, migrationPlan: ShelfPlan.self, configurations: configuration)
    #expect(container.schema.version == Schema.Version(3, 0, 0))
    try expectLast(container)
  }

  @Test(
    "older containers of the process stay open meanwhile, and can no longer write",
    arguments: ["wal", "delete"])
  func olderContainer(journalMode: String) throws {
    try makeFirst()
    try execute("PRAGMA journal_mode = \(journalMode)")
    let old = try openFirst()
    let oldContext = ModelContext(old)
    let oldBooks = try oldContext.fetch(FetchDescriptor<ShelfV1.Book>())
    #expect(oldBooks.count == 3)
    let container = try openLast()
    try expectLast(container)
    oldBooks[0].shelf = "Z"
    #expect(throws: (any Error).self) { try oldContext.save() }
    try old.close()
    try expectLast(container)
    let context = ModelContext(container)
    context.insert(ShelfV3.Author(name: "Bob"))
    try context.save()
    try container.close()
    #expect(try StoreProbe.read(path, rows: .all).entities.map(\.rows).contains(2))
  }

  @Test("a store that another writer holds is left unchanged, and the error says so")
  func busy() throws {
    try makeFirst()
    var settings = Configuration()
    settings.allowsUnsafeTransactions = true
    let writer = try DatabaseQueue(path: path, configuration: settings)
    try writer.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE; DELETE FROM ZBOOK") }
    let error = error { _ = try openLast() }
    #expect(error?.cause?.code == .busyStore)
    #expect(error?.cause?.state == "unchanged")
    try writer.inDatabase { try $0.execute(sql: "ROLLBACK") }
    try writer.close()
    try expectLast(openLast())
  }

  @Test("what a stage throws is the cause; the store is unchanged and nothing is left beside it")
  func throwingStage() throws {
    try makeFirst()
    let before = try Data(contentsOf: URL(filePath: path))
    let error = error {
      _ = try ModelContainer(
        for: Schema(versionedSchema: ShelfV1_1.self), migrationPlan: ThrowingPlan.self,
        configurations: configuration)
    }
    #expect(error?.cause?.cause.contains("no, thanks") == true)
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    #expect(error?.cause?.state == "unchanged")
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    #expect(folder.names() == ["a.store", "state"])
    #expect(folder.names("state/backups") == [] && folder.names("state/phases") == [])
    #expect(try history.map(\.result) == [.failed])
  }

  private enum ThrowingPlan: SchemaMigrationPlan {
    struct Refusal: Error, CustomStringConvertible { var description: String { "no, thanks" } }
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self, willMigrate: nil) { _ in
          throw Refusal()
        }
      ]
    }
  }

  @Test("without a store one is made at the plan's last version")
  func newStore() throws {
    try openLast().close()
    #expect(try StoreProbe.read(path).identity.version == Schema.Version(3, 0, 0))
    #expect(folder.names() == ["a.store"])
  }

  @Test("a run that was cut off is discarded by the next opening")
  func cutOff() throws {
    try makeFirst()
    let state = try StateFolder(path: folder.path("state"))
    var record = PhaseRecord(run: "run-1", store: path, phase: .cloning, startedAt: 0)
    record.backup = folder.path("state/backups/a.store.run-1.backup")
    let journal = try RunJournal.start(run: record.run, store: path, in: state)
    try journal.enter(record)
    journal.unlock()
    for name in ["state/backups", ".instar/run-run-1/clone"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: true)
    }
    chmod(folder.path(".instar"), 0o700)
    try Data("part".utf8).write(to: URL(filePath: folder.path(".instar/run-run-1/clone/a.store")))
    try Data("part".utf8).write(to: URL(filePath: record.backup ?? ""))
    try expectLast(openLast())
    #expect(!folder.names().contains(".instar"))
    #expect(folder.names("state/phases") == [])
    #expect(folder.names("state/backups").filter { $0.hasSuffix(".backup") }.count == 1)
    #expect(try history.map(\.result) == [.failed, .migrated])
  }

  @Test("an unreadable phase record is reported, and keeps no store from being opened")
  func unreadableRecord() throws {
    try makeFirst()
    _ = try StateFolder(path: folder.path("state"))
    let file = folder.path("state/phases/cut.json")
    try Data("{\n".utf8).write(to: URL(filePath: file))
    try expectLast(openLast())
    #expect(ModelConfiguration.reported.withLock { $0.contains { $0.contains("'\(file)'") } })
    #expect(FileManager.default.fileExists(atPath: file))
  }

  // MARK: Where a store stands

  @Test("a store without a declared version is treated as the version whose structure it has")
  func unversioned() throws {
    try makeFirst()
    try execute("UPDATE Z_METADATA SET Z_PLIST = NULL")
    try expectLast(openLast())
  }

  @Test("a store of a later version is refused as a backward migration")
  func ahead() throws {
    try makeFirst()
    _ = try openLast()
    let error = error {
      _ = try ModelContainer(
        for: Schema(versionedSchema: ShelfV1_1.self), migrationPlan: ShorterPlan.self,
        configurations: configuration)
    }
    #expect(error.map { SwiftDataError.backwardMigration ~= $0 } == true)
    #expect(error?.cause?.code == .storeAhead)
    #expect(error?.description.contains("3.0.0") == true)
  }

  private enum ShorterPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self)]
    }
  }

  @Test("a store of no version of the plan is refused with the nearest one and the difference")
  func unknown() throws {
    try makeFirst()
    try execute("ALTER TABLE ZBOOK ADD COLUMN ZEXTRA INTEGER; UPDATE Z_METADATA SET Z_PLIST = NULL")
    let before = try Data(contentsOf: URL(filePath: path))
    let error = error { _ = try openLast() }
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    #expect(error.map { SwiftDataError.unknownSchema ~= $0 } == true)
    #expect(error.map { SwiftDataError.backwardMigration ~= $0 } == false)
    #expect(error?.description.contains("column ZBOOK.ZEXTRA is not expected") == true)
    #expect(error?.description.contains("the nearest version of ShelfPlan is 1.0.0") == true)
    #expect(
      error?.cause?.next?.hasSuffix(
        "instarctl migrate --plugin FILE.so --adopt 1.0.0 '\(path)'") == true)
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
  }

  @Test("a schema that is not the plan's last one is refused, and the difference named")
  func otherSchema() throws {
    let error = error {
      _ = try ModelContainer(
        for: Schema(versionedSchema: ShelfV1.self), migrationPlan: ShelfPlan.self,
        configurations: configuration)
    }
    #expect(error?.description.contains("ShelfV1.Author was given") == true)
    #expect(error?.description.contains("ShelfV3.Author") == true)
    #expect(folder.names() == [])
  }

  @Test("a store that may not be written is opened where it is current, and not migrated")
  func readOnly() throws {
    try makeFirst()
    let readOnly = ModelConfiguration(url: URL(filePath: path), allowsSave: false)
    let error = error { _ = try openLast(readOnly) }
    #expect(error?.description.contains("does not allow saving") == true)
    try openLast().close()
    try expectLast(openLast(readOnly))
  }

  // MARK: In memory

  @Test("a store in memory is migrated through the configuration that holds it")
  func inMemory() throws {
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let old = try openFirst(memory)
    try fill(old)
    let container = try openLast(memory)
    try expectLast(container)
    try expectLast(openLast(memory))
    #expect(folder.names() == [])
    _ = old
  }

  @Test("a store in memory that a stage fails on stays at its version")
  func inMemoryFailure() throws {
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let old = try openFirst(memory)
    try fill(old)
    let error = error {
      _ = try ModelContainer(
        for: Schema(versionedSchema: ShelfV1_1.self), migrationPlan: ThrowingPlan.self,
        configurations: memory)
    }
    #expect(error?.description.contains("no, thanks") == true)
    #expect(try ModelContext(old).fetchCount(FetchDescriptor<ShelfV1.Book>()) == 3)
  }
}

/// The plan of the shelf, but its last stage puts another book in place of one.
private enum SwappingShelfPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { ShelfPlan.schemas }
  static var stages: [MigrationStage] {
    [
      ShelfPlan.addAgency, ShelfPlan.countPages,
      .custom(fromVersion: ShelfV2.self, toVersion: ShelfV3.self, willMigrate: nil) { context in
        try context.delete(model: ShelfV3.Book.self, where: #Predicate { $0.isbn == "0" })
        let book = ShelfV3.Book(isbn: "9", title: "Book 9")
        book.pages = 90
        context.insert(book)
      },
    ]
  }
}
