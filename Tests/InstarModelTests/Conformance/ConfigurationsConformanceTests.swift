import GRDB
import Instar
import InstarModel
import InstarStore
import InstarTestSupport
import Testing

@Suite("API page: several configurations in one container")
struct ConfigurationsConformanceTests {
  typealias Customer = TwoStores.Customer
  typealias Order = TwoStores.Order
  typealias Visit = TwoStores.Visit

  /// Where the two stores of a container are.
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case files, memory, fileAndMemory
    var testDescription: String { rawValue }
  }

  private let folder: TemporaryFolder
  private let schema = Schema(versionedSchema: TwoStores.self)

  init() throws { folder = try TemporaryFolder() }

  // MARK: Helpers

  private func url(_ name: String) -> URL { URL(filePath: folder.path(name)) }

  private func sales(_ kind: Kind = .files) -> ModelConfiguration {
    let schema = Schema([Customer.self, Order.self])
    return kind == .memory
      ? ModelConfiguration("sales", schema: schema, isStoredInMemoryOnly: true)
      : ModelConfiguration("sales", schema: schema, url: url("a-sales.store"))
  }

  private func visits(_ kind: Kind = .files) -> ModelConfiguration {
    let schema = Schema([Visit.self])
    return kind == .files
      ? ModelConfiguration("visits", schema: schema, url: url("b-visits.store"))
      : ModelConfiguration("visits", schema: schema, isStoredInMemoryOnly: true)
  }

  private func container(_ kind: Kind = .files) throws -> ModelContainer {
    try ModelContainer(for: schema, configurations: sales(kind), visits(kind))
  }

  /// Two customers with an order each, and two visits.
  private func filled(_ kind: Kind = .files) throws -> ModelContainer {
    let container = try container(kind)
    let context = ModelContext(container)
    for (number, name) in ["Ann", "Bob"].enumerated() {
      let customer = Customer(email: "\(name)@example.com", name: name)
      context.insert(customer)
      context.insert(Order(number: number + 1, customer: customer))
      context.insert(Visit(page: "/\(name)", count: number + 1))
    }
    try context.save()
    return container
  }

  private func customers(_ context: ModelContext) throws -> [Customer] {
    try context.fetch(FetchDescriptor<Customer>(sortBy: [SortDescriptor(\.name)]))
  }

  private func pages(_ context: ModelContext) throws -> [Visit] {
    try context.fetch(FetchDescriptor<Visit>(sortBy: [SortDescriptor(\.page)]))
  }

  private func names(_ container: ModelContainer) throws -> [String] {
    let context = ModelContext(container)
    return try customers(context).map(\.name) + pages(context).map(\.page)
  }

  private func tables(_ name: String) throws -> [String] {
    let queue = try DatabaseQueue(path: folder.path(name))
    defer { try? queue.close() }
    return try queue.read {
      try String.fetchAll(
        $0,
        sql: """
          SELECT name FROM sqlite_schema
          WHERE type = 'table' AND name LIKE 'Z%' AND name NOT LIKE 'Z\\_%' ESCAPE '\\' ORDER BY 1
          """)
    }
  }

  /// The error of a container of these configurations. Nothing may be made in the folder by trying.
  private func refusal(
    _ configurations: [ModelConfiguration], for schema: Schema? = nil
  ) throws -> SwiftDataError {
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(for: schema ?? self.schema, configurations: configurations)
    }
    #expect(folder.names() == [])
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    return try #require(error)
  }

  // MARK: Which model is where

  @Test("each configuration has its models in a store of its own, and the container has all")
  func ownStores() throws {
    let (sales, visits) = (sales(), visits())
    let container = try ModelContainer(for: schema, configurations: [visits, sales])
    #expect(container.configurations == [sales, visits])
    #expect(container.schema.entities.map(\.name) == ["Customer", "Order", "Visit"])
    try container.close()
    #expect(try tables("a-sales.store") == ["ZCUSTOMER", "ZORDER"])
    #expect(try tables("b-visits.store") == ["ZVISIT"])
  }

  @Test(
    "models that relationships reference, and those that no configuration names, need not be named")
  func unnamedModels() throws {
    let container = try ModelContainer(
      for: Customer.self, Order.self, Visit.self,
      configurations: ModelConfiguration(schema: Schema([Order.self]), url: url("a.store")),
      ModelConfiguration(url: url("b.store")))
    try container.close()
    #expect(try tables("a.store") == ["ZCUSTOMER", "ZORDER"])
    #expect(try tables("b.store") == ["ZVISIT"])
  }

  @Test("a file and a store in memory in one container each have their models")
  func fileAndMemory() throws {
    let container = try filled(.fileAndMemory)
    #expect(try names(container) == ["Ann", "Bob", "/Ann", "/Bob"])
    try container.close()
    #expect(folder.names() == ["a-sales.store"])
    let again = try self.container(.fileAndMemory)
    #expect(try names(again) == ["Ann", "Bob"])
  }

  @Test("what is opened with two configurations can be opened with one of them, and its models")
  func apart() throws {
    try filled().close()
    let alone = try ModelContainer(for: Schema([Visit.self]), configurations: visits())
    #expect(try pages(ModelContext(alone)).map(\.page) == ["/Ann", "/Bob"])
    try alone.close()
    #expect(try names(container()) == ["Ann", "Bob", "/Ann", "/Bob"])
  }

  // MARK: What is refused

  @Test("two configurations with one name, one file, or given twice, are refused by name")
  func duplicates() throws {
    let twin = ModelConfiguration(
      "sales", schema: Schema([Visit.self]), url: url("other.store"))
    var error = try refusal([sales(), twin])
    #expect(SwiftDataError.duplicateConfiguration ~= error)
    #expect(error.description.contains("two configurations have the name 'sales'"))
    #expect(error.description.contains("other.store"))

    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path)
    let sameFile = ModelConfiguration(
      schema: Schema([Visit.self]), url: url("link/../link/a-sales.store"))
    error = try #require(
      #expect(throws: SwiftDataError.self) {
        try ModelContainer(for: schema, configurations: sales(), sameFile)
      })
    #expect(SwiftDataError.duplicateConfiguration ~= error)
    #expect(error.description.contains("Customer, Order") && error.description.contains("Visit"))
    try FileManager.default.removeItem(atPath: folder.path("link"))

    let visits = visits()
    error = try refusal([visits, visits])
    #expect(error.description.contains("was given twice"))
  }

  @Test("a model in two configurations, and two configurations without a schema, are refused")
  func ambiguous() throws {
    let both = ModelConfiguration(
      "all", schema: Schema([Visit.self, Customer.self, Order.self]), url: url("c.store"))
    var error = try refusal([visits(), both])
    #expect(SwiftDataError.duplicateConfiguration ~= error)
    #expect(error.description.contains("Visit is in the schemas of two configurations"))
    #expect(error.description.contains("'visits'") && error.description.contains("'all'"))
    error = try refusal([
      ModelConfiguration("x", url: url("x.store")), ModelConfiguration("y", url: url("y.store")),
    ])
    #expect(SwiftDataError.duplicateConfiguration ~= error)
    #expect(error.description.contains("'x'") && error.description.contains("'y'"))
  }

  @Test("a model without a configuration, and a configuration without models, are refused")
  func leftOut() throws {
    let customers = ModelConfiguration(
      "customers", schema: Schema([Customer.self, Order.self]), url: url("c.store"))
    let none = ModelConfiguration("none", schema: Schema([]), url: url("n.store"))
    var error = try refusal([customers, none])
    #expect(SwiftDataError.configurationSchemaNotFoundInContainerSchema ~= error)
    #expect(error.description.contains("Visit is a model of the container"))
    #expect(error.description.contains("has Customer, Order"))
    error = try refusal([
      customers, visits(), ModelConfiguration("rest", url: url("r.store")),
    ])
    #expect(error.description.contains("no model is left for 'rest'"))
  }

  @Test("a relationship between models of two stores is refused, with the property")
  func relationshipBetweenStores() throws {
    let customers = ModelConfiguration(
      "customers", schema: Schema([Customer.self]), url: url("c.store"))
    let orders = ModelConfiguration("orders", schema: Schema([Order.self]), url: url("o.store"))
    let error = try refusal([customers, orders, visits()])
    #expect(SwiftDataError.configurationSchemaNotFoundInContainerSchema ~= error)
    #expect(
      error.description.contains("Order.customer refers to Customer")
        || error.description.contains("Customer.orders refers to Order"))
    #expect(error.description.contains("'customers'") && error.description.contains("'orders'"))
  }

  @Test("a model that the container does not have is refused in any of the configurations")
  func stranger() throws {
    let error = try refusal([sales(), visits()], for: Schema([Customer.self, Order.self]))
    #expect(SwiftDataError.configurationSchemaNotFoundInContainerSchema ~= error)
    #expect(error.description.contains("Visit is in the configuration's schema"))
  }

  // MARK: One context

  @Test("one context fetches, counts and names the models of all stores", arguments: Kind.allCases)
  func fetching(kind: Kind) throws {
    let context = ModelContext(try filled(kind))
    #expect(try customers(context).map(\.orders.count) == [1, 1])
    let busy = FetchDescriptor<Visit>(predicate: #Predicate { $0.count > 1 })
    #expect(try context.fetch(busy).map(\.page) == ["/Bob"])
    #expect(try context.fetchCount(busy) == 1)
    #expect(try context.fetchCount(FetchDescriptor<Order>()) == 2)
    let identifiers = try context.fetchIdentifiers(busy)
    #expect(identifiers.map(\.entityName) == ["Visit"])
    let visit = try #require(identifiers.first.flatMap { context.model(for: $0) as? Visit })
    #expect(visit.page == "/Bob")
    let registered: Visit? = context.registeredModel(for: visit.persistentModelID)
    #expect(registered === visit)
    let inBatches = try context.fetch(
      FetchDescriptor<Visit>(sortBy: [SortDescriptor(\.page)]), batchSize: 1)
    #expect(inBatches.map(\.page) == ["/Ann", "/Bob"])
    #expect(
      try context.fetchIdentifiers(FetchDescriptor<Customer>(), batchSize: 1).count == 2)
    var seen: [String] = []
    try context.enumerate(FetchDescriptor<Customer>(), batchSize: 1) { seen.append($0.name) }
    try context.enumerate(FetchDescriptor<Visit>(), batchSize: 1) { seen.append($0.page) }
    #expect(seen == ["Ann", "Bob", "/Ann", "/Bob"])
  }

  @Test("prefetching stays one statement for the rows and one for each relationship")
  func prefetching() throws {
    let container = try filled()
    var descriptor = FetchDescriptor<Order>(sortBy: [SortDescriptor(\.number)])
    descriptor.relationshipKeyPathsForPrefetching = [\.customer]
    let context = ModelContext(container)
    let orders = try context.fetch(descriptor)
    // Without their file, values that were not read before could not be read.
    try container.close()
    #expect(orders.map { $0.customer?.name } == ["Ann", "Bob"])
  }

  @Test("unsaved changes in one store do not stand in the way of fetches from another")
  func pendingChangesElsewhere() throws {
    let context = ModelContext(try filled())
    context.insert(Visit(page: "/new"))
    #expect(try context.fetch(FetchDescriptor<Order>(), batchSize: 1).count == 2)
    #expect(try context.fetchCount(FetchDescriptor<Visit>()) == 3)
    #expect(throws: SwiftDataError.includePendingChangesWithBatchSize) {
      try context.fetch(FetchDescriptor<Visit>(), batchSize: 1)
    }
  }

  @Test(
    "one save writes to all stores; unique values are upserts in each", arguments: Kind.allCases)
  func saving(kind: Kind) throws {
    let container = try filled(kind)
    let context = ModelContext(container)
    let ann = try #require(customers(context).first)
    ann.name = "Anna"
    ann.orders.append(Order(number: 7))
    context.insert(Visit(page: "/Ann", count: 70))
    try context.delete(#require(pages(context).last))
    #expect(context.hasChanges)
    #expect(context.insertedModelsArray.count == 2 && context.deletedModelsArray.count == 1)
    try context.save()
    #expect(!context.hasChanges)
    #expect(try names(container) == ["Anna", "Bob", "/Ann"])
    let fresh = ModelContext(container)
    #expect(try pages(fresh).map(\.count) == [70])
    #expect(try customers(fresh).map(\.orders.count) == [2, 1])
  }

  @Test("deletes in bulk, with their delete rules, work in each store")
  func bulkDelete() throws {
    let container = try filled()
    let context = ModelContext(container)
    try context.delete(model: Customer.self, where: #Predicate { $0.name == "Ann" })
    try context.delete(model: Visit.self)
    try context.save()
    #expect(try names(container) == ["Bob"])
    #expect(try ModelContext(container).fetch(FetchDescriptor<Order>()).map(\.number) == [2])
  }

  @Test("rollback and a failed transaction undo the changes in all stores")
  func undoing() throws {
    struct Refusal: Error {}
    let container = try filled()
    let context = ModelContext(container)
    func change() throws {
      try customers(context)[0].name = "changed"
      try context.delete(pages(context)[0])
      context.insert(Visit(page: "/new"))
    }
    try change()
    context.rollback()
    #expect(!context.hasChanges)
    #expect(throws: Refusal.self) {
      try context.transaction {
        try change()
        throw Refusal()
      }
    }
    #expect(try customers(context).map(\.name) == ["Ann", "Bob"])
    #expect(try pages(context).map(\.page) == ["/Ann", "/Bob"])
    try context.transaction { try change() }
    #expect(try names(container) == ["Bob", "changed", "/Bob", "/new"])
  }

  @Test("an identifier says in which store its model is", arguments: Kind.allCases)
  func storeIdentifiers(kind: Kind) throws {
    let context = ModelContext(try filled(kind))
    let (customers, pages) = (try customers(context), try pages(context))
    let identifiers = Set(customers.compactMap(\.persistentModelID.storeIdentifier))
    let others = Set(pages.compactMap(\.persistentModelID.storeIdentifier))
    #expect(identifiers.count == 1 && others.count == 1 && identifiers != others)
    #expect(
      try context.fetchIdentifiers(FetchDescriptor<Visit>()).first?.storeIdentifier == others.first)
    #expect(Visit(page: "/").persistentModelID.storeIdentifier == nil)
  }

  // MARK: Several contexts

  @Test("contexts see each other's saves in every store", arguments: Kind.allCases)
  func severalContexts(kind: Kind) throws {
    let container = try filled(kind)
    let (first, second) = (ModelContext(container), ModelContext(container))
    let (mine, pages) = (try customers(first)[0], try pages(first))
    #expect(mine.name == "Ann" && pages[0].count == 1)
    try customers(second)[0].name = "Anna"
    try second.delete(self.pages(second)[1])
    try self.pages(second)[0].count = 10
    try second.save()
    #expect(try customers(first).map(\.name) == ["Anna", "Bob"])
    #expect(try self.pages(first).map(\.count) == [10])
    #expect(mine.name == "Anna" && pages[1].isDeleted)
  }

  @Test("containers see each other's saves in every store, in whatever order they name them")
  func severalContainers() throws {
    let one = try filled()
    let two = try ModelContainer(for: schema, configurations: visits(), sales())
    let (first, second) = (ModelContext(one), ModelContext(two))
    let mine = try pages(first)[0]
    #expect(try customers(first).count == 2)
    try pages(second)[0].count = 50
    second.insert(Customer(email: "c@example.com", name: "Cleo"))
    try second.save()
    #expect(try pages(first)[0] === mine)
    #expect(mine.count == 50)
    #expect(try customers(first).map(\.name) == ["Ann", "Bob", "Cleo"])
  }

  @Test(
    "two threads that save to all stores through containers with other orders both come through")
  func threads() async throws {
    let (sales, visits) = (sales(.memory), visits(.memory))
    let containers = [
      try ModelContainer(for: schema, configurations: sales, visits),
      try ModelContainer(for: schema, configurations: visits, sales),
    ]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, container) in containers.enumerated() {
        group.addTask {
          for index in 0..<20 {
            let context = ModelContext(container)
            context.insert(Customer(email: "\(number)-\(index)", name: "x"))
            context.insert(Visit(page: "\(number)-\(index)"))
            try context.save()
          }
        }
      }
      try await group.waitForAll()
    }
    let context = ModelContext(containers[0])
    #expect(try context.fetchCount(FetchDescriptor<Customer>()) == 40)
    #expect(try context.fetchCount(FetchDescriptor<Visit>()) == 40)
  }

  // MARK: Reading only, erasing

  @Test("a configuration that does not allow saving refuses changes of its models only")
  func readOnly() throws {
    try filled().close()
    let reading = ModelConfiguration(
      "visits", schema: Schema([Visit.self]), url: url("b-visits.store"), allowsSave: false)
    let container = try ModelContainer(for: schema, configurations: sales(), reading)
    let context = ModelContext(container)
    try customers(context)[0].name = "Anna"
    try context.save()
    try customers(context)[1].name = "Bobby"
    try pages(context)[0].count = 99
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.code == .unreadableStore && error?.what == "cannot save Visit")
    #expect(error?.cause.contains("b-visits.store") == true)
    // Nothing was written, and everything is pending still.
    #expect(try names(container) == ["Anna", "Bob", "/Ann", "/Bob"])
    #expect(context.changedModelsArray.count == 2)
    context.rollback()
    #expect(throws: InstarError.self) { try container.erase() }
    #expect(try names(container) == ["Anna", "Bob", "/Ann", "/Bob"])
  }

  @Test("erase and deleteAllData empty all stores", arguments: Kind.allCases, [false, true])
  func erasing(kind: Kind, isSilent: Bool) throws {
    let container = try filled(kind)
    let context = ModelContext(container)
    #expect(try pages(context).count == 2)
    if isSilent { container.deleteAllData() } else { try container.erase() }
    #expect(try names(container) == [])
    #expect(try customers(context).isEmpty && pages(context).isEmpty)
    context.insert(Visit(page: "/"))
    try context.save()
    #expect(try names(container) == ["/"])
  }

  // MARK: Saves that fail

  private func execute(_ sql: String, in name: String) throws {
    let queue = try DatabaseQueue(path: folder.path(name))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  @Test(
    "what fails in one store before the commits leaves all stores unchanged, and the changes pending"
  )
  func failingStatement() throws {
    try filled().close()
    try execute(
      "CREATE TRIGGER t BEFORE UPDATE ON ZVISIT BEGIN SELECT RAISE(ABORT, 'no, thanks'); END",
      in: "b-visits.store")
    let container = try container()
    let context = ModelContext(container)
    try customers(context)[0].name = "Anna"
    try pages(context)[0].count = 99
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.cause.contains("no, thanks") == true)
    #expect(try names(container) == ["Ann", "Bob", "/Ann", "/Bob"])
    #expect(context.changedModelsArray.count == 2)
    try execute("DROP TRIGGER t", in: "b-visits.store")
    try context.save()
    let fresh = ModelContext(container)
    #expect(try customers(fresh)[0].name == "Anna" && pages(fresh)[0].count == 99)
  }

  @Test(
    "a store of ordinary tables beside one of SwiftData's: what its commit would be refused for is met before the other is committed"
  )
  func ordinaryTables() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: TwoFormats.self),
      configurations: ModelConfiguration(
        schema: Schema([TwoFormats.Author.self]), url: url("a-tables.db")),
      ModelConfiguration(schema: Schema([TwoFormats.Note.self]), url: url("b-notes.store")))
    let context = ModelContext(container)
    let author = TwoFormats.Author(id: 1)
    context.insert(TwoFormats.Essay(id: 1, author: author))
    context.insert(TwoFormats.Note(text: "a"))
    try context.save()
    context.delete(author)
    context.insert(TwoFormats.Note(text: "b"))
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.cause.contains("FOREIGN KEY") == true)
    #expect(error?.state == "unchanged")
    let fresh = ModelContext(container)
    #expect(try fresh.fetch(FetchDescriptor<TwoFormats.Note>()).map(\.text) == ["a"])
    #expect(try fresh.fetchCount(FetchDescriptor<TwoFormats.Author>()) == 1)
  }

  /// Refuses commits, as a full disk does.
  private final class Refusal: TransactionObserver {
    struct Full: Error {}
    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseWillCommit() throws { throw Full() }
    func databaseDidCommit(_ database: Database) {}
    func databaseDidRollback(_ database: Database) {}
  }

  @Test("a commit that fails after that of another store says which store is at what")
  func failingCommit() throws {
    let container = try filled()
    let context = ModelContext(container)
    let refusal = Refusal()
    // The first store's transaction is the outermost: it is committed last.
    try container.connection.perform {
      $0.database.add(transactionObserver: refusal, extent: .databaseLifetime)
    }
    try customers(context)[0].name = "Anna"
    let new = Visit(page: "/new")
    context.insert(new)
    try pages(context)[0].count = 99
    let heard = SaveNoticeTests.Heard(context)
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.state?.contains("b-visits.store': saved") == true)
    #expect(heard.names == [ModelContext.willSave, ModelContext.didSave])
    #expect(heard[.insertedIdentifiers] == [new.persistentModelID])
    #expect(heard[.updatedIdentifiers] == [try pages(context)[0].persistentModelID])
    #expect(error?.state?.contains("a-sales.store': unchanged") == true)
    #expect(try names(container) == ["Ann", "Bob", "/Ann", "/Bob", "/new"])
    #expect(!new.hasChanges && new.persistentModelID.storeIdentifier != nil)
    #expect(context.changedModelsArray.map { ($0 as? Customer)?.name } == ["Anna"])
    #expect(context.insertedModelsArray.isEmpty)
    try container.connection.perform { $0.database.remove(transactionObserver: refusal) }
    try context.save()
    #expect(try names(container) == ["Anna", "Bob", "/Ann", "/Bob", "/new"])
  }
}
