import Foundation
import Instar
import InstarModel
import InstarSchema
import InstarStore
import Testing

@Suite("Transforms of enums, composites and collections", .serialized)
struct TransformedTypesTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  /// What the tests read of an item, in either format.
  private struct Read: Equatable {
    var kind: Kind
    var tint: Tint?
    var place: Place
    var city: String
    var words: [String]
    var count: Int
    var form: Form
  }

  private static let expected = [
    Read(
      kind: .closed, tint: .blue, place: Place(city: "BONN", number: nil), city: "Bonn",
      words: ["a!", "b!"], count: 2, form: .round),
    Read(
      kind: .open, tint: nil, place: Place(city: "ULM", number: 8), city: "Ulm", words: [],
      count: 0, form: .square),
  ]

  @Test(
    "transforms read and write enums, composites and collections in a store of the Core Data format"
  )
  func coreData() throws {
    try store.make(
      ItemsV1.self,
      [
        ItemsV1.Item(
          code: 1, tint: .red, place: Place(city: "Bonn", number: 7), words: ["a", "b"]),
        ItemsV1.Item(code: 2, tint: nil, place: Place(city: "Ulm", number: nil), words: []),
      ])
    Script.stage = .transform(fromVersion: ItemsV1.self, toVersion: ItemsV2.self) {
      Transform(ItemsV1.Item.self, ItemsV2.Item.self)
        .set(\.kind, from: \.code) { $0 == 1 ? Kind.closed : .open }
        .set(\.tint, from: \.tint) { tint in tint.map { $0 == .red ? .blue : .red } }
        .set(\.place, from: \.place) {
          Place(city: $0.city.uppercased(), number: $0.number == nil ? 8 : nil)
        }
        .set(\.city, from: \.place) { $0.city }
        .set(\.words, from: \.words) { words in words.map { $0 + "!" } }
        .set(\.count, from: \.words) { $0.count }
        .set(\.form, from: \.code, \.tint) { code, tint in
          code == 1 && tint != nil ? .round : .square
        }
    }
    try store.migrate(ItemsV1.self, ItemsV2.self)
    let context = ModelContext(try store.open(ItemsV2.self))
    let items = try context.fetch(FetchDescriptor<ItemsV2.Item>(sortBy: [SortDescriptor(\.code)]))
    #expect(
      items.map {
        Read(
          kind: $0.kind, tint: $0.tint, place: $0.place, city: $0.city, words: $0.words,
          count: $0.count, form: $0.form)
      } == Self.expected)
  }

  @Test("transforms read and write enums, composites and collections in ordinary tables")
  func ordinaryTables() throws {
    try store.make(
      RowItemsV1.self,
      [
        RowItemsV1.Item(
          id: 1, code: 1, tint: .red, place: Place(city: "Bonn", number: 7), words: ["a", "b"]),
        RowItemsV1.Item(
          id: 2, code: 2, tint: nil, place: Place(city: "Ulm", number: nil), words: []),
      ])
    Script.stage = .transform(fromVersion: RowItemsV1.self, toVersion: RowItemsV2.self) {
      Transform(RowItemsV1.Item.self, RowItemsV2.Item.self)
        .set(\.kind, from: \.code) { $0 == 1 ? Kind.closed : .open }
        .set(\.tint, from: \.tint) { tint in tint.map { $0 == .red ? .blue : .red } }
        .set(\.place, from: \.place) {
          Place(city: $0.city.uppercased(), number: $0.number == nil ? 8 : nil)
        }
        .set(\.city, from: \.place) { $0.city }
        .set(\.words, from: \.words) { words in words.map { $0 + "!" } }
        .set(\.count, from: \.words) { $0.count }
        .set(\.form, from: \.code, \.tint) { code, tint in
          code == 1 && tint != nil ? .round : .square
        }
    }
    try store.migrate(RowItemsV1.self, RowItemsV2.self)
    let context = ModelContext(try store.open(RowItemsV2.self))
    let items = try context.fetch(
      FetchDescriptor<RowItemsV2.Item>(sortBy: [SortDescriptor(\.code)]))
    #expect(
      items.map {
        Read(
          kind: $0.kind, tint: $0.tint, place: $0.place, city: $0.city, words: $0.words,
          count: $0.count, form: $0.form)
      } == Self.expected)
  }

  @Test("a stored value that is not a case of the enum ends the run with property and row")
  func unknownCase() throws {
    try store.make(
      ItemsV1.self,
      [ItemsV1.Item(code: 1, tint: .red, place: Place(city: "Bonn", number: 7), words: [])])
    try store.execute("UPDATE ZITEM SET ZTINT = 'green'")
    Script.stage = .transform(fromVersion: ItemsV1.self, toVersion: ItemsV2.self) {
      Transform(ItemsV1.Item.self, ItemsV2.Item.self)
        .set(\.count, from: \.tint) { $0 == .red ? 1 : 2 }
    }
    let error = try store.refusal(ItemsV1.self, ItemsV2.self)
    #expect(
      error.cause.hasPrefix(
        "cannot compute Item.count of row 1: the transform threw: the stored value of 'tint' is not a"
      ),
      "\(error)")
  }

  @Test("a relationship is neither a source nor a target")
  func relationship() throws {
    try store.make(ShelvesV1.self, [ShelvesV1.Item(size: 1)])
    Script.stage = .transform(fromVersion: ShelvesV1.self, toVersion: ShelvesV2.self) {
      Transform(ShelvesV1.Item.self, ShelvesV2.Item.self)
        .set(\.weight, from: \.shelf) { $0 == nil ? 1 : 2 }
    }
    let error = try store.refusal(ShelvesV1.self, ShelvesV2.self)
    #expect(error.code == .invalidPlan)
    #expect(error.cause.contains("which is not a stored property"), "\(error)")
  }
}

enum Kind: Int, Codable { case open, closed }
enum Tint: String, Codable { case red, blue }
enum Form: Codable { case round, square }
struct Place: Codable, Equatable {
  var city: String
  var number: Int?
}

enum ItemsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }

  @Model final class Item {
    var code: Int
    var tint: Tint?
    var place: Place
    var words: [String]
    init(code: Int, tint: Tint?, place: Place, words: [String]) {
      (self.code, self.tint, self.place, self.words) = (code, tint, place, words)
    }
  }
}

enum ItemsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }

  @Model final class Item {
    var code: Int
    var kind: Kind = Kind.open
    var tint: Tint?
    var place: Place
    var city: String = ""
    var words: [String]
    var count: Int = -1
    var form: Form = Form.round
    init(code: Int, place: Place, words: [String]) {
      (self.code, self.place, self.words) = (code, place, words)
    }
  }
}

enum RowItemsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }

  @Table("item")
  @Model final class Item {
    var id: Int
    var code: Int
    var tint: Tint?
    var place: Place
    var words: [String]
    init(id: Int, code: Int, tint: Tint?, place: Place, words: [String]) {
      (self.id, self.code, self.tint, self.place, self.words) = (id, code, tint, place, words)
    }
  }
}

enum RowItemsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }

  @Table("item")
  @Model final class Item {
    var id: Int
    var code: Int
    var kind: Kind = Kind.open
    var tint: Tint?
    var place: Place
    var city: String = ""
    var words: [String]
    var count: Int = -1
    var form: Form = Form.round
    init(id: Int, code: Int, place: Place, words: [String]) {
      (self.id, self.code, self.place, self.words) = (id, code, place, words)
    }
  }
}
