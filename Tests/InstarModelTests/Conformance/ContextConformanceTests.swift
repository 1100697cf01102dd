import Instar
import Testing

@Suite("API page: the context")
struct ContextConformanceTests {
  typealias Entry = Journal.Entry
  typealias Folder = Journal.Folder
  typealias Topic = Journal.Topic

  private let container: ModelContainer
  private let context: ModelContext

  init() throws {
    container = try Journal.container()
    context = ModelContext(container)
    let folders = ["in", "out"].map { Folder(name: $0) }
    let topics = ["x", "y"].map { Topic(name: $0) }
    for number in 0..<10 {
      let entry = Entry(uid: number, title: "entry \(number)")
      entry.score = Double(number) / 2
      entry.subtitle = number % 3 == 0 ? nil : "sub \(number)"
      entry.tags = number % 2 == 0 ? ["even"] : []
      entry.folder = number < 8 ? folders[number % 2] : nil
      entry.topics = number % 4 == 0 ? topics : []
      context.insert(entry)
    }
    try context.save()
  }

  private func uids(_ predicate: Predicate<Entry>) throws -> [Int] {
    try ModelContext(container).fetch(
      FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.uid)])
    ).map(\.uid)
  }

  @Test("fetch(_:) takes a predicate, an order, a fetchLimit and a fetchOffset")
  func fetch() throws {
    var descriptor = FetchDescriptor<Entry>(
      predicate: #Predicate { $0.uid > 2 }, sortBy: [SortDescriptor(\.uid, order: .reverse)])
    #expect(try context.fetch(descriptor).map(\.uid) == [9, 8, 7, 6, 5, 4, 3])
    descriptor.fetchLimit = 2
    descriptor.fetchOffset = 1
    #expect(try context.fetch(descriptor).map(\.uid) == [8, 7])
  }

  @Test("fetch(_:batchSize:), fetchCount and fetchIdentifiers find all models")
  func otherFetches() throws {
    let descriptor = FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.uid)])
    let batched = try context.fetch(descriptor, batchSize: 3)
    #expect(batched.count == 10 && batched.map(\.uid) == Array(0..<10))
    #expect(try context.fetchCount(descriptor) == 10)
    let identifiers = try context.fetchIdentifiers(descriptor)
    #expect(identifiers.count == 10 && identifiers.first?.entityName == "Entry")
    #expect(try context.fetchIdentifiers(descriptor, batchSize: 4).count == 10)
  }

  @Test(
    "enumerate(_:batchSize:allowEscapingMutations:block:) passes all models, and their changes are saved"
  )
  func enumerate() throws {
    var seen: [Int] = []
    try context.enumerate(FetchDescriptor<Entry>(), batchSize: 3) { seen.append($0.uid) }
    #expect(seen.sorted() == Array(0..<10))
    try context.enumerate(
      FetchDescriptor<Entry>(), batchSize: 5000, allowEscapingMutations: true
    ) { $0.score += 1 }
    try context.save()
    #expect(try uids(#Predicate { $0.score < 1 }).isEmpty)
  }

  @Test("model(for:) and registeredModel(for:) find a model by its identifier")
  func models() throws {
    let entry = try #require(try context.fetch(FetchDescriptor<Entry>()).first)
    let identifier = entry.persistentModelID
    #expect(context.model(for: identifier) as? Entry === entry)
    let registered: Entry? = context.registeredModel(for: identifier)
    #expect(registered === entry)
    let other = ModelContext(container)
    let unknown: Entry? = other.registeredModel(for: identifier)
    #expect(unknown == nil)
    #expect((other.model(for: identifier) as? Entry)?.uid == entry.uid)
  }

  @Test("insert, delete and save change the store, hasChanges and the arrays of what is pending")
  func pending() throws {
    #expect(!context.hasChanges && context.container === container)
    let entries = try context.fetch(FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.uid)]))
    let new = Entry(uid: 99, title: "new")
    context.insert(new)
    entries[0].title = "changed"
    context.delete(entries[1])
    #expect(context.hasChanges)
    #expect(context.insertedModelsArray.first === new && context.insertedModelsArray.count == 1)
    #expect(context.changedModelsArray.contains { $0 === entries[0] })
    #expect(context.deletedModelsArray.first === entries[1])
    try context.save()
    #expect(!context.hasChanges)
    #expect(try uids(#Predicate { $0.uid == 1 }).isEmpty)
    #expect(try uids(#Predicate { $0.title == "changed" || $0.title == "new" }) == [0, 99])
  }

  @Test("delete(model:where:includeSubclasses:) deletes the models that match")
  func deleteWhere() throws {
    try context.delete(model: Entry.self, where: #Predicate { $0.uid < 8 })
    try context.save()
    #expect(try uids(#Predicate { _ in true }) == [8, 9])
    try context.delete(model: Entry.self, includeSubclasses: false)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Entry>()) == 0)
  }

  @Test("transaction(block:) saves, or undoes what its block did before it threw")
  func transaction() throws {
    struct Failure: Error {}
    try context.transaction { context.insert(Entry(uid: 50, title: "kept")) }
    #expect(throws: Failure.self) {
      try context.transaction {
        context.insert(Entry(uid: 51, title: "lost"))
        throw Failure()
      }
    }
    #expect(try uids(#Predicate { $0.uid >= 50 }) == [50] && !context.hasChanges)
  }

  @Test("rollback() undoes all changes, and autosaveEnabled can be set")
  func rollback() throws {
    let entry = try #require(try context.fetch(FetchDescriptor<Entry>()).first)
    let title = entry.title
    entry.title = "changed"
    context.insert(Entry(uid: 70, title: "new"))
    context.rollback()
    #expect(entry.title == title && !context.hasChanges)
    context.autosaveEnabled = true
    #expect(context.autosaveEnabled)
  }

  @Test("a row that two fetches return is one object within a context")
  func uniquing() throws {
    let first = try context.fetch(FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.uid)]))
    let second = try context.fetch(FetchDescriptor<Entry>(predicate: #Predicate { $0.uid == 4 }))
    #expect(second.first === first[4])
    #expect(first[4].folder?.entries.first { $0.uid == 4 } === first[4])
  }

  @Test("inserting a unique value that exists is an upsert")
  func upsert() throws {
    context.insert(Entry(uid: 3, title: "again"))
    try context.save()
    #expect(try uids(#Predicate { _ in true }).count == 10)
    #expect(try uids(#Predicate { $0.title == "again" }) == [3])
  }

  @Test("fetches see pending changes, unless includePendingChanges is false")
  func pendingChanges() throws {
    context.insert(Entry(uid: 60, title: "pending"))
    var descriptor = FetchDescriptor<Entry>(predicate: #Predicate { $0.uid == 60 })
    #expect(try context.fetch(descriptor).count == 1)
    descriptor.includePendingChanges = false
    #expect(try context.fetch(descriptor).isEmpty)
  }

  @Test("propertiesToFetch leaves the others to be fetched when they are touched")
  func propertiesToFetch() throws {
    let other = ModelContext(container)
    var descriptor = FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.uid)])
    descriptor.propertiesToFetch = [\.title]
    let entries = try other.fetch(descriptor)
    #expect(entries[4].title == "entry 4" && entries[4].score == 2 && entries[4].tags == ["even"])
  }

  @Test("a fetch with relationshipKeyPathsForPrefetching has the related models")
  func prefetching() throws {
    let other = ModelContext(container)
    var descriptor = FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.uid)])
    descriptor.relationshipKeyPathsForPrefetching = [\.folder, \.topics]
    let entries = try other.fetch(descriptor)
    #expect(entries[0].folder?.name == "in" && entries[9].folder == nil)
    #expect(Set(entries[4].topics.map(\.name)) == ["x", "y"] && entries[1].topics.isEmpty)
  }

  // MARK: Each kind of expression that the page lists

  @Test("predicates can have comparisons, logic, optionals and nil, ??, and arithmetic")
  func plainPredicates() throws {
    #expect(try uids(#Predicate { $0.uid >= 3 && $0.uid < 5 || $0.uid == 9 }) == [3, 4, 9])
    #expect(try uids(#Predicate { !($0.uid != 2) }) == [2])
    #expect(try uids(#Predicate { $0.subtitle == nil }) == [0, 3, 6, 9])
    #expect(try uids(#Predicate { $0.subtitle != nil && $0.uid > 6 }) == [7, 8])
    #expect(try uids(#Predicate { ($0.subtitle ?? "none") == "none" && $0.uid > 0 }) == [3, 6, 9])
    #expect(try uids(#Predicate { $0.uid * 2 + 1 == 7 }) == [3])
    #expect(try uids(#Predicate { $0.score / 2 > 2 }) == [9])
  }

  @Test(
    "predicates can call contains, starts(with:), localizedStandardContains and caseInsensitiveCompare"
  )
  func textPredicates() throws {
    #expect(try uids(#Predicate { $0.title.contains("y 7") }) == [7])
    #expect(try uids(#Predicate { $0.title.starts(with: "entry 1") }) == [1])
    #expect(try uids(#Predicate { $0.title.localizedStandardContains("ÉNTRY 3") }) == [3])
    let same = ComparisonResult.orderedSame
    #expect(try uids(#Predicate { $0.title.caseInsensitiveCompare("ENTRY 5") == same }) == [5])
    #expect(try uids(#Predicate { $0.subtitle?.contains("8") == true }) == [8])
  }

  @Test("predicates can call contains on arrays of values, given and stored")
  func arrayPredicates() throws {
    let wanted = [1, 4, 77]
    #expect(try uids(#Predicate { wanted.contains($0.uid) }) == [1, 4])
    #expect(try uids(#Predicate { $0.tags.contains("even") && $0.uid < 5 }) == [0, 2, 4])
    #expect(try uids(#Predicate { $0.tags.isEmpty && $0.uid < 4 }) == [1, 3])
  }

  @Test("predicates can follow relationship paths")
  func pathPredicates() throws {
    #expect(try uids(#Predicate { $0.folder?.name == "in" }) == [0, 2, 4, 6])
    #expect(try uids(#Predicate { $0.folder == nil }) == [8, 9])
  }

  @Test(
    "predicates can call filter, contains(where:), allSatisfy, isEmpty and count on to-many relationships"
  )
  func memberPredicates() throws {
    #expect(try uids(#Predicate { $0.topics.contains { $0.name == "x" } }) == [0, 4, 8])
    #expect(try uids(#Predicate { $0.topics.filter { $0.name == "y" }.count == 1 }) == [0, 4, 8])
    #expect(try uids(#Predicate { !$0.topics.isEmpty && $0.topics.count == 2 }) == [0, 4, 8])
    #expect(
      try uids(#Predicate { $0.topics.allSatisfy { $0.name == "x" } && $0.uid > 6 }) == [7, 9])
  }

  @Test("what cannot be lowered throws unsupportedPredicate, naming the expression")
  func unsupported() throws {
    do {
      _ = try uids(#Predicate { $0.uid == 1 && $0.hasChanges })
      Issue.record("not refused")
    } catch SwiftDataError.unsupportedPredicate {
      // Named below.
    }
    let error = #expect(throws: SwiftDataError.self) { try uids(#Predicate { $0.hasChanges }) }
    #expect(error.map { "\($0)" }?.contains("Entry.") == true, "\(String(describing: error))")
  }

  @Test(
    "sort descriptors sort by values, by text with its comparators, by several keys, and in reverse"
  )
  func sorting() throws {
    func sorted(_ descriptors: SortDescriptor<Entry>...) throws -> [Int] {
      try ModelContext(container).fetch(FetchDescriptor<Entry>(sortBy: descriptors)).map(\.uid)
    }
    #expect(try sorted(SortDescriptor(\.score, order: .reverse)).first == 9)
    #expect(try sorted(SortDescriptor(\.title, comparator: .lexical)).first == 0)
    #expect(
      try sorted(SortDescriptor(\.subtitle), SortDescriptor(\.uid, order: .reverse)).prefix(4)
        == [9, 6, 3, 0])
  }
}
