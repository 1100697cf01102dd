import Foundation
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("Keyed archives")
struct KeyedArchiveTests {
  private func archive(_ root: ModelArchive.Value) throws -> KeyedArchive {
    try KeyedArchive(ModelArchive.bytes(root))
  }

  @Test("keyed archives give plain values, lists and dictionaries of either kind")
  func values() throws {
    let archive = try archive(
      .object(
        "Thing",
        [
          "text": .text("a"), "number": .integer(-3), "real": .real(0.5), "flag": .boolean(true),
          "data": .data([1, 2]), "list": .array([.text("x"), .integer(1), .text("y")]),
          "entries": .entries([("b", .integer(2)), ("a", .integer(1))]),
          "known": .knownKeys([("k", .text("v"))], unused: ["none"]),
        ]))
    let thing = try #require(try archive.record(archive.root))
    #expect(thing.className == "Thing")
    #expect(try archive.text(thing["text"]) == "a")
    #expect(try archive.integer(thing["number"]) == -3)
    #expect(try archive.boolean(thing["flag"]) == true)
    #expect(try archive.data(thing["data"]) == [1, 2])
    #expect(try archive.texts(thing["list"]) == ["x", "y"])
    #expect(try archive.entries(thing["entries"]).map(\.key) == ["a", "b"])
    #expect(try archive.entries(thing["known"]).map(\.key) == ["k"])
    #expect(try archive.text(thing["missing"]) == nil)
    #expect(try archive.text(thing["number"]) == nil)
    #expect(try archive.elements(thing["text"]).isEmpty)
  }

  @Test("keyed archives that Foundation has written are read")
  func foundation() throws {
    let bytes = try NSKeyedArchiver.archivedData(
      withRootObject: NSArray(array: ["a" as NSString, Data([7]) as NSData]),
      requiringSecureCoding: true)
    let archive = try KeyedArchive([UInt8](bytes))
    let elements = try archive.elements(archive.root)
    #expect(try elements.map { try archive.text($0) } == ["a", nil])
    #expect(try archive.data(elements[1]) == [7])
  }

  @Test("a keyed archive may reference itself")
  func cycle() throws {
    let archive = try archive(
      .named("a", .object("Node", ["next": .object("Node", ["next": .link("a")])])))
    var node = archive.root
    for _ in 0..<5 { node = try #require(try archive.record(node))["next"] }
    #expect(try archive.record(node)?.className == "Node")
  }

  @Test("keyed archives that share one large text many times exhaust a budget, not memory")
  func amplification() throws {
    let text = ModelArchive.Value.named(
      "text",
      .object(
        "NSString",
        [
          "NS.string": .text(
            String(repeating: "a", count: 10_000))
        ]))
    let bytes = ModelArchive.bytes(
      .array([text] + (0..<1000).map { _ in .link("text") }))
    let archive = try KeyedArchive(bytes)
    #expect(throws: KeyedArchive.Problem.exhausting) { try archive.texts(archive.root) }
    let allowed = try KeyedArchive(bytes, contentAllowance: 20_000_000)
    #expect(try allowed.texts(allowed.root).count == 1001)
  }

  @Test("keyed archives that are cut short or are other lists are refused")
  func malformed() throws {
    let bytes = ModelArchive.bytes(.array([.text("a")]))
    for count in stride(from: 0, to: bytes.count, by: 5) {
      #expect(throws: KeyedArchive.Problem.self) { try KeyedArchive(Array(bytes.prefix(count))) }
    }
    let list = try PropertyListSerialization.data(
      fromPropertyList: ["a": 1], format: .binary, options: 0)
    #expect(throws: KeyedArchive.Problem.malformed) { try KeyedArchive([UInt8](list)) }
  }
}
