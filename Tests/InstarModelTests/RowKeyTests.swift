import Instar
import InstarTestSupport
import Testing

@testable import InstarModel

/// Models of ordinary tables with links of every kind.
enum Depot {
  @Table("crate") @Model final class Crate {
    var id: Int
    var name: String
    var outer: Crate?
    @Relationship(inverse: \Crate.outer) var inner: [Crate] = []
    @Relationship(inverse: \Item.crate) var items: [Item] = []
    init(id: Int = 0, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("item") @Model final class Item {
    var id: Int
    var name: String
    var crate: Crate?
    @Relationship(inverse: \Mark.items) var marks: [Mark] = []
    init(id: Int = 0, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("mark") @Model final class Mark {
    var id: Int
    @Column(.junction("item_mark", own: "mark", other: "item")) var items: [Item] = []
    init(id: Int = 0) { self.id = id }
  }

  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Crate.self, Item.self, Mark.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}

@Suite("Keys of rows over the whole range of integers")
struct RowKeyTests {
  typealias Crate = Depot.Crate
  typealias Item = Depot.Item
  typealias Mark = Depot.Mark

  private static let keys: [Int] =
    [.min, .min + 1, .min / 2 - 1, .min / 2, -1, 1, .max / 2, .max - 1, .max]
    + (0..<8).map { _ in .random(in: .min ... .max) }.filter { $0 != 0 }

  /// Puts a crate, an item and a mark with each key into a store.
  private func filled() throws -> ModelContainer {
    let container = try Depot.container()
    let context = ModelContext(container)
    for key in Self.keys {
      context.insert(Crate(id: key, name: "crate \(key)"))
      context.insert(Item(id: key, name: "item \(key)"))
      context.insert(Mark(id: key))
    }
    try context.save()
    return container
  }

  /// The rows in the order of their keys.
  private func rows(
    _ context: ModelContext
  ) throws -> (crates: [Crate], items: [Item], marks: [Mark]) {
    (
      try context.fetch(FetchDescriptor<Crate>(sortBy: [SortDescriptor(\.id)])),
      try context.fetch(FetchDescriptor<Item>(sortBy: [SortDescriptor(\.id)])),
      try context.fetch(FetchDescriptor<Mark>(sortBy: [SortDescriptor(\.id)]))
    )
  }

  @Test("links of every kind to rows with any key are saved and read again")
  func links() throws {
    let container = try filled()
    do {
      let context = ModelContext(container)
      let (crates, items, marks) = try rows(context)
      let sorted = Set(Self.keys).sorted()
      #expect(crates.map(\.id) == sorted)
      for index in crates.indices {
        if index > 0 { crates[index].outer = crates[index - 1] }
        items[index].crate = crates[index]
        items[index].marks = [marks[index], marks[(index + 1) % marks.count]]
      }
      try context.save()
    }
    let context = ModelContext(container)
    let (crates, items, marks) = try rows(context)
    for index in crates.indices {
      #expect(crates[index].outer === (index > 0 ? crates[index - 1] : nil))
      #expect(crates[index].inner == (index + 1 < crates.count ? [crates[index + 1]] : []))
      #expect(crates[index].items == [items[index]])
      #expect(Set(items[index].marks) == [marks[index], marks[(index + 1) % marks.count]])
    }
  }

  @Test("a context forgets the models of rows with any key when they are released")
  func registry() throws {
    let container = try filled()
    let context = ModelContext(container)
    var identifiers: [PersistentIdentifier] = []
    for _ in 0..<20 {
      let crates = try context.fetch(FetchDescriptor<Crate>())
      identifiers = crates.map(\.persistentModelID)
      #expect(context.registered.contains { $0.count == crates.count })
    }
    #expect(context.registered.allSatisfy { $0.isEmpty })
    for identifier in identifiers {
      let crate = try #require(context.model(for: identifier) as? Crate)
      #expect(crate.name == "crate \(identifier.id.key)")
    }
    context.rollback()
    #expect(context.registered.allSatisfy { $0.isEmpty })
  }

  @Test("the identifier of a row with any key names its store, and a predicate finds the row")
  func identifiers() throws {
    let context = ModelContext(try filled())
    let crates = try context.fetch(FetchDescriptor<Crate>())
    for crate in crates {
      let identifier = crate.persistentModelID
      #expect(identifier.storeIdentifier != nil)
      #expect(identifier.description == "Crate/p\(crate.id)")
      let data = try JSONEncoder().encode(identifier)
      #expect(try JSONDecoder().decode(PersistentIdentifier.self, from: data) == identifier)
      let isThat = #Predicate<Crate> { $0.persistentModelID == identifier }
      #expect(try context.fetch(FetchDescriptor(predicate: isThat)) == [crate])
      let found: Crate? = context.registeredModel(for: identifier)
      #expect(found === crate)
    }
    let list = crates.map(\.persistentModelID)
    let areThose = #Predicate<Crate> { list.contains($0.persistentModelID) }
    #expect(try context.fetchCount(FetchDescriptor(predicate: areThose)) == crates.count)
    let new = Crate(name: "new").persistentModelID
    #expect(
      (list + [new]).sorted().map(\.id.key) == [new.id.key] + crates.map { Int64($0.id) }.sorted())
  }

  @Test("a predicate with the identifier of no row here matches no row, and its negation all rows")
  func identifiersOfNoRow() throws {
    let context = ModelContext(try filled())
    let other = ModelContext(try filled())
    let unsaved = Crate(name: "unsaved").persistentModelID
    let elsewhere = try #require(try other.fetch(FetchDescriptor<Crate>()).first).persistentModelID
    let count = try context.fetchCount(FetchDescriptor<Crate>())
    for identifier in [unsaved, elsewhere] {
      let isThat = #Predicate<Crate> { $0.persistentModelID == identifier }
      #expect(try context.fetchCount(FetchDescriptor(predicate: isThat)) == 0)
      let isNotThat = #Predicate<Crate> { $0.persistentModelID != identifier }
      #expect(try context.fetchCount(FetchDescriptor(predicate: isNotThat)) == count)
      let isOuter = #Predicate<Crate> { $0.outer?.persistentModelID == identifier }
      #expect(try context.fetchCount(FetchDescriptor(predicate: isOuter)) == 0)
    }
  }

  @Test("a failed save takes the new rows back, and a later one writes them with their links")
  func failedSave() throws {
    let container = try filled()
    let context = ModelContext(container)
    let crate = Crate(id: .min + 7, name: "new")
    let item = Item(id: .min + 7, name: "new")
    item.crate = crate
    context.insert(item)
    let identifier = item.persistentModelID
    context.beforeWrite = { throw CancellationError() }
    #expect(throws: CancellationError.self) { try context.save() }
    #expect(item.persistentModelID == identifier)
    #expect(identifier.storeIdentifier == nil)
    context.beforeWrite = nil
    try context.save()
    #expect(item.persistentModelID.id.key == .min + 7)
    let other = ModelContext(container)
    #expect(try rows(other).items.first { $0.name == "new" }?.crate?.name == "new")
  }

  // MARK: Temporary identifiers

  @Test("the identifier of a model from before its first save still finds it")
  func temporaryIdentifier() throws {
    let context = ModelContext(try Depot.container())
    let crate = Crate(name: "new")
    let identifier = crate.persistentModelID
    #expect(identifier != Crate(name: "another").persistentModelID)
    context.insert(crate)
    #expect(crate.persistentModelID == identifier)
    #expect(context.model(for: identifier) as? Crate === crate)
    try context.save()
    #expect(crate.persistentModelID != identifier)
    #expect(context.model(for: identifier) as? Crate === crate)
    let found: Crate? = context.registeredModel(for: identifier)
    #expect(found === crate)
    try context.save()
  }

  @Test("a temporary identifier that no model has is an error, and no model comes to be in memory")
  func unknownTemporaryIdentifier() throws {
    let context = ModelContext(try Depot.container())
    let identifier: PersistentIdentifier
    do {
      let crate = Crate(name: "new")
      identifier = crate.persistentModelID
      context.insert(crate)
      try context.save()
    }
    let unsaved = Crate(name: "unsaved").persistentModelID
    for identifier in [identifier, unsaved] {
      #expect(context.model(for: identifier) as? Crate == nil)
      #expect(context.registered.allSatisfy { $0.isEmpty })
      let error = #expect(throws: InstarError.self) { try context.save() }
      #expect(error?.what == "cannot fetch \(identifier)")
      let found: Crate? = context.registeredModel(for: identifier)
      #expect(found == nil)
      try context.save()
    }
    context.rollback()
  }

  @Test("a temporary identifier that another process encoded names no model of this one")
  func temporaryIdentifierOfAnotherProcess() throws {
    let context = ModelContext(try Depot.container())
    for number in 0..<10 { context.insert(Crate(name: "\(number)")) }
    try context.save()
    for key in 1...1_000 {
      let data = Data(#"{"id":{"entityName":"Crate","key":\#(key)}}"#.utf8)
      let identifier = try JSONDecoder().decode(PersistentIdentifier.self, from: data)
      let found: Crate? = context.registeredModel(for: identifier)
      #expect(found == nil)
    }
  }

  @Test("the identifier of another store's row is an error, not the row with the same key here")
  func identifierOfAnotherStore() throws {
    let context = ModelContext(try filled())
    let other = ModelContext(try filled())
    let crates = try context.fetch(FetchDescriptor<Crate>())
    let identifier = try #require(try other.fetch(FetchDescriptor<Crate>()).first).persistentModelID
    #expect(context.model(for: identifier) as? Crate == nil)
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.what == "cannot fetch \(identifier)")
    let found: Crate? = context.registeredModel(for: identifier)
    #expect(found == nil)
    #expect(throws: InstarError.self) { try context.save() }
    let own = try #require(crates.first)
    #expect(context.model(for: own.persistentModelID) as? Crate === own)
    try context.save()
  }

  // MARK: New keys

  @Test("a save that finds no key after the highest possible one says so")
  func noKeyLeft() throws {
    let container = try filled()
    let context = ModelContext(container)
    context.insert(Crate(name: "new"))
    let error = #expect(throws: SwiftDataError.self) { try context.save() }
    let cause = try #require(error?.cause)
    #expect(error == .modelValidationFailure)
    #expect(cause.what == "cannot save a new Crate")
    #expect(
      cause.cause
        == "new keys follow the highest one in crate, and that is 9223372036854775807, the highest possible key"
    )
    context.rollback()
    context.insert(Crate(id: 5, name: "with a key"))
    try context.save()
  }

  @Test("new keys follow the highest one that another model of the save sets itself")
  func keysOfOneSave() throws {
    let context = ModelContext(try Depot.container())
    let items = [0, 1, 0, 7, 3, 0].map { Item(id: $0, name: "\($0)") }
    for item in items { context.insert(item) }
    try context.save()
    #expect(items.map(\.id) == [8, 1, 9, 7, 3, 10])
    let next = Item(name: "next")
    context.insert(next)
    try context.save()
    #expect(next.id == 11)
  }

  // MARK: Enumerating

  @Test("enumerate visits the rows with any key once, in their order", arguments: [1, 2, 3, 100])
  func enumerate(batchSize: Int) throws {
    let context = ModelContext(try filled())
    var seen: [Int] = []
    try context.enumerate(FetchDescriptor<Crate>(), batchSize: batchSize) { seen.append($0.id) }
    #expect(seen == Set(Self.keys).sorted())
    try context.delete(model: Crate.self)
    try context.save()
    try context.enumerate(FetchDescriptor<Crate>()) { _ in Issue.record("there is no row") }
  }

  @Test(
    "enumerate does not visit the rows that its block inserts and saves",
    arguments: [false, true])
  func enumerateInserting(isSorted: Bool) throws {
    let context = ModelContext(try Depot.container())
    for number in 1...5 { context.insert(Item(name: "\(number)")) }
    try context.save()
    let sortBy = isSorted ? [SortDescriptor(\Item.name)] : []
    var seen: [String] = []
    try context.enumerate(FetchDescriptor(sortBy: sortBy), batchSize: 2) { item in
      seen.append(item.name)
      try #require(seen.count < 100)
      context.insert(Item(name: "copy of \(item.name)"))
      try context.save()
    }
    #expect(seen == ["1", "2", "3", "4", "5"])
    #expect(try context.fetchCount(FetchDescriptor<Item>()) == 10)
  }
}
