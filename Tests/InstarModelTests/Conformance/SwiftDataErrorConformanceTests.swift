import Instar
import InstarTestSupport
import Testing

@Suite("API page: SwiftDataError")
struct SwiftDataErrorConformanceTests {
  typealias Entry = Journal.Entry
  typealias Folder = Journal.Folder

  private let folder: TemporaryFolder
  private let context: ModelContext

  init() throws {
    folder = try TemporaryFolder()
    context = ModelContext(try Journal.container())
  }

  /// What `body` throws, which is of this kind and carries its cause, also as text.
  private func cause(
    _ kind: SwiftDataError, location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) throws -> InstarError {
    let error = #expect(throws: SwiftDataError.self, sourceLocation: location) { try body() }
    let thrown = try #require(error, sourceLocation: location)
    #expect(kind ~= thrown, "\(thrown)", sourceLocation: location)
    let cause = try #require(thrown.cause, sourceLocation: location)
    #expect("\(thrown)".contains(cause.cause.prefix { $0 != "\n" }), sourceLocation: location)
    #expect("\(thrown)".contains("[\(cause.code.rawValue)]"), sourceLocation: location)
    return cause
  }

  private func open(_ url: URL, _ models: any PersistentModel.Type...) throws -> ModelContainer {
    try ModelContainer(for: Schema(models), configurations: ModelConfiguration(url: url))
  }

  @Model
  final class Ticket {
    var number: Int
    var owner: Owner
    @Transient var isOpen = false
    init(number: Int, owner: Owner) {
      self.number = number
      self.owner = owner
    }
  }

  @Model
  final class Owner {
    var name: String
    @Relationship(inverse: \Ticket.owner) var tickets: [Ticket] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Lone {
    var name: String
    init(name: String) { self.name = name }
  }

  // MARK: Opening

  @Test(
    "loadIssueModelContainer is thrown for a file that is not a store, a folder, and a path below a file"
  )
  func loadIssue() throws {
    let text = try folder.file("text.store", Data("no database, but long enough to be one".utf8))
    let cause = try cause(.loadIssueModelContainer) {
      _ = try open(URL(filePath: text), Ticket.self, Owner.self)
    }
    #expect(cause.store == text && cause.state == "unchanged")
    #expect(
      try self.cause(.loadIssueModelContainer) { _ = try open(folder.url, Lone.self) }.what
        .contains("cannot open '\(folder.path)"))
    _ = try self.cause(.loadIssueModelContainer) {
      _ = try open(URL(filePath: text + "/below.store"), Lone.self)
    }
  }

  @Test("an app can catch SwiftDataError.loadIssueModelContainer the way people write it")
  func catching() throws {
    let url = URL(filePath: try folder.file("text.store", Data(repeating: 65, count: 4096)))
    do {
      _ = try open(url, Lone.self)
      Issue.record("opened")
    } catch SwiftDataError.backwardMigration {
      Issue.record("matched another kind")
    } catch SwiftDataError.loadIssueModelContainer {
      // As it should be.
    }
    do {
      _ = try open(url, Lone.self)
    } catch let error as SwiftDataError {
      #expect(error == .loadIssueModelContainer && error != .backwardMigration)
      switch error {
      case .loadIssueModelContainer: break
      default: Issue.record("not matched by a switch")
      }
    }
  }

  @Test(
    "unknownSchema is thrown for a store of other models, and is a loadIssueModelContainer as well")
  func unknownSchema() throws {
    let url = folder.url.appending(path: "a.store")
    try open(url, Lone.self).close()
    let found = try cause(.unknownSchema) { _ = try open(url, Ticket.self, Owner.self) }
    #expect(found.code == .unknownVersion && found.cause.contains("table ZTICKET is missing"))
    _ = try cause(.loadIssueModelContainer) { _ = try open(url, Ticket.self, Owner.self) }
  }

  @Test(
    "configuration errors are thrown for a long file name, and for models that the container does not have"
  )
  func configurations() throws {
    let long = String(repeating: "a", count: 300)
    #expect(
      try cause(.configurationFileNameTooLong) {
        _ = try open(folder.url.appending(path: long), Lone.self)
      }.cause.contains("300 bytes"))
    let configuration = ModelConfiguration(
      schema: Schema([Ticket.self, Owner.self]), isStoredInMemoryOnly: true)
    #expect(
      try cause(.configurationSchemaNotFoundInContainerSchema) {
        _ = try ModelContainer(for: Lone.self, configurations: configuration)
      }.cause.contains("Owner is in the configuration's schema"))
  }

  // MARK: Fetching

  @Test("unsupportedPredicate names the expression that is none in SQL")
  func unsupportedPredicate() throws {
    let container = try open(folder.url.appending(path: "a.store"), Ticket.self, Owner.self)
    let cause = try cause(.unsupportedPredicate) {
      let predicate = #Predicate<Ticket> { $0.number == 1 && $0.isOpen }
      _ = try ModelContext(container).fetch(FetchDescriptor(predicate: predicate))
    }
    #expect(cause.cause.contains("isOpen"), "\(cause)")
  }

  @Test(
    "unsupportedKeyPath is thrown for propertiesToFetch of what is not stored, and prefetching of an attribute"
  )
  func unsupportedKeyPath() throws {
    let container = try open(folder.url.appending(path: "a.store"), Ticket.self, Owner.self)
    let context = ModelContext(container)
    context.insert(Ticket(number: 1, owner: Owner(name: "a")))
    try context.save()
    var unstored = FetchDescriptor<Ticket>()
    unstored.propertiesToFetch = [\.isOpen]
    #expect(
      try cause(.unsupportedKeyPath) { _ = try context.fetch(unstored) }.cause.contains("isOpen"))
    var attribute = FetchDescriptor<Ticket>()
    attribute.relationshipKeyPathsForPrefetching = [\.number]
    #expect(
      try cause(.unsupportedKeyPath) { _ = try context.fetch(attribute) }.cause
        == "'number' is not a relationship")
  }

  @Test("unsupportedSortDescriptor is never needed: what SQLite cannot sort by is sorted in memory")
  func unsupportedSortDescriptor() throws {
    for (uid, name) in [(1, "b"), (2, "a")] {
      let entry = Entry(uid: uid, title: "")
      entry.folder = Folder(name: name)
      context.insert(entry)
    }
    try context.save()
    let sorted = FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.folder?.name)])
    #expect(try context.fetch(sorted).map(\.uid) == [2, 1])
  }

  @Test("includePendingChangesWithBatchSize says what to do instead")
  func pendingChangesInBatches() throws {
    context.insert(Entry(uid: 1, title: "pending"))
    let cause = try cause(.includePendingChangesWithBatchSize) {
      _ = try context.fetch(FetchDescriptor<Entry>(), batchSize: 10)
    }
    #expect(cause.next == "save first, or set includePendingChanges to false")
    var descriptor = FetchDescriptor<Entry>()
    descriptor.includePendingChanges = false
    #expect(try context.fetch(descriptor, batchSize: 10).isEmpty)
  }

  // MARK: Saving

  @Test("modelValidationFailure names a required relationship whose model is deleted")
  func validation() throws {
    let container = try open(folder.url.appending(path: "a.store"), Ticket.self, Owner.self)
    let context = ModelContext(container)
    let owner = Owner(name: "a")
    context.insert(Ticket(number: 1, owner: owner))
    try context.save()
    context.delete(owner)
    let cause = try cause(.modelValidationFailure) { try context.save() }
    #expect(cause.cause == "required relationship 'owner' has no value")
    #expect(cause.next == "set 'owner', or make it optional")
    context.rollback()
    #expect(try context.fetchCount(FetchDescriptor<Owner>()) == 1)
  }

  @Test("the kinds that Instar has no cause to throw can be matched all the same")
  func otherKinds() {
    let kinds: [SwiftDataError] = [
      .loadIssueModelContainer, .backwardMigration, .unknownSchema, .unknownDataStoreSchema,
      .unsupportedPredicate, .unsupportedSortDescriptor, .unsupportedKeyPath,
      .includePendingChangesWithBatchSize, .sortingPendingChangesWithIdentifiers,
      .modelValidationFailure, .missingModelContext,
      .configurationFileNameContainsInvalidCharacters, .configurationFileNameTooLong,
      .configurationSchemaNotFoundInContainerSchema, .duplicateConfiguration,
      .historyTokenExpired, .invalidTransactionFetchRequest,
    ]
    #expect(Set(kinds).count == kinds.count)
    for (index, kind) in kinds.enumerated() {
      #expect(kinds.indices.filter { kinds[$0] ~= kind } == [index])
      #expect(kind.cause == nil && !"\(kind)".isEmpty)
    }
  }
}
