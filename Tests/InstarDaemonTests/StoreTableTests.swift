import InstarTestSupport
import Testing

@testable import InstarDaemon

@Suite("The table of the queue's stores")
struct StoreTableTests {
  @Test("the table of stores has the values that a dictionary has, whatever is set and removed")
  func likeDictionary() {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let paths = [
      "/a.store", "/srv/a.store", "/srv/b.store", "/srv/x/a.store", "/srv/x/é.store", "name",
    ]
    var table = StoreTable<Int>()
    var expected: [String: Int] = [:]
    for step in 0..<500 {
      let path = paths[Int.random(in: 0..<paths.count, using: &generator)]
      let value = Bool.random(using: &generator) ? step : nil
      table[path] = value
      expected[path] = value
      #expect(table[path] == value)
      #expect(table.count == expected.count, "seed \(seed)")
      #expect(Set(table.keys) == Set(expected.keys), "seed \(seed)")
      #expect(table.values.sorted() == expected.values.sorted(), "seed \(seed)")
      #expect(
        Dictionary(uniqueKeysWithValues: table.map { ($0.key, $0.value) }) == expected,
        "seed \(seed)")
    }
  }

  @Test("the table of stores finds the stores in a folder itself, also in the root")
  func folders() {
    var table = StoreTable<Int>()
    for path in ["/a.store", "/srv/b.store", "/srv/c.store", "/srv/x/d.store"] { table[path] = 1 }
    #expect(Set(table.folders { _ in true }) == ["/", "/srv", "/srv/x"])
    #expect(table.folders { $0 == "/srv" } == ["/srv"])
    #expect(Set(table.paths(in: "/srv")) == ["/srv/b.store", "/srv/c.store"])
    #expect(table.paths(in: "/") == ["/a.store"])
    #expect(table.paths(in: "/srv/y").isEmpty)
    table["/srv/x/d.store"] = nil
    #expect(Set(table.folders { _ in true }) == ["/", "/srv"])
  }
}
