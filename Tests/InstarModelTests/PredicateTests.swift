import Instar
import InstarTestSupport
import Testing

@Suite("Predicates in SQL")
struct PredicateTests {
  typealias Item = Catalog.Item

  /// What Foundation's own evaluation finds. A predicate that unwraps a `nil` by `!` matches nothing.
  private func evaluated(_ predicate: Predicate<Item>, _ items: [Item]) throws -> [Int] {
    try items.filter { item in
      do {
        return try predicate.evaluate(item)
      } catch let error as PredicateError where error == .forceUnwrapFailure {
        return false
      }
    }.map(\.uid)
  }

  @Test("random predicates over random rows find in SQL what Foundation finds in memory")
  func randomPredicates() throws {
    let environment = ProcessInfo.processInfo.environment
    let seed =
      environment["INSTAR_TEST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    let count = environment["INSTAR_TEST_PREDICATES"].flatMap { Int($0) } ?? 1_000
    print("random predicates: INSTAR_TEST_SEED=\(seed)")
    var generator = RandomPredicates(random: SeededGenerator(seed: seed))
    let context = ModelContext(try Catalog.container())
    generator.fill(context, count: 40)
    try context.save()
    let items = try context.fetch(FetchDescriptor<Item>(sortBy: [SortDescriptor(\.uid)]))
    var found = 0
    for number in 0..<count {
      let predicate = generator.predicate(depth: number % 4)
      let descriptor = FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.uid)])
      let fetched = try context.fetch(descriptor).map(\.uid)
      let expected = try evaluated(predicate, items)
      found += expected.isEmpty || expected.count == items.count ? 0 : 1
      guard fetched == expected, try context.fetchCount(descriptor) == expected.count else {
        Issue.record(
          "seed \(seed), predicate \(number): SQL \(fetched), Foundation \(expected): \(predicate.expression)"
        )
        return
      }
    }
    // The generator is worth something only if many predicates tell rows apart.
    #expect(found > count / 3)
  }

  private func sample() throws -> ModelContext {
    let context = ModelContext(try Catalog.container())
    var generator = RandomPredicates(random: SeededGenerator(seed: 7))
    generator.fill(context, count: 40)
    try context.save()
    return context
  }

  private func expectSame(
    _ predicate: Predicate<Item>, in context: ModelContext,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let items = try context.fetch(FetchDescriptor<Item>(sortBy: [SortDescriptor(\.uid)]))
    let fetched = try context.fetch(
      FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.uid)]))
    #expect(fetched.map(\.uid) == (try evaluated(predicate, items)), sourceLocation: location)
  }

  @Test("predicates as people write them find in SQL what Foundation finds in memory")
  func writtenPredicates() throws {
    let context = try sample()
    let name = "cafe"
    let names: [String] = ["a", "é", "K"]
    let date = Date(timeIntervalSinceReferenceDate: 1)
    try expectSame(#Predicate { $0.title.localizedStandardContains(name) }, in: context)
    try expectSame(#Predicate { names.contains($0.title) }, in: context)
    try expectSame(#Predicate { !names.contains($0.title) && $0.date < date }, in: context)
    try expectSame(#Predicate { $0.shelf?.name == name || $0.shelf == nil }, in: context)
    try expectSame(#Predicate { $0.shelf?.room?.name.contains("n") == true }, in: context)
    try expectSame(#Predicate { $0.shelf?.items.count ?? 0 > 3 }, in: context)
    try expectSame(#Predicate { $0.labels.contains { $0.weight > 0 } }, in: context)
    try expectSame(#Predicate { $0.labels.filter { $0.weight > 0 }.count == 1 }, in: context)
    try expectSame(
      #Predicate { item in item.labels.allSatisfy { $0.weight < item.count } }, in: context)
    try expectSame(#Predicate { ($0.rank ?? -1) * 2 + $0.count > 0 }, in: context)
    try expectSame(#Predicate { $0.rank! > 0 }, in: context)
    try expectSame(
      #Predicate { if let rank = $0.rank { rank > 1 } else { $0.isDone } }, in: context)
    try expectSame(#Predicate { $0.title.starts(with: "a") && !$0.title.isEmpty }, in: context)
    try expectSame(#Predicate { (1...2).contains($0.count) }, in: context)
    try expectSame(#Predicate { $0.isHidden == true }, in: context)
    try expectSame(#Predicate { $0.isDone ? $0.count > 0 : $0.count < 0 }, in: context)
    let same = ComparisonResult.orderedSame
    try expectSame(#Predicate { $0.title.caseInsensitiveCompare("STRASSE") == same }, in: context)
    try expectSame(#Predicate { _ in true }, in: context)
    try expectSame(#Predicate { $0.author.name == name }, in: context)
    try expectSame(#Predicate { $0.editor?.name.contains("a") == true }, in: context)
    try expectSame(#Predicate { $0.unit.rawValue.starts(with: "d") }, in: context)
    let ounce = Catalog.Unit.ounce
    try expectSame(#Predicate { $0.unit == ounce || $0.author.unit == ounce }, in: context)
    let rocks = Catalog.Glass.rocks
    try expectSame(#Predicate { $0.glass != rocks }, in: context)
    try expectSame(#Predicate { $0.words.contains("a") && !$0.numbers.isEmpty }, in: context)
    try expectSame(#Predicate { $0.halves?.contains(0.5) == true }, in: context)
    try expectSame(#Predicate { $0.words.filter { $0.count > 1 }.count == 1 }, in: context)
  }

  @Test("a captured model, its identifier, and what it has are compared by key")
  func capturedModels() throws {
    let context = try sample()
    let shelf = try #require(
      try context.fetch(FetchDescriptor<Catalog.Shelf>()).first { !$0.items.isEmpty })
    let identifier = shelf.persistentModelID
    let label = try #require(try context.fetch(FetchDescriptor<Catalog.Label>()).first)
    let expected = Set(shelf.items.map(\.uid))
    func found(_ predicate: Predicate<Item>) throws -> Set<Int> {
      Set(try context.fetch(FetchDescriptor(predicate: predicate)).map(\.uid))
    }
    #expect(try found(#Predicate { $0.shelf?.persistentModelID == identifier }) == expected)
    #expect(try found(#Predicate { $0.shelf?.id == identifier }) == expected)
    #expect(
      try found(#Predicate { $0.shelf?.persistentModelID != identifier }).isDisjoint(with: expected)
    )
    let labelled = Set(label.items.map(\.uid))
    let labelIdentifier = label.persistentModelID
    #expect(
      try found(#Predicate { $0.labels.contains { $0.persistentModelID == labelIdentifier } })
        == labelled)
    let identifiers = [identifier]
    #expect(
      try context.fetch(
        FetchDescriptor<Catalog.Shelf>(
          predicate: #Predicate { identifiers.contains($0.persistentModelID) }))
        == [shelf])
  }

  @Test("what SQL cannot express is refused by name, with and without pending changes")
  func unsupported() throws {
    let context = try sample()
    func expectRefused(_ predicate: Predicate<Item>, naming part: String) {
      let error = #expect(throws: SwiftDataError.self) {
        try context.fetch(FetchDescriptor(predicate: predicate))
      }
      #expect(SwiftDataError.unsupportedPredicate ~= (error ?? SwiftDataError.unknownSchema))
      #expect(error?.cause?.cause.contains(part) == true, "\(String(describing: error))")
    }
    expectRefused(
      #Predicate { $0.isDone && $0.shout == "A" }, naming: "only stored properties of Item")
    expectRefused(#Predicate { $0.price + $0.price > $0.price }, naming: "Arithmetic")
    expectRefused(
      #Predicate { $0.labels.first?.weight == 1 },
      naming: "the members of a relationship have no order")
    // Swift itself names a property of a model by the address of its getter.
    expectRefused(#Predicate { $0.labels.first?.weight == 1 }, naming: "\\Item.labels")
    expectRefused(#Predicate { $0.isDeleted }, naming: "\\Item.isDeleted")
    var prefetching = FetchDescriptor<Item>()
    prefetching.relationshipKeyPathsForPrefetching = [\.author.name]
    let error = #expect(throws: SwiftDataError.self) { try context.fetch(prefetching) }
    #expect(error?.cause?.cause == "`\\Item.author.name` is not a stored property of Item")
    context.insert(Item(uid: 99, title: "", key: UUID()))
    expectRefused(#Predicate { $0.shout == "A" }, naming: "only stored properties of Item")
  }

  @Test("a list of constants finds every value that a property can have")
  func lists() throws {
    let context = ModelContext(try Catalog.container())
    let texts = [
      "", "\"", "\\", "/", "a\nb", "\u{1}", "é", "e\u{301}", "📏", "K", "\u{212A}", "a\0b",
    ]
    let items = texts.enumerated().map { Item(uid: $0, title: $1, key: UUID()) }
    for item in items {
      item.subtitle = item.uid.isMultiple(of: 2) ? nil : item.title
      item.large = .max - UInt64(item.uid)
      item.payload = item.uid == 3 ? Data(count: 16) : Data([UInt8(item.uid)])
      item.link = URL(string: "https://example.org/\(item.uid)?a=%22")
      item.level = item.uid == 5 ? .high : nil
      context.insert(item)
    }
    try context.save()
    for length in [1, 3, texts.count] {
      let part = items.prefix(length)
      let (titles, subtitles) = (part.map(\.title), part.map(\.subtitle))
      try expectSame(#Predicate { titles.contains($0.title) }, in: context)
      try expectSame(#Predicate { !titles.contains($0.title) }, in: context)
      try expectSame(#Predicate { subtitles.contains($0.subtitle) }, in: context)
      let (keys, larges, links) = (part.map(\.key), part.map(\.large), part.map(\.link))
      try expectSame(#Predicate { keys.contains($0.key) }, in: context)
      try expectSame(#Predicate { larges.contains($0.large) }, in: context)
      try expectSame(#Predicate { links.contains($0.link) }, in: context)
      let (payloads, uids) = (part.map(\.payload), part.map(\.uid))
      try expectSame(#Predicate { payloads.contains($0.payload) }, in: context)
      try expectSame(#Predicate { uids.contains($0.uid) || $0.uid == 11 }, in: context)
    }
    let plain = Array(texts.dropLast())
    try expectSame(#Predicate { plain.contains($0.title) }, in: context)
    let levels: [Catalog.Level?] = [.high, .low]
    try expectSame(#Predicate { levels.contains($0.level) }, in: context)
    let data = [Data(count: 16)] as [Data?]
    try expectSame(#Predicate { data.contains($0.payload) }, in: context)
    let none: [Int] = []
    try expectSame(#Predicate { none.contains($0.uid) }, in: context)
  }

  @Test("a list of constants is one parameter, of which SQLite allows a limited number")
  func longList() throws {
    let context = ModelContext(try Catalog.container())
    for uid in 1...3 { context.insert(Item(uid: uid, title: "", key: UUID())) }
    try context.save()
    let uids = Array(2...300_000)
    let descriptor = FetchDescriptor<Item>(predicate: #Predicate { uids.contains($0.uid) })
    #expect(try context.fetchCount(descriptor) == 2)
  }

  @Test("unsaved changes count: new, changed and deleted models are judged as they are in memory")
  func pendingChanges() throws {
    let context = try sample()
    let items = try context.fetch(FetchDescriptor<Item>(sortBy: [SortDescriptor(\.uid)]))
    func expectAllSame() throws {
      try expectSame(#Predicate { $0.count > 0 }, in: context)
      try expectSame(#Predicate { $0.shelf?.name == "renamed" }, in: context)
      try expectSame(#Predicate { $0.labels.isEmpty }, in: context)
      try expectSame(#Predicate { $0.rank! > 0 }, in: context)
    }
    items[0].count = 100
    items[1].count = -100
    context.delete(items[2])
    context.insert(Item(uid: 99, title: "new", key: UUID()))
    try expectAllSame()
    try context.save()
    try expectAllSame()
    // A change of another entity only.
    items[3].shelf?.name = "renamed"
    try context.fetch(FetchDescriptor<Catalog.Shelf>()).forEach { $0.name = "renamed" }
    try expectAllSame()
    #expect(
      try context.fetchCount(
        FetchDescriptor<Item>(predicate: #Predicate { $0.shelf?.name == "renamed" }))
        > 0)
  }

  @Test("text is sorted in SQL as Swift sorts it, values without a sign by their value")
  func sorting() throws {
    let context = try sample()
    let items = try context.fetch(FetchDescriptor<Item>())
    for order in [SortOrder.forward, .reverse] {
      let descriptors: [[SortDescriptor<Item>]] = [
        [SortDescriptor(\.title, order: order), SortDescriptor(\.uid)],
        [SortDescriptor(\.title, comparator: .lexical, order: order), SortDescriptor(\.uid)],
        [SortDescriptor(\.large, order: order), SortDescriptor(\.uid)],
        [
          SortDescriptor(\.subtitle, order: order), SortDescriptor(\.score, order: order),
          SortDescriptor(\.uid),
        ],
      ]
      for sortBy in descriptors {
        let fetched = try context.fetch(FetchDescriptor<Item>(sortBy: sortBy))
        #expect(fetched.map(\.uid) == items.sorted(using: sortBy).map(\.uid))
      }
    }
  }
}
