import Foundation
import Instar
import InstarTestSupport
import InstarTesting
import Testing

@Suite("MigrationTest")
struct MigrationTestTests {
  let test = MigrationTest(BooksPlan.self)

  private func shelf() throws -> TestStore {
    try test.store(at: BooksV1.self) { context in
      let author = BooksV1.Author(name: "Ada")
      context.insert(author)
      for (number, pages) in [100, 501, 1200].enumerated() {
        let book = BooksV1.Book(isbn: "\(number)", title: "Book \(number)", pages: pages)
        context.insert(book)
        book.author = author
      }
    }
  }

  @Test("a store made with typed models migrates, and is read with the models of the new version")
  func migrates() throws {
    let store = try shelf()
    #expect(try store.version() == BooksV1.versionIdentifier)
    try store.migrate()
    #expect(try store.version() == BooksV2.versionIdentifier)
    let books = try store.read(BooksV2.self) { context in
      try context.fetch(FetchDescriptor<BooksV2.Book>(sortBy: [SortDescriptor(\.isbn)]))
        .map { "\($0.heading) \($0.isLong) \($0.author?.name ?? "")" }
    }
    #expect(books == ["Book 0 false Ada", "Book 1 true Ada", "Book 2 true Ada"])
    try store.expectRowsKept()
    try store.expectNoChange(of: BooksV2.Book.self)
    try store.expectNoChange(of: BooksV2.Author.self)
  }

  @Test(
    "the structure after a migration is that of a new store of the version, and not of another one")
  func structure() throws {
    let store = try shelf()
    try store.migrate()
    try store.expectStructure(equals: test.store(at: BooksV2.self))
    let failure = #expect(throws: ExpectationFailure.self) {
      try store.expectStructure(equals: test.store(at: BooksV1.self))
    }
    #expect(
      failure?.details.contains("only the tested store has column ZBOOK.ZISLONG INTEGER") == true)
  }

  @Test("every version migrates to every later one, with random models of a seed")
  func everyVersion() throws {
    try test.expectEveryVersionMigrates(rows: 30, seed: 7)
  }

  @Test("the same seed makes the same models, and another seed other ones")
  func seeds() throws {
    func books(_ seed: UInt64) throws -> [String] {
      try test.randomStore(at: BooksV1.self, seed: seed).read(BooksV1.self) { context in
        try context.fetch(FetchDescriptor<BooksV1.Book>(sortBy: [SortDescriptor(\.isbn)]))
          .map {
            "\($0.isbn) \($0.title) \($0.subtitle ?? "-") \($0.pages) \($0.author?.name ?? "-")"
          }
      }
    }
    let once = try books(1)
    #expect(once.count == 20)
    #expect(try books(1) == once)
    #expect(try books(2) != once)
    #expect(once.contains { $0.contains(" - ") } && once.contains { !$0.contains(" - ") })
  }

  @Test("a failure at each row that a closure writes leaves the store as it was")
  func failures() throws {
    #expect(try test.expectUnchangedAfterFailure(atEachRowOf: shelf()) == 2)
  }

  @Test(
    "a failure at each row that SQL or a transform writes leaves the store as it was",
    arguments: [
      (SQLBooksPlan.self as any SchemaMigrationPlan.Type, 5), (TransformedBooksPlan.self, 3),
      (SQLInClosureBooksPlan.self, 3),
    ])
  func failuresOfStatements(plan: any SchemaMigrationPlan.Type, rows: Int) throws {
    let test = MigrationTest(plan)
    let store = try test.store(copying: shelf().url.path)
    #expect(try test.expectUnchangedAfterFailure(atEachRowOf: store) == rows)
    try store.migrate()
    let long = try store.read(BooksV2.self) { context in
      try context.fetchCount(FetchDescriptor<BooksV2.Book>(predicate: #Predicate { $0.isLong }))
    }
    #expect(long == 2)
  }

  @Test("stores of a test can be in memory")
  func memory() throws {
    let test = MigrationTest(BooksPlan.self, in: .memory)
    let store = try test.randomStore(at: BooksV1.self, seed: 5)
    #expect(store.url.path.hasPrefix("/dev/shm/"))
    try store.migrate()
    try store.expectRowsKept()
    try store.expectStructure(equals: test.store(at: BooksV2.self))
    let folder = store.url.deletingLastPathComponent().deletingLastPathComponent()
    #expect(FileManager.default.fileExists(atPath: folder.path))
  }

  @Test("a copy of a store is tested, and the original keeps every byte")
  func copies() throws {
    let original = try shelf()
    let bytes = try Data(contentsOf: original.url)
    let copy = try test.store(copying: original.url.path)
    try copy.migrate()
    #expect(try Data(contentsOf: original.url) == bytes)
    #expect(try original.version() == BooksV1.versionIdentifier)
  }

  @Test("the first run writes the snapshot of the statements, and a later one compares it")
  func snapshot() throws {
    let folder = try TemporaryFolder()
    let file = folder.path("statements.sql")
    let first = #expect(throws: ExpectationFailure.self) {
      try test.expectStatements(match: file)
    }
    #expect(first?.message.contains("there was no snapshot") == true)
    try test.expectStatements(match: file)

    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(text.contains("-- 1.0.0 → 2.0.0, custom\n"))
    try Data(text.replacing("ZISLONG", with: "ZOTHER").utf8).write(to: URL(fileURLWithPath: file))
    let changed = #expect(throws: ExpectationFailure.self) {
      try test.expectStatements(match: file)
    }
    #expect(changed?.details.contains { $0.hasPrefix("+ ") && $0.contains("ZISLONG") } == true)
  }

  @Test("an expectation about a migration fails without a migration")
  func withoutMigration() throws {
    let store = try shelf()
    #expect(throws: ExpectationFailure.self) { try store.expectRowsKept() }
    #expect(throws: ExpectationFailure.self) { try store.expectNoChange(of: BooksV2.Book.self) }
  }

  @Test("an unknown property and a missing file are errors")
  func wrongNames() throws {
    let store = try shelf()
    try store.migrate()
    let failure = #expect(throws: ExpectationFailure.self) {
      try store.expectNoChange(of: BooksV2.Book.self, except: ["titel"])
    }
    #expect(failure?.message == "Book has no property 'titel'")
    #expect(throws: InstarError.self) { try test.store(copying: "/no/such.store") }
  }
}
