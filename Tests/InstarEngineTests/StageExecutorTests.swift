import Foundation
import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Running the stages of a plan on a clone")
struct StageExecutorTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
  }

  private func makeStore() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: ShelfV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let authors = ["Ann", "Bob", "Ann"].map { ShelfV1.Author(name: $0) }
    authors[1].mentor = authors[0]
    for number in 0..<6 {
      let book = ShelfV1.Book(
        isbn: "isbn-\(number)", name: "Book \(number)", pages: number == 5 ? "?" : "\(number * 10)")
      book.language = number == 0 ? "de" : nil
      book.authors = [authors[number % 3]]
      context.insert(book)
    }
    try context.save()
    try container.close()
  }

  private func migrate(
    _ plan: any SchemaMigrationPlan.Type = ShelfPlan.self,
    from start: Schema.Version = Schema.Version(1, 0, 0)
  ) throws -> [WorkerEvent] {
    let definition = try PlanDefinition(plan)
    let connection = try StoreConnection(path: path, durability: .clone)
    nonisolated(unsafe) var events: [WorkerEvent] = []
    do {
      try StageExecutor.run(
        [
          StageExecutor.Clone(connection: connection, path: definition.path(from: start)) {
            events.append($0)
          }
        ],
        plan: definition.name)
    } catch {
      try connection.close()
      throw error
    }
    try connection.close()
    return events
  }

  @Test("every row, value and link arrives at the last version")
  func wholeChain() throws {
    try makeStore()
    let events = try migrate()
    #expect(
      events.compactMap { event -> String? in
        guard case .stageFinished(let stage) = event else { return nil }
        return "\(stage.from) → \(stage.to) \(stage.kind)"
      } == [
        "1.0.0 → 1.1.0 lightweight", "1.1.0 → 2.0.0 custom", "2.0.0 → 3.0.0 custom",
      ])
    let container = try ModelContainer(
      for: Schema(versionedSchema: ShelfV3.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let books = try context.fetch(FetchDescriptor<ShelfV3.Book>(sortBy: [SortDescriptor(\.isbn)]))
    #expect(books.map(\.title) == (0..<6).map { "Book \($0)" })
    #expect(books.map(\.pages) == [0, 10, 20, 30, 40, -1])
    #expect(books.map(\.language) == ["de"] + Array(repeating: "it's \"en\"", count: 5))
    #expect(books.allSatisfy { $0.rating == 2.5 })
    #expect(
      books.map { $0.writers.map(\.name) } == [
        ["Ann"], ["Bob"], ["Ann"], ["Ann"], ["Bob"], ["Ann"],
      ])
    let authors = try context.fetch(
      FetchDescriptor<ShelfV3.Author>(sortBy: [SortDescriptor(\.name)]))
    #expect(authors.map(\.name) == ["Ann", "Bob"])
    #expect(authors[1].mentor === authors[0])
  }

  @Test("entity numbers are rewritten in rows, join tables and Z_PRIMARYKEY")
  func renumbering() throws {
    try makeStore()
    _ = try migrate(FirstStageOnly.self)
    try DatabaseQueue(path: path).read { db in
      #expect(try Int.fetchAll(db, sql: "SELECT DISTINCT Z_ENT FROM ZAUTHOR") == [2])
      #expect(try Int.fetchAll(db, sql: "SELECT DISTINCT Z_ENT FROM ZBOOK") == [3])
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM Z_2BOOKS") == 6)
      let rows = try Row.fetchAll(db, sql: "SELECT * FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
      #expect(rows.map { $0["Z_NAME"] as String } == ["Agency", "Author", "Book"])
      #expect(rows.map { $0["Z_MAX"] as Int } == [0, 3, 6])
    }
  }

  @Test(
    "links of an ordered relationship that a stage makes come last, in steps as Core Data counts")
  func orderedLinks() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Lists1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let list = Lists1.List(name: "a")
    list.entries = [Lists1.Entry(title: "x"), Lists1.Entry(title: "y")]
    context.insert(list)
    try context.save()
    try container.close()
    _ = try migrate(ListPlan.self)
    let places = try DatabaseQueue(path: path).read {
      try String.fetchAll(
        $0, sql: "SELECT ZTITLE || ' ' || Z_FOK_LIST FROM ZENTRY ORDER BY Z_FOK_LIST")
    }
    #expect(places == ["x 2048", "y 4096", "z 6144"])
  }

  @Test("an inverse can be added to a relationship, and taken away again, with every link kept")
  func inverseComesAndGoes() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Carts1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let cart = Carts1.Cart(name: "a")
    cart.items = [Carts1.Item(name: "x"), Carts1.Item(name: "y")]
    context.insert(cart)
    try context.save()
    try container.close()
    _ = try migrate(CartPlan.self)
    let migrated = try ModelContainer(
      for: Schema(versionedSchema: Carts3.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let carts = try ModelContext(migrated).fetch(FetchDescriptor<Carts3.Cart>())
    #expect(carts.count == 1)
    let links = try DatabaseQueue(path: path).read {
      try Int.fetchOne($0, sql: "SELECT COUNT(Z1ITEMS) FROM ZITEM")
    }
    #expect(links == 2)
  }

  @Test("a required value whose type changed gets its default, for didMigrate to replace")
  func typeChangeWithDefault() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Sizes1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    context.insert(Sizes1.Item(size: "12"))
    try context.save()
    try container.close()
    _ = try migrate(ResizePlan.self)
    let sizes = try DatabaseQueue(path: path).read {
      try Int.fetchAll($0, sql: "SELECT ZSIZE FROM ZITEM")
    }
    #expect(sizes == [8])
  }

  enum SizesWithDefault: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }
    @Model
    final class Item {
      var size: Int = 7
      init(size: Int) { self.size = size }
    }
  }

  enum ResizePlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [Sizes1.self, SizesWithDefault.self]
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: Sizes1.self, toVersion: SizesWithDefault.self, willMigrate: nil,
          didMigrate: { context in
            for item in try context.fetch(FetchDescriptor<SizesWithDefault.Item>()) {
              item.size += 1
            }
          })
      ]
    }
  }

  @Test("the first error of a closure ends the run, and says in which stage")
  func closureThrows() throws {
    try makeStore()
    let error = #expect(throws: InstarError.self) { try migrate(FailingPlan.self) }
    #expect(error?.code == .stageFailed)
    #expect(error?.stage == "1.0.0 → 1.1.0 (1 of 1), willMigrate")
    #expect(error?.cause == "willMigrate threw: shelf is locked")
  }

  @Test("a model of the new version in willMigrate is a named error")
  func wrongVersionInClosure() throws {
    try makeStore()
    let error = #expect(throws: InstarError.self) { try migrate(MisusingPlan.self) }
    #expect(error?.code == .modelNotInSchema)
    #expect(error?.cause.contains("cannot fetch ShelfV1_1.Book in willMigrate") == true)
    #expect(error?.cause.contains("the store is at 1.0.0") == true)
  }

  @Test("values that repeat under a new uniqueness are counted before anything is changed")
  func duplicates() throws {
    try makeStore()
    let error = #expect(throws: InstarError.self) { try migrate(UniquePlan.self) }
    #expect(error?.code == .duplicateUniqueValues)
    #expect(
      error?.cause.hasPrefix(
        "2 rows of Author have equal values of 'name', which becomes unique: rows ")
        == true, "\(error?.cause ?? "")")
    #expect(error?.rows?.count == 2)
  }

  enum FirstStageOnly: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] { [ShelfPlan.addAgency] }
  }

  @Test("an error of the system says what a worker may not do")
  func systemError() throws {
    try makeStore()
    let error = #expect(throws: InstarError.self) { try migrate(StartingPlan.self) }
    #expect(
      error?.next?.hasPrefix(
        "fix the plan (a worker of instard or instarctl cannot start processes")
        == true, "\(String(describing: error))")
    let other = #expect(throws: InstarError.self) { try migrate(FailingPlan.self) }
    #expect(other?.next == "fix the plan, build the plugin again and install it")
  }

  struct Locked: LocalizedError {
    var errorDescription: String? { "shelf is locked" }
  }

  enum StartingPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self,
          willMigrate: { _ in throw POSIXError(.EBADF) }, didMigrate: nil)
      ]
    }
  }

  enum FailingPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self) { context in
          for book in try context.fetch(FetchDescriptor<ShelfV1.Book>()) { book.name = "lost" }
          throw Locked()
        } didMigrate: { _ in
        }
      ]
    }
  }

  enum MisusingPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self,
          willMigrate: { _ = try $0.fetch(FetchDescriptor<ShelfV1_1.Book>()) }, didMigrate: nil)
      ]
    }
  }

  enum UniqueAuthors: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 1, 0)
    static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

    @Model
    final class Book {
      @Attribute(.unique) var isbn: String
      var name: String
      var pages: String
      var shelf: String
      var language: String?
      @Relationship(inverse: \Author.books) var authors: [Author] = []
      init(isbn: String) {
        self.isbn = isbn
        name = ""
        pages = ""
        shelf = ""
      }
    }

    @Model
    final class Author {
      @Attribute(.unique) var name: String
      var books: [Book] = []
      var mentor: Author?
      init(name: String) { self.name = name }
    }
  }

  enum UniquePlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, UniqueAuthors.self]
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: ShelfV1.self, toVersion: UniqueAuthors.self)]
    }
  }
}

enum Carts1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Cart.self, Item.self] }
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
}

enum Carts2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Cart.self, Item.self] }
  @Model
  final class Cart {
    var name: String
    @Relationship(inverse: \Item.cart) var items: [Item] = []
    init(name: String) { self.name = name }
  }
  @Model
  final class Item {
    var name: String
    var cart: Cart?
    init(name: String) { self.name = name }
  }
}

enum Carts3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Cart.self, Item.self] }
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
}

enum CartPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Carts1.self, Carts2.self, Carts3.self]
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: Carts1.self, toVersion: Carts2.self),
      .lightweight(fromVersion: Carts2.self, toVersion: Carts3.self),
    ]
  }
}

private enum Lists1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [List.self, Entry.self] }

  @Model
  final class List {
    var name: String
    @Relationship(.ordered, inverse: \Entry.list) var entries: [Entry] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Entry {
    var title: String
    var list: List?

    init(title: String) { self.title = title }
  }
}

private enum Lists2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [List.self, Entry.self] }

  @Model
  final class List {
    var name: String
    @Relationship(.ordered, inverse: \Entry.list) var entries: [Entry] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Entry {
    var title: String
    var note: String?
    var list: List?

    init(title: String) { self.title = title }
  }
}

private enum ListPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [Lists1.self, Lists2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: Lists1.self, toVersion: Lists2.self, willMigrate: nil,
        didMigrate: { context in
          for list in try context.fetch(FetchDescriptor<Lists2.List>()) {
            list.entries.append(Lists2.Entry(title: "z"))
          }
        })
    ]
  }
}
