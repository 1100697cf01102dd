import GRDB
import Instar
import InstarModel
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

/// Cards whose properties become unique in a later version, as Core Data stores them.
private enum Cards: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Card.self, Business.self, Owner.self] }

  @Model class Card {
    var email: String?
    var phone: Int?
    var rank: Int
    var owner: Owner?
    var initials: String { email?.prefix(1).uppercased() ?? "" }
    init(_ email: String?, phone: Int? = nil, rank: Int = 0, owner: Owner? = nil) {
      (self.email, self.phone, self.rank) = (email, phone, rank)
      self.owner = owner
    }
  }

  @Model final class Business: Card {
    var company: String = ""
    override init(_ email: String?, phone: Int? = nil, rank: Int = 0, owner: Owner? = nil) {
      super.init(email, phone: phone, rank: rank, owner: owner)
    }
  }

  @Model final class Owner {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Card.owner) var cards: [Card] = []
    init(name: String) { self.name = name }
  }
}

/// The same in ordinary tables, whose columns have collations.
private enum Entries: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Entry.self, Slot.self] }

  @Table("entry")
  @Model final class Entry {
    var id: Int
    @Column(.collation("NOCASE")) var name: String
    @Column(.collation("RTRIM")) var code: String
    var exact: String
    @Column(.encoding(.unixSeconds)) var made: Date?
    init(id: Int, name: String, code: String = "", exact: String = "") {
      (self.id, self.name, self.code, self.exact) = (id, name, code, exact)
    }
  }

  @Table("slot", .withoutRowID)
  @Model final class Slot {
    @Column(.primaryKey) var place: String
    var content: String
    init(place: String, content: String) { (self.place, self.content) = (place, content) }
  }
}

@Suite("Models with equal values")
struct DuplicateTests {
  private typealias Card = Cards.Card
  private typealias Business = Cards.Business
  private typealias Owner = Cards.Owner
  private typealias Entry = Entries.Entry

  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
  }

  private func make(
    _ models: [any PersistentModel], of version: any VersionedSchema.Type = Cards.self
  ) throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: version),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    // Each in a save of its own: keys follow the order.
    for model in models {
      context.insert(model)
      try context.save()
    }
    try container.close()
  }

  /// Calls `body` with the context of a stage's closure, as the closure gets it.
  private func inStage(
    _ version: any VersionedSchema.Type = Cards.self, meter: WorkMeter? = nil,
    _ body: (ModelContext) throws -> Void
  ) throws {
    let connection = try StoreConnection(path: path, durability: .clone)
    let context = try ModelContext.forStage(
      [(schema: Schema(versionedSchema: version), connection: connection, store: nil)],
      other: [], closure: .willMigrate, keptValues: ScratchpadStore(), meter: meter)
    try body(context)
    try connection.close()
  }

  private func read(_ sql: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { try String.fetchAll($0, sql: sql) }
  }

  private func execute(_ sql: String) throws {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    try queue.write { try $0.execute(sql: sql) }
  }

  /// The ranks of all pairs, as "kept-duplicate".
  private func pairs(
    _ context: ModelContext, of property: PartialKeyPath<Card> = \.email,
    sortBy: [SortDescriptor<Card>] = [], batchSize: Int = 5_000
  ) throws -> [String] {
    var pairs: [String] = []
    try context.enumerateDuplicates(of: property, sortBy: sortBy, batchSize: batchSize) {
      kept, duplicate in
      pairs.append("\(kept.rank)-\(duplicate.rank)")
    }
    return pairs
  }

  private func cards(_ emails: String?...) -> [Card] {
    emails.enumerated().map { rank, email in Card(email, phone: rank % 2, rank: rank) }
  }

  @Test(
    "duplicates are passed with the one of the lowest key, group by group",
    arguments: [1, 2, 3, 5_000])
  func groups(batchSize: Int) throws {
    try make(cards("a", "b", "c", "b", "a", "d", "b", "a"))
    try inStage { context in
      let found = try pairs(context, batchSize: batchSize)
      #expect(found == ["0-4", "0-7", "1-3", "1-6"])
    }
  }

  @Test("duplicates are passed in a context of an app, too")
  func app() throws {
    try make(cards("a", "b", "a"))
    let container = try ModelContainer(
      for: Schema(versionedSchema: Cards.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    try context.enumerateDuplicates(of: \Card.email) { _, duplicate in context.delete(duplicate) }
    #expect(try read("SELECT ZEMAIL FROM ZCARD ORDER BY 1") == ["a", "a", "b"])
    try context.save()
    #expect(try read("SELECT ZEMAIL FROM ZCARD ORDER BY 1") == ["a", "b"])
    try container.close()
  }

  @Test(
    "duplicates are passed with the first one in an order, also in one that SQLite does not have")
  func order() throws {
    try make([
      Card("a", rank: 1), Card("b", rank: 9), Card("a", rank: 3), Card("a", rank: 2),
      Card("b", rank: 9),
    ])
    try inStage { context in
      let highest = [SortDescriptor(\Card.rank, order: .reverse)]
      for size in [1, 2, 100] {
        #expect(try pairs(context, sortBy: highest, batchSize: size) == ["3-2", "3-1", "9-9"])
      }
      var keys: [Bool] = []
      try context.enumerateDuplicates(of: \Card.email, sortBy: highest) { kept, duplicate in
        keys.append(kept.persistentModelID < duplicate.persistentModelID)
      }
      #expect(keys == [true, false, true], "of equals in the order, the lowest key is kept")
    }
    try execute("UPDATE ZCARD SET ZEMAIL = 'x' || ZRANK, ZPHONE = 1")
    try inStage { context in
      let localized = [
        SortDescriptor(\Card.email, comparator: .localizedStandard, order: .reverse)
      ]
      let found = try pairs(context, of: \.phone, sortBy: localized, batchSize: 2)
      #expect(found == ["9-9", "9-3", "9-2", "9-1"])
    }
  }

  @Test("duplicates are equal in each of several properties, and nil is equal to nothing")
  func severalProperties() throws {
    try make(cards("a", "b", "a", nil, nil, nil, "b"))
    try inStage { context in
      #expect(try pairs(context) == ["0-2", "1-6"])
      var found: [Int] = []
      try context.enumerateDuplicates(of: \Card.email, \.phone) { found += [$0.rank, $1.rank] }
      #expect(found == [0, 2])
    }
  }

  @Test("duplicates are equal as the collation of their column compares texts")
  func collations() throws {
    try make(
      [
        Entry(id: 1, name: "Ann", code: "x", exact: "Ann"),
        Entry(id: 2, name: "aNN", code: "X", exact: "aNN"),
        Entry(id: 3, name: "ann ", code: "x  ", exact: "ann "),
        Entry(id: 4, name: "é", code: "y", exact: "ann"),
        Entry(id: 5, name: "É", code: "z", exact: "Ann"),
      ], of: Entries.self)
    try inStage(Entries.self) { context in
      func found(_ property: PartialKeyPath<Entry>) throws -> [Int] {
        var found: [Int] = []
        try context.enumerateDuplicates(of: property) { found += [$0.id, $1.id] }
        return found
      }
      let (names, codes) = (try found(\.name), try found(\.code))
      #expect(names == [1, 2])
      #expect(codes == [1, 3])
      // All of these but the last have equal hashes.
      let exact = try found(\.exact)
      #expect(exact == [1, 5])
      let empty = try found(\.made)
      #expect(empty.isEmpty)
    }
  }

  @Test("duplicates are found in a table without rowid")
  func withoutRowID() throws {
    try make(
      [("c", "1"), ("a", "2"), ("b", "1"), ("d", "2")].map {
        Entries.Slot(place: $0.0, content: $0.1)
      }, of: Entries.self)
    try inStage(Entries.self) { context in
      try context.enumerateDuplicates(
        of: \Entries.Slot.content, sortBy: [SortDescriptor(\.place)], batchSize: 1
      ) { kept, duplicate in
        #expect(kept.place < duplicate.place)
        context.delete(duplicate)
      }
      try context.save()
    }
    #expect(try read("SELECT place FROM slot") == ["a", "b"])
  }

  @Test("duplicates are found among the subclasses of a model")
  func inheritance() throws {
    try make([
      Card("a", rank: 0), Business("a", rank: 1), Business("b", rank: 2), Card("b", rank: 3),
      Business("a", rank: 4),
    ])
    try inStage { context in
      #expect(try pairs(context, batchSize: 1) == ["0-1", "0-4", "2-3"])
      var found: [Int] = []
      try context.enumerateDuplicates(of: \Business.email) { kept, duplicate in
        found += [kept.rank, duplicate.rank]
      }
      #expect(found == [1, 4])
    }
  }

  @Test("duplicates give their related models to the one that is kept, and are deleted by a save")
  func merge() throws {
    let owners = ["ann", "bea", "ann", "ann"].map { Owner(name: $0) }
    try make(owners + owners.enumerated().map { Card("\($0)", rank: $0, owner: $1) })
    try inStage { context in
      try context.enumerateDuplicates(of: \Owner.name, batchSize: 2) { kept, duplicate in
        for card in duplicate.cards { card.owner = kept }
        context.delete(duplicate)
      }
      try context.save()
      try context.enumerateDuplicates(of: \Card.owner) { kept, _ in kept.rank += 10 }
      try context.finishStage()
    }
    #expect(try read("SELECT ZNAME FROM ZOWNER ORDER BY Z_PK") == ["ann", "bea"])
    #expect(
      try read(
        "SELECT ZEMAIL || ZNAME FROM ZCARD JOIN ZOWNER ON ZOWNER = ZOWNER.Z_PK ORDER BY ZEMAIL")
        == ["0ann", "1bea", "2ann", "3ann"])
  }

  @Test("duplicates may be saved while they are enumerated, and only some are in memory")
  func saved() throws {
    try make((0..<40).map { Card("\($0 % 10)", rank: $0) })
    try inStage { context in
      let identifiers = try context.fetchIdentifiers(FetchDescriptor<Card>())
      var count = 0
      try context.enumerateDuplicates(of: \Card.email, batchSize: 4) { kept, duplicate in
        kept.phone = (kept.phone ?? 0) + 1
        count += 1
        if duplicate.rank % 3 == 0 {
          duplicate.email = "x\(duplicate.rank)"
        } else {
          context.delete(duplicate)
        }
        if count % 5 == 0 { try context.save() }
        let living = identifiers.filter { (context.registeredModel(for: $0) as Card?) != nil }
        #expect(living.count <= 4 + 5 + context.deletedModelsArray.count)
      }
      #expect(count == 30)
      try context.save()
      #expect(try pairs(context).isEmpty)
    }
    let kept = try read("SELECT count(*) || ' ' || sum(ZPHONE) FROM ZCARD WHERE ZRANK < 10")
    #expect(kept == ["10 30"])
  }

  @Test("duplicates take the place of the one that is kept, if that one is deleted")
  func deletedKept() throws {
    try make(cards("a", "a", "a", "b", "b"))
    try inStage { context in
      var found: [String] = []
      try context.enumerateDuplicates(of: \Card.email, batchSize: 2) { kept, duplicate in
        found.append("\(kept.rank)-\(duplicate.rank)")
        context.delete(kept)
      }
      #expect(found == ["0-1", "3-4"])
      // Models that wait for their deletion are in no group.
      #expect(try pairs(context) == ["1-2"])
    }
  }

  @Test("unsaved values are not searched for duplicates")
  func pending() throws {
    try make(cards("a", "b", "a") + [Owner(name: "ann")])
    func refusal(_ change: (ModelContext, [Card]) throws -> Void) throws -> SwiftDataError? {
      var found: SwiftDataError?
      try inStage { context in
        let cards = try context.fetch(FetchDescriptor<Card>(sortBy: [SortDescriptor(\.rank)]))
        try change(context, cards)
        do {
          #expect(try pairs(context) == ["0-2"])
        } catch let error as SwiftDataError {
          found = error
        }
      }
      return found
    }
    let inserted = try refusal { context, _ in context.insert(Business("c")) }
    #expect(SwiftDataError.includePendingChangesWithBatchSize ~= (inserted ?? .unknownSchema))
    #expect(inserted?.cause?.next == "call save() first")
    // In an app, and in a stage with other pending changes, a changed value is not written either.
    let container = try ModelContainer(
      for: Schema(versionedSchema: Cards.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let card = try #require(try context.fetch(FetchDescriptor<Card>()).first)
    card.phone = 7
    #expect(try pairs(context) == ["0-2"])
    card.email = "b"
    let changed = #expect(throws: SwiftDataError.self) { try pairs(context) }
    #expect(SwiftDataError.includePendingChangesWithBatchSize ~= (changed ?? .unknownSchema))
    try container.close()
    // Changes of a stage are written, and changes of other models do not matter.
    #expect(try refusal { context, _ in context.insert(Owner(name: "bea")) } == nil)
    #expect(try refusal { _, cards in cards[1].rank = 8 } == nil)
    try inStage { context in
      let cards = try context.fetch(FetchDescriptor<Card>(sortBy: [SortDescriptor(\.rank)]))
      cards[0].email = "b"
      #expect(try pairs(context) == ["0-1"])
      context.rollback()
      #expect(try pairs(context) == ["0-2"])
    }
  }

  @Test(
    "a search for duplicates of a property without a column of its own is refused",
    arguments: [true, false])
  func unsupported(isComputed: Bool) throws {
    try make(cards("a"))
    try inStage { context in
      let error = #expect(throws: SwiftDataError.self) {
        if isComputed {
          _ = try pairs(context, of: \.initials)
        } else {
          try context.enumerateDuplicates(of: \Owner.cards) { _, _ in }
        }
      }
      #expect(SwiftDataError.unsupportedKeyPath ~= (error ?? .unknownSchema))
      #expect(throws: InstarError.self) { try context.finishStage() }
    }
  }

  @Test(
    "an enumeration of duplicates ends with an error of the closure, which does not fail the stage")
  func errors() throws {
    try make(cards("a", "a", "b", "b"))
    try inStage { context in
      #expect(throws: CancellationError.self) {
        try context.enumerateDuplicates(of: \Card.email) { _, duplicate in
          duplicate.rank = 7
          throw CancellationError()
        }
      }
      try context.finishStage()
    }
    #expect(try read("SELECT group_concat(ZRANK) FROM ZCARD") == ["0,7,2,3"])
  }

  @Test("duplicates are reported while they are enumerated, which ends where the run is canceled")
  func progress() throws {
    try make((0..<50).map { Card("\($0 % 20)", rank: $0) })
    // More rows than are read between two reports.
    try execute(
      """
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 40000)
      INSERT INTO ZCARD (Z_ENT, Z_OPT, ZEMAIL, ZRANK) SELECT Z_ENT, 1, 'n' || x, 0 FROM ZCARD, n WHERE ZRANK = 0
      """)
    var time = ContinuousClock.now
    var reports: [WorkProgress] = []
    var isCanceled = false
    let meter = WorkMeter(
      now: {
        time += .seconds(1)
        return time
      }, isCanceled: { isCanceled }, report: { reports.append($0) })
    try inStage(meter: meter) { context in
      let found = try pairs(context, batchSize: 10)
      #expect(found.count == 30)
      let scan = reports.filter { $0.what == "rows of Card" }
      #expect(scan.map(\.done) == [16_384, 32_768, 32_768])
      #expect(scan.allSatisfy { $0.total == 40_050 })
      let repeated = reports.filter { $0.what == "rows of Card with repeated values" }
      #expect(repeated.last?.done == 50 && repeated.allSatisfy { $0.total == 50 })
      var seen = 0
      #expect(throws: CancellationError.self) {
        try context.enumerateDuplicates(of: \Card.email, batchSize: 6) { _, _ in
          seen += 1
          isCanceled = true
        }
      }
      #expect(seen == 4, "two groups of three")
      #expect(throws: CancellationError.self) { try pairs(context) }
    }
  }

  @Test("duplicates are those that SQLite groups, in rows of random values")
  func randomValues() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    let parts = ["a", "A", "b", " ", "é"]
    try make(
      (1...300).map { id in
        func text() -> String {
          (0..<Int.random(in: 0...3, using: &random)).map { _ in
            parts.randomElement(using: &random) ?? ""
          }.joined()
        }
        return Entry(id: id, name: text(), code: text(), exact: text())
      }, of: Entries.self)
    let properties: [(PartialKeyPath<Entry>, String)] = [
      (\.name, "name"), (\.code, "code"), (\.exact, "exact"),
    ]
    for (property, column) in properties {
      let size = Int.random(in: 1...40, using: &random)
      let expected = try read(
        """
        SELECT first || ' ' || id
        FROM (SELECT id, min(id) OVER (PARTITION BY \(column)) AS first FROM entry)
        WHERE first <> id ORDER BY first, id
        """)
      try inStage(Entries.self) { context in
        var found: [[Int]] = []
        try context.enumerateDuplicates(of: property, batchSize: size) {
          found.append([$0.id, $1.id])
        }
        // Hashes are equal for more values than are equal, so groups may come in another order.
        found.sort { $0.lexicographicallyPrecedes($1) }
        #expect(found.map { "\($0[0]) \($0[1])" } == expected, "seed \(seed), batches of \(size)")
        #expect(!found.isEmpty)
      }
    }
  }
}
