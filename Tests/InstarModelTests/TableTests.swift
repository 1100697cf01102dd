import GRDB
import Instar
import InstarTestSupport
import Testing

@testable import InstarModel

@Suite("Models in ordinary tables")
struct TableTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("shop.db")
  }

  private func container() throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: Shop.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  private func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    let value = try queue.inDatabase(body)
    try queue.close()
    return value
  }

  @Test("an initial value by the clock is not a constant, also where two calls read the same time")
  func clockDefaults() throws {
    func hasConstantDefault(_ make: @escaping () -> Date) throws -> Bool {
      let property = Schema.PropertyMetadata(
        "joinedAt", \Shop.Customer.joinedAt, defaultValue: make)
      guard case .attribute(let kind) = property.kind else {
        throw CancellationError()
      }
      return kind.hasConstantDefault
    }
    let now = Date.now
    #expect(try !hasConstantDefault { now })
    #expect(try !hasConstantDefault { .now })
    #expect(try hasConstantDefault { .distantPast })
    let start = ContinuousClock.now
    // In steps of a millisecond: two calls in a row see the same one.
    #expect(
      try !hasConstantDefault {
        let passed = ContinuousClock.now - start
        return Date(timeIntervalSince1970: Double(passed / .milliseconds(1)).rounded(.down))
      })
  }

  /// A customer with two purchases; four lines, two products, two labels.
  private func fill() throws {
    let container = try container()
    let context = ModelContext(container)
    let ann = Shop.Customer(name: "Ann", joinedAt: Date(timeIntervalSince1970: 1_700_000_000.25))
    ann.birthday = Date(timeIntervalSince1970: 0)
    ann.seenAt = Date(timeIntervalSince1970: 1_700_000_001)
    ann.settings = ["size": 3]
    context.insert(ann)
    let tea = Shop.Product(sku: "T-1", title: "Tea", price: 2.5)
    let cup = Shop.Product(sku: "C-1", title: "Cup", price: 7)
    let (hot, new) = (Shop.Label(text: "hot"), Shop.Label(text: "new"))
    tea.labels = [hot, new]
    cup.labels = [new]
    for number in 1...2 {
      let uuid = try #require(UUID(uuidString: "00000000-0000-4000-8000-00000000000\(number)"))
      let purchase = Shop.Purchase(number: uuid, customer: ann)
      for (position, product) in [tea, cup].enumerated() {
        context.insert(
          Shop.PurchaseLine(
            position: position + 1, purchase: purchase, product: product, amount: number * 2))
      }
    }
    try context.save()
    try container.close()
  }

  @Test("a schema of models with tables makes tables as any app would, and stamps its version")
  func creation() throws {
    try container().close()
    let tables = try read { db in
      try String.fetchAll(
        db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    }
    #expect(
      tables == [
        """
        CREATE TABLE customer (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          name TEXT NOT NULL COLLATE NOCASE,
          is_active INTEGER NOT NULL DEFAULT 1,
          joined_at TEXT NOT NULL,
          birth REAL,
          seen_at INTEGER,
          settings TEXT NOT NULL DEFAULT '{}',
          shout TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL,
          CHECK (length(name) > 0)
        )
        """,
        "CREATE UNIQUE INDEX customer_name_unique ON customer (name)",
        """
        CREATE TABLE label (
          id INTEGER PRIMARY KEY,
          text TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE line (
          position INTEGER NOT NULL,
          amount INTEGER NOT NULL,
          purchase_number TEXT NOT NULL REFERENCES purchase (number) ON DELETE CASCADE,
          product_sku TEXT NOT NULL REFERENCES product (sku),
          PRIMARY KEY (position, purchase_number)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX line_amount ON line (amount DESC) WHERE amount > 1",
        """
        CREATE TABLE product (
          sku TEXT PRIMARY KEY NOT NULL,
          title TEXT NOT NULL,
          price REAL NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE product_label (
          label INTEGER NOT NULL REFERENCES label (id) ON DELETE CASCADE,
          product TEXT NOT NULL REFERENCES product (sku) ON DELETE CASCADE,
          PRIMARY KEY (label, product)
        )
        """,
        """
        CREATE TABLE purchase (
          number TEXT PRIMARY KEY NOT NULL,
          customer_id INTEGER REFERENCES customer (id) ON DELETE CASCADE
        )
        """,
        "CREATE TABLE sqlite_sequence(name,seq)",
      ])
    #expect(try read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 10_200)
  }

  @Test("values are written as @Column says, and read back as they were")
  func values() throws {
    try fill()
    let row = try read { try Row.fetchOne($0, sql: "SELECT * FROM customer") }
    #expect(
      row == [
        "id": 1, "name": "Ann", "is_active": 1, "joined_at": "2023-11-14T22:13:20.250Z",
        "birth": 2_440_587.5, "seen_at": 1_700_000_001, "settings": #"{"size":3}"#,
        "shout": "ANN",
      ])
    let numbers = try read {
      try String.fetchAll($0, sql: "SELECT number FROM purchase ORDER BY number")
    }
    #expect(numbers.first == "00000000-0000-4000-8000-000000000001")

    let context = ModelContext(try container())
    let ann = try #require(try context.fetch(FetchDescriptor<Shop.Customer>()).first)
    #expect(ann.joinedAt == Date(timeIntervalSince1970: 1_700_000_000.25))
    #expect(ann.birthday == Date(timeIntervalSince1970: 0))
    #expect(ann.settings == ["size": 3])
    #expect(ann.shout == "ANN")
    ann.name = "Anna"
    try context.save()
    #expect(ann.shout == "ANNA")
  }

  @Test("relationships go by text, UUID and composite keys, and by tables of links")
  func relationships() throws {
    try fill()
    let container = try container()
    let context = ModelContext(container)
    let ann = try #require(try context.fetch(FetchDescriptor<Shop.Customer>()).first)
    #expect(ann.purchases.count == 2)
    let lines = try context.fetch(
      FetchDescriptor<Shop.PurchaseLine>(
        sortBy: [SortDescriptor(\.amount), SortDescriptor(\.position)]))
    #expect(lines.map(\.product.title) == ["Tea", "Cup", "Tea", "Cup"])
    #expect(lines.map(\.purchase.customer?.name) == ["Ann", "Ann", "Ann", "Ann"])
    #expect(lines.first?.purchase.lines.count == 2)
    let tea = try #require(lines.first?.product)
    #expect(Set(tea.labels.map(\.text)) == ["hot", "new"])

    // Deletion by a composite key, a new link, a link that goes.
    context.delete(lines[3])
    tea.labels.removeAll { $0.text == "hot" }
    let cup = lines[1].product
    cup.labels.append(Shop.Label(text: "blue"))
    try context.save()
    let links = try read { db in
      try String.fetchAll(
        db,
        sql: """
          SELECT product || ' ' || text FROM product_label JOIN label ON label.id = label ORDER BY 1
          """)
    }
    #expect(links == ["C-1 blue", "C-1 new", "T-1 new"])
    let remaining = try read {
      try String.fetchAll(
        $0, sql: "SELECT position || ' ' || substr(purchase_number, -1) FROM line ORDER BY 1")
    }
    #expect(remaining == ["1 1", "1 2", "2 1"])

    context.delete(ann)
    try context.save()
    let counts = try read { db in
      try ["customer", "purchase", "line", "product"].map {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1
      }
    }
    #expect(counts == [0, 0, 0, 2])
    try container.close()
  }

  @Test("predicates see dates, UUIDs and relationships as Swift does")
  func predicates() throws {
    try fill()
    let context = ModelContext(try container())
    let limit = Date(timeIntervalSince1970: 1_700_000_000)
    let joined = FetchDescriptor<Shop.Customer>(
      predicate: #Predicate { $0.joinedAt > limit && $0.purchases.count == 2 })
    #expect(try context.fetchCount(joined) == 1)
    let number = try #require(UUID(uuidString: "00000000-0000-4000-8000-000000000002"))
    let purchases = FetchDescriptor<Shop.Purchase>(predicate: #Predicate { $0.number == number })
    let purchase = try #require(try context.fetch(purchases).first)
    let identifier = purchase.persistentModelID
    let lines = FetchDescriptor<Shop.PurchaseLine>(
      predicate: #Predicate { $0.purchase.number == number && $0.product.title == "Cup" })
    #expect(try context.fetch(lines).map(\.amount) == [4])
    let labelled = FetchDescriptor<Shop.Product>(
      predicate: #Predicate { product in product.labels.contains { $0.text == "hot" } })
    #expect(try context.fetch(labelled).map(\.sku) == ["T-1"])
    #expect(
      try context.fetch(
        FetchDescriptor<Shop.PurchaseLine>(
          predicate: #Predicate { $0.purchase.persistentModelID == identifier })
      ).count == 2)
  }

  @Test("all rows of a table without rowid are met once when they are enumerated in batches")
  func enumeration() throws {
    try fill()
    let context = ModelContext(try container())
    var descriptor = FetchDescriptor<Shop.PurchaseLine>()
    descriptor.relationshipKeyPathsForPrefetching = [\.product, \.purchase]
    var seen: [String] = []
    try context.enumerate(descriptor, batchSize: 3) {
      seen.append("\($0.position) \($0.amount) \($0.product.sku)")
    }
    #expect(seen.sorted() == ["1 2 T-1", "1 4 T-1", "2 2 C-1", "2 4 C-1"])
  }

  @Test("a model with a primary key that a row has takes that row's place")
  func upsert() throws {
    try fill()
    let context = ModelContext(try container())
    context.insert(Shop.Product(sku: "T-1", title: "Green tea", price: 3))
    let again = Shop.Customer(name: "Bo", joinedAt: .now)
    again.id = 1
    context.insert(again)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Shop.Product>()) == 2)
    let names = try read { try String.fetchAll($0, sql: "SELECT name FROM customer") }
    #expect(names == ["Bo"])
    let titles = try read { try String.fetchAll($0, sql: "SELECT title FROM product ORDER BY 1") }
    #expect(titles == ["Cup", "Green tea"])
  }

  @Test("keys of deleted rows are not given again where the key is autoincremented")
  func autoincrement() throws {
    try fill()
    let context = ModelContext(try container())
    for customer in try context.fetch(FetchDescriptor<Shop.Customer>()) { context.delete(customer) }
    try context.save()
    let bo = Shop.Customer(name: "Bo", joinedAt: .now)
    context.insert(bo)
    try context.save()
    #expect(bo.id == 2)
  }

  @Test("a primary key that was changed is refused, and nothing is written")
  func changedKey() throws {
    try fill()
    let context = ModelContext(try container())
    let line = try #require(try context.fetch(FetchDescriptor<Shop.PurchaseLine>()).first)
    line.position = 99
    #expect {
      try context.save()
    } throws: {
      "\($0)".contains("'position' was changed")
    }
  }

  @Test("the database's own foreign keys are enforced when models are saved")
  func enforcement() throws {
    try fill()
    let context = ModelContext(try container())
    let cup = try #require(
      try context.fetch(FetchDescriptor<Shop.Product>(predicate: #Predicate { $0.sku == "C-1" }))
        .first)
    context.delete(cup)
    #expect(throws: (any Error).self) { try context.save() }
    #expect(try read { try Int.fetchOne($0, sql: "SELECT count(*) FROM product") } == 2)
  }
}
