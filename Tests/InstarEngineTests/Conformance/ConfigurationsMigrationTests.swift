import Instar
import InstarStore
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@Suite("API page: several configurations and a plan", .serialized)
struct ConfigurationsMigrationTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
    SalesPlan.seen.withLock { $0 = [] }
  }

  // MARK: Helpers

  /// What the closures of `SalesPlan` see, and keep for each other, where both stores are at version 1.
  private static let seenInBoth = [
    "2 customers, 2 visits", "next [11, 21] of pages, 2 customers before",
  ]

  private func configuration(
    _ name: String, _ schema: Schema, allowsSave: Bool = true
  ) -> ModelConfiguration {
    ModelConfiguration(
      name, schema: schema, url: URL(filePath: folder.path("\(name).store")),
      allowsSave: allowsSave)
  }

  private var oldSales: ModelConfiguration {
    configuration(
      "sales", Schema([SalesV1.Customer.self, SalesV1.Order.self, SalesV1.Draft.self]))
  }
  private var oldVisits: ModelConfiguration {
    configuration("visits", Schema([SalesV1.Visit.self]))
  }
  private var sales: ModelConfiguration {
    configuration("sales", Schema([SalesV2.Customer.self, SalesV2.Order.self]))
  }
  private var visits: ModelConfiguration {
    configuration("visits", Schema([SalesV2.Page.self]))
  }

  private func fill(_ configurations: [ModelConfiguration]) throws -> ModelContainer {
    let container = try ModelContainer(
      for: Schema(versionedSchema: SalesV1.self), configurations: configurations)
    let context = ModelContext(container)
    for (number, name) in ["Ann", "Bob"].enumerated() {
      let customer = SalesV1.Customer(name: name)
      context.insert(customer)
      context.insert(SalesV1.Order(number: number + 1, customer: customer))
      context.insert(SalesV1.Visit(page: "/\(name)", count: (number + 1) * 10))
    }
    context.insert(SalesV1.Draft(text: "…"))
    try context.save()
    return container
  }

  /// Both stores at version 1.
  private func makeFirst() throws { try fill([oldSales, oldVisits]).close() }

  private func open(
    _ plan: any SchemaMigrationPlan.Type = SalesPlan.self,
    _ configurations: [ModelConfiguration]? = nil
  ) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: SalesV2.self), migrationPlan: plan,
      configurations: configurations ?? [visits, sales])
  }

  private func error(
    _ plan: any SchemaMigrationPlan.Type, _ configurations: [ModelConfiguration]? = nil
  ) throws -> SwiftDataError {
    try #require(
      #expect(throws: SwiftDataError.self) { try open(plan, configurations) })
  }

  private func customers(_ container: ModelContainer) throws -> [String] {
    let context = ModelContext(container)
    let customers = try context.fetch(
      FetchDescriptor<SalesV2.Customer>(sortBy: [SortDescriptor(\.fullName)]))
    return withExtendedLifetime(context) {
      customers.map { "\($0.fullName) \($0.visitCount) \($0.orders.map(\.number))" }
    }
  }

  private func pages(_ container: ModelContainer) throws -> [String] {
    let context = ModelContext(container)
    return try context.fetch(
      FetchDescriptor<SalesV2.Page>(sortBy: [SortDescriptor(\.path)])
    )
    .map { "\($0.path) \($0.count)" }
  }

  private func versions() throws -> [String: String] {
    var versions: [String: String] = [:]
    for name in ["sales", "visits"] where folder.names().contains("\(name).store") {
      versions[name] = try StoreProbe.read(folder.path("\(name).store")).identity.version?
        .description
    }
    return versions
  }

  private var history: [RunReport] {
    get throws { try StateFolder(path: folder.path("state")).history().reports }
  }

  // MARK: Both behind

  @Test("all stores are migrated by one plan, whose closures run once and see the models of all")
  func bothBehind() throws {
    try makeFirst()
    let container = try open()
    #expect(container.schema.version == Schema.Version(2, 0, 0))
    #expect(try customers(container) == ["Ann 10 [1]", "Bob 20 [2]"])
    #expect(try pages(container) == ["/Ann 10", "/Bob 20", "/migrated 1"])
    #expect(SalesPlan.seen.withLock(\.self) == Self.seenInBoth)
    try container.close()
    #expect(try versions() == ["sales": "2.0.0", "visits": "2.0.0"])
    // Each has a backup and an entry of its own.
    let reports = try history
    #expect(reports.map(\.result) == [.migrated, .migrated])
    #expect(Set(reports.map(\.store)).count == 2)
    for report in reports {
      let backup = try #require(report.backup)
      #expect(try StoreProbe.read(backup).identity.version == Schema.Version(1, 0, 0))
      #expect(report.stages.count == 1)
    }
    #expect(!folder.names().contains(".instar"))
    // The second time there is nothing to do.
    #expect(try pages(open()).count == 3)
    #expect(try history.count == 2)
  }

  @Test(
    "lightweight stages migrate each store's part; what did not last was in the store that had it")
  func lightweight() throws {
    try makeFirst()
    let container = try open(LightweightSalesPlan.self)
    #expect(try customers(container) == ["Ann 0 [1]", "Bob 0 [2]"])
    #expect(try pages(container) == ["/Ann 10", "/Bob 20"])
    let report = try #require(try history.first { $0.store.hasSuffix("sales.store") })
    #expect(report.entities.first { $0.name == "Draft" }?.rowsBefore == 1)
  }

  @Test(
    "stores in memory are migrated together, and a file with one in memory",
    arguments: [true, false])
  func memory(isFirstInFile: Bool) throws {
    // Names alone count: this one has the customers of either version.
    let customers = Schema([SalesV1.Customer.self])
    let sales =
      isFirstInFile
      ? configuration("sales", customers)
      : ModelConfiguration("sales", schema: customers, isStoredInMemoryOnly: true)
    let rest = ModelConfiguration("rest", isStoredInMemoryOnly: true)
    let old = try fill([sales, rest])
    let container = try open(SalesPlan.self, [sales, rest])
    #expect(try self.customers(container) == ["Ann 10 [1]", "Bob 20 [2]"])
    #expect(try pages(container) == ["/Ann 10", "/Bob 20", "/migrated 1"])
    #expect(SalesPlan.seen.withLock(\.self) == Self.seenInBoth)
    #expect(throws: (any Error).self) { try fillAgain(old) }
  }

  /// A container of the old version can no longer write.
  private func fillAgain(_ old: ModelContainer) throws {
    let context = ModelContext(old)
    context.insert(SalesV1.Visit(page: "/x", count: 1))
    try context.save()
  }

  // MARK: At different versions

  @Test("a store that is current stays as it is, and one that is behind is migrated")
  func oneBehind() throws {
    try makeVisitsBehind()
    let before = try Data(contentsOf: URL(filePath: folder.path("sales.store")))
    let container = try open(CarefulSalesPlan.self)
    #expect(try pages(container) == ["/careful 1", "/late 3"])
    #expect(try customers(container) == ["Ann 0 [1]", "Bob 0 [2]"])
    try container.close()
    #expect(try Data(contentsOf: URL(filePath: folder.path("sales.store"))) == before)
    #expect(try versions() == ["sales": "2.0.0", "visits": "2.0.0"])
  }

  /// Sales are at version 2, visits at version 1.
  private func makeVisitsBehind() throws {
    try makeFirst()
    try open(LightweightSalesPlan.self).close()
    try FileManager.default.removeItem(atPath: folder.path("visits.store"))
    let alone = try ModelContainer(for: SalesV1.Visit.self, configurations: oldVisits)
    let context = ModelContext(alone)
    context.insert(SalesV1.Visit(page: "/late", count: 3))
    try context.save()
    try alone.close()
    #expect(try versions() == ["sales": "2.0.0", "visits": "1.0.0"])
  }

  @Test("a closure that uses a model of a store which is further already is told so by name")
  func closureOfOtherStore() throws {
    try makeVisitsBehind()
    let before = try folder.contents().filter { $0.key.hasSuffix(".store") }
    let error = try error(SalesPlan.self)
    let text = error.description
    #expect(error.cause?.code == .modelNotInSchema)
    #expect(text.contains("cannot count SalesV1.Customer in willMigrate"))
    #expect(text.contains("it takes no part in this stage"))
    #expect(text.contains("context.container.schema.entity(for: SalesV1.Customer.self) != nil"))
    #expect(error.cause?.state == "unchanged")
    #expect(try folder.contents().filter { $0.key.hasSuffix(".store") } == before)
  }

  @Test("a store that is missing takes part in stages with closures, as an empty one")
  func oneMissing() throws {
    try fill([oldSales, ModelConfiguration(isStoredInMemoryOnly: true)]).close()
    let container = try open()
    #expect(
      SalesPlan.seen.withLock(\.self) == [
        "2 customers, 0 visits", "next [] of pages, 2 customers before",
      ])
    #expect(try customers(container) == ["Ann 0 [1]", "Bob 0 [2]"])
    #expect(try pages(container) == ["/migrated 1"])
  }

  @Test("a store that was made to take part is removed again where a closure throws")
  func oneMissingAndThrowing() throws {
    try fill([oldSales, ModelConfiguration(isStoredInMemoryOnly: true)]).close()
    let error = try error(ThrowingSalesPlan.self)
    #expect(error.description.contains("no, thanks") && error.cause?.state == "unchanged")
    #expect(folder.names() == ["sales.store", "state"])
    #expect(try versions() == ["sales": "1.0.0"])
    #expect(try pages(open()) == ["/migrated 1"])
  }

  @Test("a version in which a store has no model is a stage on its way, where others have some")
  func versionWithoutModels() throws {
    func customers(_ type: any PersistentModel.Type) -> ModelConfiguration {
      configuration("sales", Schema([type]))
    }
    func notes(_ type: any PersistentModel.Type) -> ModelConfiguration {
      configuration("visits", Schema([type]))
    }
    let old = try ModelContainer(
      for: Schema(versionedSchema: InterruptedPlan.V1.self),
      configurations: customers(InterruptedPlan.V1.Customer.self),
      notes(InterruptedPlan.V1.Note.self))
    let context = ModelContext(old)
    context.insert(InterruptedPlan.V1.Customer(name: "Ann"))
    context.insert(InterruptedPlan.V1.Note(text: "old"))
    try context.save()
    try old.close()
    typealias V3 = InterruptedPlan.V3
    let new = try ModelContainer(
      for: Schema(versionedSchema: V3.self), migrationPlan: InterruptedPlan.self,
      configurations: customers(V3.Customer.self), notes(V3.Note.self))
    let fresh = ModelContext(new)
    #expect(try fresh.fetch(FetchDescriptor<V3.Customer>()).map(\.name) == ["Ann"])
    #expect(try fresh.fetch(FetchDescriptor<V3.Note>()).map(\.text) == ["of Ann"])
    try new.close()
    #expect(try versions() == ["sales": "3.0.0", "visits": "3.0.0"])
  }

  @Test("without any store all are made at the last version, and no closure runs")
  func allMissing() throws {
    try open().close()
    #expect(try versions() == ["sales": "2.0.0", "visits": "2.0.0"])
    #expect(SalesPlan.seen.withLock(\.self) == [])
    #expect(folder.names() == ["sales.store", "visits.store"])
  }

  // MARK: What goes wrong

  @Test("what a closure throws leaves all stores unchanged, and is in the ledger of each")
  func throwingStage() throws {
    try makeFirst()
    let before = try folder.contents().filter { $0.key.hasSuffix(".store") }
    let error = try error(ThrowingSalesPlan.self)
    #expect(error.description.contains("no, thanks"))
    #expect(error.cause?.state == "unchanged")
    #expect(try folder.contents().filter { $0.key.hasSuffix(".store") } == before)
    #expect(try history.map(\.result) == [.failed, .failed])
    #expect(folder.names("state/backups") == [] && folder.names("state/phases") == [])
    #expect(!folder.names().contains(".instar"))
    #expect(try pages(open()).count == 3)
  }

  @Test("a store at no version of the plan is found before any other is touched")
  func unknownVersion() throws {
    try makeFirst()
    let queue = try StoreConnection(path: folder.path("visits.store"), durability: .durable)
    try queue.perform { try $0.run("ALTER TABLE ZVISIT ADD COLUMN ZEXTRA INTEGER") }
    try queue.close()
    let before = try folder.contents()
    let error = try error(SalesPlan.self)
    #expect(SwiftDataError.unknownSchema ~= error)
    #expect(error.cause?.store == folder.path("visits.store"))
    #expect(error.description.contains("visits.store") && error.description.contains("ZEXTRA"))
    #expect(try folder.contents() == before)
  }

  private func openForgetful() throws -> ModelContainer {
    typealias V2 = ForgetfulSalesPlan.SalesV2
    return try ModelContainer(
      for: Schema(versionedSchema: V2.self), migrationPlan: ForgetfulSalesPlan.self,
      configurations: configuration("sales", Schema([V2.Customer.self, V2.Order.self])),
      configuration("visits", Schema([V2.Visit.self])))
  }

  @Test("a store that fails in another state than unchanged is reported in that state")
  func oneIsRemoved() throws {
    try makeFirst()
    ForgetfulSalesPlan.isForgetful.withLock { $0 = false }
    ForgetfulSalesPlan.removedFile.withLock { $0 = folder.path("sales.store") }
    defer { ForgetfulSalesPlan.removedFile.withLock { $0 = nil } }
    let error = try #require(#expect(throws: SwiftDataError.self) { try openForgetful() })
    let state = try #require(error.cause?.state)
    #expect(state.contains("visits.store': migrated to 2.0.0"))
    #expect(state.contains("sales.store': missing"))
    #expect(!state.contains("unchanged"))
    #expect(try versions() == ["visits": "2.0.0"])
  }

  @Test(
    "if one store fails after the other is written back, the error says which store has which version"
  )
  func oneFails() throws {
    try makeFirst()
    typealias V2 = ForgetfulSalesPlan.SalesV2
    ForgetfulSalesPlan.isForgetful.withLock { $0 = true }
    let error = try #require(#expect(throws: SwiftDataError.self) { try openForgetful() })
    let state = try #require(error.cause?.state)
    #expect(state.contains("visits.store': migrated to 2.0.0"))
    #expect(state.contains("sales.store': unchanged"))
    #expect(error.description.contains("level"))
    #expect(try versions() == ["sales": "1.0.0", "visits": "2.0.0"])
    // The next opening goes on from there.
    ForgetfulSalesPlan.isForgetful.withLock { $0 = false }
    let context = ModelContext(try openForgetful())
    #expect(try context.fetch(FetchDescriptor<V2.Customer>()).map(\.level) == ["new", "new"])
    #expect(try context.fetchCount(FetchDescriptor<V2.Visit>()) == 2)
  }

  @Test("a store that may not be written stops the migration of all, unless it is current")
  func readOnly() throws {
    try makeFirst()
    let reading = configuration("visits", Schema([SalesV2.Page.self]), allowsSave: false)
    let error = try error(LightweightSalesPlan.self, [sales, reading])
    #expect(error.description.contains("does not allow saving"))
    #expect(try versions() == ["sales": "1.0.0", "visits": "1.0.0"])
    try open(LightweightSalesPlan.self).close()
    #expect(try pages(open(LightweightSalesPlan.self, [sales, reading])).count == 2)
  }

  @Test("a relationship of an earlier version between models of two stores is refused by name")
  func relationshipBetweenStores() throws {
    typealias V2 = PartedPlan.V2
    let error = try #require(
      #expect(throws: SwiftDataError.self) {
        try ModelContainer(
          for: Schema(versionedSchema: V2.self), migrationPlan: PartedPlan.self,
          configurations: configuration("sales", Schema([V2.Customer.self])),
          configuration("visits", Schema([V2.Visit.self])))
      })
    #expect(
      error.description.contains("Customer.visits crosses in 1.0.0 from one store to another")
        || error.description.contains("Visit.customer crosses in 1.0.0 from one store to another"))
    #expect(folder.names() == [])
  }
}
