import Foundation
import GRDB
import Instar
import InstarStore
import InstarTestSupport
import Testing

@Suite("Collections as keyed archives")
struct ArchivedCollectionTests {
  @Model
  final class Page {
    @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var pictures: [Data] = []
    @Attribute(
      .transformable(
        by: NSValueTransformerName.secureUnarchiveFromDataTransformerName.rawValue))
    var words: [String: Int]?

    init() {}
  }

  @Test("Foundation's own transformer keeps collections, and nobody has to register it")
  func transformer() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let configuration = ModelConfiguration(url: URL(filePath: path))
    do {
      let container = try ModelContainer(for: Page.self, configurations: configuration)
      let context = ModelContext(container)
      let page = Page()
      page.pictures = [Data([1, 2]), Data()]
      context.insert(page)
      try context.save()
      page.words = ["a": 1]
      try context.save()
      try container.close()
    }
    let queue = try DatabaseQueue(path: path)
    let stored = try queue.read { try Data.fetchOne($0, sql: "SELECT ZPICTURES FROM ZPAGE") }
    try queue.close()
    let list = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSArray.self, NSData.self], from: try #require(stored))
    #expect(list as? [Data] == [Data([1, 2]), Data()])
    let container = try ModelContainer(for: Page.self, configurations: configuration)
    let page = try #require(try ModelContext(container).fetch(FetchDescriptor<Page>()).first)
    #expect(page.pictures == [Data([1, 2]), Data()])
    #expect(page.words == ["a": 1])
  }

  private func json(_ value: Any) throws -> String? {
    let archive = try #require(try ArchivedCollection.archive(of: value))
    return ArchivedCollection.json(of: archive).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("collections come back as the JSON of the same values, whatever plain values they hold")
  func values() throws {
    let uuid = UUID()
    #expect(try json(["a", "é"]) == #"["a","é"]"#)
    #expect(try json([Int64.min, 0, 7]) == "[-9223372036854775808,0,7]")
    #expect(try json([true, false]) == "[true,false]")
    #expect(try json([Data([1, 255])]) == #"["Af8="]"#)
    #expect(try json([uuid]) == "[\"\(uuid.uuidString)\"]")
    #expect(try json([Date(timeIntervalSinceReferenceDate: 12.5)]) == "[12.5]")
    #expect(try json([["k": [1]], [:]]) == #"[{"k":[1]},{}]"#)
    #expect(try json([Any]()) == "[]")
    #expect(try json([UInt64.max, 1 << 63, 1]) == "[18446744073709551615,9223372036854775808,1]")
    #expect(try json(Set(["a"])) == #"["a"]"#)
    #expect(try json(["k": Set([uuid])]) == "{\"k\":[\"\(uuid.uuidString)\"]}")
    #expect(try json(["a", String?.none]) == #"["a",null]"#)
    #expect(try ArchivedCollection.archive(of: [Locale(identifier: "en")]) == nil)
    #expect(try ArchivedCollection.archive(of: "no collection") == nil)
    #expect(ArchivedCollection.json(of: Data("[1]".utf8)) == nil)
  }

  @Test("collections of plain values can be archived, however deep they lie")
  func types() {
    #expect(ArchivedCollection.canArchive([String: [Set<Int>]].self))
    #expect(ArchivedCollection.canArchive([Data?].self))
    #expect(!ArchivedCollection.canArchive([String: [Guarded]].self))
    #expect(!ArchivedCollection.canArchive([Int: String].self))
    #expect(!ArchivedCollection.canArchive(String.self))
  }

  @Test(
    "collections count as missing where a part of them cannot be read, which the next write would lose"
  )
  func unreadable() throws {
    let collections: [NSObject] = [
      NSDictionary(dictionary: ["a": NSNumber(value: Double.nan), "b": NSNumber(value: 1)]),
      NSDictionary(dictionary: ["a": NSLocale(localeIdentifier: "en"), "b": NSNumber(value: 1)]),
      NSDictionary(dictionary: [NSNumber(value: 1): NSString("one"), NSString("b"): NSString("c")]),
      NSArray(array: [NSString("a"), NSLocale(localeIdentifier: "en")]),
      NSOrderedSet(array: [NSString("a")]),
    ]
    for collection in collections {
      let archive = try NSKeyedArchiver.archivedData(
        withRootObject: collection, requiringSecureCoding: true)
      #expect(ArchivedCollection.json(of: archive) == nil, "\(collection)")
    }
  }

  @Test("collections may hold equal values, which stand in an archive once")
  func repeated() throws {
    let pictures = Array(repeating: Data(repeating: 7, count: 10_000), count: 50)
    let archive = try #require(try ArchivedCollection.archive(of: pictures))
    #expect(archive.count < 20_000)
    let json = try #require(ArchivedCollection.json(of: archive))
    #expect(try JSONDecoder().decode([Data].self, from: json) == pictures)
    let texts = Array(repeating: String(repeating: "é", count: 2000), count: 50)
    let archivedTexts = try #require(try ArchivedCollection.archive(of: texts))
    let textsJSON = try #require(ArchivedCollection.json(of: archivedTexts))
    #expect(try JSONDecoder().decode([String].self, from: textsJSON) == texts)
  }

  /// A value that its own type refuses to read again.
  struct Guarded: Codable {
    var count: Int

    init(count: Int) { self.count = count }

    init(from decoder: any Decoder) throws {
      count = try decoder.singleValueContainer().decode(Int.self)
      guard count >= 0 else { throw CancellationError() }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(count)
    }
  }

  @Model
  final class Album {
    @Attribute(.externalStorage) var photos: [Data] = []
    var tags: Set<String> = []
    var limits: [Guarded] = []

    init(photos: [Data], tags: Set<String> = [], limits: [Guarded] = []) {
      self.photos = photos
      self.tags = tags
      self.limits = limits
    }
  }

  @Test(
    "collections are written where the store has them, behind the marks of values that may lie in files"
  )
  func appleStore() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let configuration = ModelConfiguration(url: URL(filePath: path))
    do {
      let container = try ModelContainer(for: Album.self, configurations: configuration)
      let context = ModelContext(container)
      context.insert(Album(photos: [Data([1])], tags: ["a"]))
      try context.save()
      try container.close()
    }
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      let photos = try #require(try ArchivedCollection.archive(of: [Data([1])]))
      try db.execute(sql: "UPDATE ZALBUM SET ZPHOTOS = ?", arguments: [Data([1]) + photos])
      let tags = try ArchivedCollection.archive(of: Set(["a"]))
      let limits = try ArchivedCollection.archive(of: [Int]())
      try db.execute(
        sql: "UPDATE ZALBUM SET ZTAGS = ?, ZLIMITS = ?", arguments: [tags, limits])
    }
    try queue.close()
    let large = Data(repeating: 7, count: 200_000)
    let container = try ModelContainer(for: Album.self, configurations: configuration)
    let context = ModelContext(container)
    context.insert(
      Album(photos: [Data([2])], tags: ["b", "c"], limits: [Guarded(count: -1)]))
    try context.save()
    context.insert(Album(photos: [large], tags: []))
    try context.save()
    try container.close()
    try StoreReader.withReadOnlyStore(path) { db in
      let rows = try Row.fetchAll(
        db, sql: "SELECT ZPHOTOS, ZTAGS, ZLIMITS FROM ZALBUM WHERE Z_PK > 1 ORDER BY Z_PK")
      #expect(rows.count == 2)
      let photos: [Data] = rows.map { $0["ZPHOTOS"] }
      #expect(photos.first?.starts(with: Data([1]) + Data("bplist00".utf8)) == true)
      #expect(photos.last?.first == 2)
      for row in rows { #expect(ArchivedCollection.isArchive(row["ZTAGS"])) }
      #expect(rows.first?["ZLIMITS"] == Data("[-1]".utf8))
    }
  }

  @Test("collections that are damaged count as missing, and never trap")
  func damaged() throws {
    let sound = try #require(
      try ArchivedCollection.archive(of: [["a": Data([1])], ["b": Data([2, 3])]]))
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for attempt in 0..<2000 {
      var bytes = sound
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        let index = Int.random(in: 8..<bytes.count, using: &generator)
        bytes[index] = UInt8.random(in: 0...255, using: &generator)
      }
      let json = ArchivedCollection.json(of: bytes)
      #expect(
        json == nil || (try? JSONSerialization.jsonObject(with: json ?? Data())) != nil,
        "seed \(seed), attempt \(attempt)")
    }
  }
}
