import Foundation
import GRDB
import Instar
import InstarTestSupport
import Testing

@Suite("The history of a store")
struct HistoryTests {
  enum Log: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Book.self, Shelf.self] }

    @Model
    final class Book {
      @Attribute(.unique, .preserveValueOnDeletion) var isbn: String
      var title: String
      @Attribute(.preserveValueOnDeletion) var boughtAt: Date?
      @Attribute(.ephemeral) var isOpen: Bool = false
      var shelf: Shelf?
      init(isbn: String, title: String) {
        self.isbn = isbn
        self.title = title
      }
    }

    @Model
    final class Shelf {
      var room: String
      @Relationship(inverse: \Book.shelf) var books: [Book] = []
      init(room: String) { self.room = room }
    }
  }

  typealias Book = Log.Book
  typealias Transaction = DefaultHistoryTransaction

  private let folder: TemporaryFolder
  private let container: ModelContainer
  private let context: ModelContext
  private var path: String { folder.path("a.store") }

  init() throws {
    folder = try TemporaryFolder()
    container = try ModelContainer(
      for: Schema(versionedSchema: Log.self),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    context = ModelContext(container)
  }

  private func history() throws -> [Transaction] {
    try context.fetchHistory(HistoryDescriptor<Transaction>())
  }

  private func after(_ token: DefaultHistoryToken) throws -> [Transaction] {
    try context.fetchHistory(
      HistoryDescriptor<Transaction>(predicate: #Predicate { $0.token > token }))
  }

  /// Saves this many transactions, each with one book.
  private func saveBooks(_ count: Int) throws {
    for number in 1...count {
      context.insert(Book(isbn: "\(number)", title: "Book \(number)"))
      try context.save()
    }
  }

  @Test("a save is a transaction with author, process and each inserted, updated and deleted model")
  func changes() throws {
    context.author = "reader"
    let (one, two) = (Book(isbn: "1", title: "One"), Book(isbn: "2", title: "Two"))
    two.boughtAt = Date(timeIntervalSinceReferenceDate: 5)
    for book in [one, two] { context.insert(book) }
    try context.save()
    context.author = nil
    let (first, second) = (one.persistentModelID, two.persistentModelID)
    one.title = "Eins"
    one.shelf = Log.Shelf(room: "hall")
    context.delete(two)
    try context.save()

    let all = try history()
    #expect(all.map(\.transactionIdentifier) == [1, 2])
    #expect(all.map(\.author) == ["reader", nil])
    #expect(all.allSatisfy { $0.processIdentifier == ProcessInfo.processInfo.processName })
    #expect(all.allSatisfy { abs($0.timestamp.timeIntervalSinceNow) < 3600 })
    #expect(all.allSatisfy { $0.storeIdentifier == first.storeIdentifier })
    #expect(all[0].changes.map(\.changedPersistentIdentifier) == [first, second])
    for change in all[0].changes {
      guard case .insert(_ as DefaultHistoryInsert<Book>) = change else {
        Issue.record("\(change) is not the insertion of a book")
        continue
      }
    }
    var kinds: [String] = []
    for change in all[1].changes {
      switch change {
      case .delete(let delete as DefaultHistoryDelete<Book>):
        #expect(delete.changedPersistentIdentifier == second)
        #expect(delete.tombstone[\.isbn] as? String == "2")
        #expect(
          delete.tombstone[\.boughtAt] as? Date == Date(timeIntervalSinceReferenceDate: 5))
        #expect(delete.tombstone[\.title] == nil)
        #expect(Array(delete.tombstone).count == 2)
        kinds.append("delete")
      case .update(let update as DefaultHistoryUpdate<Book>):
        #expect(update.changedPersistentIdentifier == first)
        #expect(
          Set(update.updatedAttributes.map { $0 as AnyKeyPath }) == [\Book.title, \Book.shelf])
        kinds.append("update")
      case .insert(_ as DefaultHistoryInsert<Log.Shelf>): kinds.append("insert")
      default: kinds.append("other")
      }
    }
    #expect(kinds == ["delete", "update", "insert"])
  }

  @Test("each of many models of two entities has one change, with consecutive keys")
  func manyInsertions() throws {
    for number in 0..<3 { context.insert(Log.Shelf(room: "\(number)")) }
    for number in 0..<4 { context.insert(Book(isbn: "\(number)", title: "Book")) }
    context.insert(Log.Shelf(room: "last"))
    try context.save()
    context.insert(Book(isbn: "later", title: "Book"))
    try context.save()
    let changes = try DatabaseQueue(path: path).read { db in
      try String.fetchAll(
        db,
        sql: """
          SELECT c.Z_PK || ' ' || k.Z_NAME || ' ' || c.ZENTITYPK || ' ' || c.ZTRANSACTIONID || ' ' || c.ZCHANGETYPE
          FROM ACHANGE c JOIN Z_PRIMARYKEY k ON k.Z_ENT = c.ZENTITY ORDER BY c.ZENTITY, c.ZENTITYPK
          """)
    }
    #expect(changes.count == 9)
    #expect(Set(changes.compactMap { $0.split(separator: " ").first }).count == 9)
    let rows = changes.map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
    #expect(
      rows == [
        "Book 1 1 0", "Book 2 1 0", "Book 3 1 0", "Book 4 1 0", "Book 5 2 0",
        "Shelf 1 1 0", "Shelf 2 1 0", "Shelf 3 1 0", "Shelf 4 1 0",
      ])
    let last = try DatabaseQueue(path: path).read { db in
      try Int.fetchOne(db, sql: "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'CHANGE'")
    }
    #expect(last == 9)
  }

  @Test("a new store has SwiftData's history tables, and rows in their form")
  func tables() throws {
    try saveBooks(1)
    context.delete(try #require(try context.fetch(FetchDescriptor<Book>()).first))
    try context.save()
    let statements = try texts("SELECT sql FROM sqlite_schema WHERE name = 'ACHANGE'")
    #expect(
      statements == [
        "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
          + "ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, "
          + "ZCOLUMNS BLOB, ZTOMBSTONE0 BLOB, ZTOMBSTONE1 BLOB )"
      ])
    let keys = try texts(
      "SELECT Z_NAME || ' ' || Z_SUPER || ' ' || Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000")
    #expect(keys == ["CHANGE 0 2", "TRANSACTION 0 2", "TRANSACTIONSTRING 0 1"])
    let changes = try texts(
      "SELECT Z_ENT || ' ' || ZCHANGETYPE || ' ' || ifnull(ZTOMBSTONE1, '-') FROM ACHANGE")
    #expect(changes == ["16001 0 -", "16001 2 1"])
  }

  /// The first column of the rows of a statement, read without models.
  private func texts(_ sql: String) throws -> [String] {
    try DatabaseQueue(path: path).read { db in try String.fetchAll(db, sql: sql) }
  }

  @Test("the bits of an update count all stored properties by name, the first bit the highest")
  func bits() throws {
    try saveBooks(1)
    let book = try #require(try context.fetch(FetchDescriptor<Book>()).first)
    book.title = "New"
    book.boughtAt = .now
    try context.save()
    let bits = try texts("SELECT hex(ZCOLUMNS) FROM ACHANGE WHERE ZCHANGETYPE = 1")
    // boughtAt, isbn, shelf, title
    #expect(bits == ["90"])
  }

  @Test("a predicate of token and author, a limit and an order choose the transactions")
  func descriptors() throws {
    try saveBooks(2)
    context.author = "import"
    try saveBooks(3)
    let all = try history()
    #expect(all.count == 5)
    #expect(try after(all[2].token).map(\.id) == [4, 5])
    let token = all[0].token
    var descriptor = HistoryDescriptor<Transaction>(
      predicate: #Predicate { $0.token > token && $0.author == "import" })
    #expect(try context.fetchHistory(descriptor).map(\.id) == [3, 4, 5])
    descriptor.fetchLimit = 1
    #expect(try context.fetchHistory(descriptor).map(\.id) == [3])
    descriptor.sortBy = [SortDescriptor(\.transactionIdentifier, order: .reverse)]
    #expect(try context.fetchHistory(descriptor).map(\.id) == [5])
    #expect(
      try context.fetchHistory(
        HistoryDescriptor<Transaction>(predicate: #Predicate { $0.changes.isEmpty })
      ).isEmpty)
  }

  @Test("an upsert and a change of the other side are updates of the rows that were written")
  func upsert() throws {
    try saveBooks(1)
    try saveBooks(1)
    let last = try #require(try history().last)
    guard case .update(let update as DefaultHistoryUpdate<Book>) = last.changes.first else {
      Issue.record("an upsert is not an update")
      return
    }
    #expect(update.updatedAttributes.count == 4 && last.changes.count == 1)
  }

  @Test("a token after which transactions were deleted is expired; a later one is not")
  func expiredToken() throws {
    try saveBooks(4)
    let all = try history()
    let third = all[2].token
    try context.deleteHistory(
      HistoryDescriptor<Transaction>(predicate: #Predicate { $0.token < third }))
    #expect(try history().map(\.id) == [3, 4])
    #expect(try after(all[1].token).map(\.id) == [3, 4])
    let error = #expect(throws: SwiftDataError.self) { try after(all[0].token) }
    #expect(error == .historyTokenExpired)
    #expect(error?.cause?.code == .historyTokenExpired)
    #expect(
      error?.cause?.cause
        == "the token asks for transactions from 2 on, and '\(path)' has them from 3 on: the earlier ones were deleted"
    )
    try context.deleteHistory(HistoryDescriptor<Transaction>())
    #expect(try history().isEmpty)
    #expect(try after(all[3].token).isEmpty)
    try saveBooks(1)
    #expect(try history().map(\.id) == [5])
  }

  @Test("a token of a later state of the store is expired")
  func laterToken() throws {
    try saveBooks(1)
    let store = try #require(try history().first).storeIdentifier
    let token = try JSONDecoder().decode(
      DefaultHistoryToken.self, from: Data(#"{"tokenValue":{"\#(store)":9}}"#.utf8))
    let error = #expect(throws: SwiftDataError.self) { try after(token) }
    #expect(error == .historyTokenExpired)
    #expect(error?.cause?.cause.contains("replaced by an earlier copy") == true)
  }

  @Test("a token is Codable, and tokens are in the order of their transactions")
  func tokens() throws {
    try saveBooks(3)
    let tokens = try history().map(\.token)
    #expect(tokens == tokens.sorted() && tokens[0] < tokens[2])
    let data = try JSONEncoder().encode(tokens[1])
    #expect(try JSONDecoder().decode(DefaultHistoryToken.self, from: data) == tokens[1])
  }

  @Test("one token covers the stores of a container")
  func severalStores() throws {
    let container = try ModelContainer(
      for: Schema([Book.self, Page.self]),
      configurations: [
        ModelConfiguration("books", schema: Schema([Book.self]), isStoredInMemoryOnly: true),
        ModelConfiguration("pages", schema: Schema([Page.self]), isStoredInMemoryOnly: true),
      ])
    let context = ModelContext(container)
    context.insert(Book(isbn: "1", title: "One"))
    try context.save()
    context.insert(Page(number: 1))
    try context.save()
    let all = try context.fetchHistory(HistoryDescriptor<Transaction>())
    #expect(all.count == 2 && all[0].token < all[1].token)
    let (first, last) = (all[0].token, all[1].token)
    #expect(
      try context.fetchHistory(
        HistoryDescriptor<Transaction>(predicate: #Predicate { $0.token > first })
      ).count == 1)
    #expect(
      try context.fetchHistory(
        HistoryDescriptor<Transaction>(predicate: #Predicate { $0.token > last })
      ).isEmpty)
  }

  @Model
  final class Page {
    var number: Int
    init(number: Int) { self.number = number }
  }

  @Test("a plain store, and a store without history tables, have no history; saving works")
  func withoutHistory() throws {
    let plain = try ModelContainer(
      for: Row1.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let error = #expect(throws: InstarError.self) {
      try ModelContext(plain).fetchHistory(HistoryDescriptor<Transaction>())
    }
    #expect(error?.code == .unsupported && error?.cause == "a plain store keeps no history")
    try saveBooks(1)
    try container.close()
    try DatabaseQueue(path: path).write { db in
      try db.execute(sql: "DROP TABLE ACHANGE; DROP TABLE ATRANSACTION")
    }
    let old = ModelContext(
      try ModelContainer(
        for: Schema(versionedSchema: Log.self),
        configurations: ModelConfiguration(url: URL(filePath: path))))
    old.insert(Book(isbn: "2", title: "Two"))
    try old.save()
    let missing = #expect(throws: InstarError.self) {
      try old.deleteHistory(HistoryDescriptor<Transaction>())
    }
    #expect(missing?.cause == "the store has no history tables")
  }

  @Table("rows")
  @Model
  final class Row1 {
    var name: String
    init(name: String) { self.name = name }
  }
}
