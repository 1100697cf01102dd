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
    @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var words: [String: Int]?

    init() {}
  }

  @Test("are kept by Foundation's own transformer, which nobody has to register")
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
    let archive = try #require(ArchivedCollection.archive(of: value))
    return ArchivedCollection.json(of: archive).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("come back as the JSON of the same values, whatever plain values they hold")
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
    // What has no form of its own is left to JSON.
    #expect(ArchivedCollection.archive(of: [UInt64.max]) == nil)
    #expect(ArchivedCollection.archive(of: "no collection") == nil)
    #expect(ArchivedCollection.json(of: Data("[1]".utf8)) == nil)
  }

  @Test("that are damaged are no values, and never a trap")
  func damaged() throws {
    let sound = try #require(
      ArchivedCollection.archive(of: [["a": Data([1])], ["b": Data([2, 3])]]))
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
