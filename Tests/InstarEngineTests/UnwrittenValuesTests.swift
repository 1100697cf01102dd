import Instar
import InstarEngine
import InstarWire
import Testing

/// Whole runs of an app's container, with closures that write some rows of a property whose type or place changes.
@Suite("Values that no closure replaces", .serialized)
struct UnwrittenValuesTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private func makeRows(_ rows: String) throws {
    try store.makeTables(
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT, size REAL, flag TEXT, width INTEGER NOT NULL);
      INSERT INTO item VALUES \(rows)
      """)
  }

  private func makeItems(_ count: Int) throws {
    let container = try store.open(V1.self)
    let context = ModelContext(container)
    for number in 1...count {
      let item = V1.Item(number)
      context.insert(item)
      for part in 0..<2 { item.parts.append(V1.Part(name: "\(number)-\(part)")) }
    }
    try context.save()
    try container.close()
  }

  private func make(_ format: StoreFormat, _ count: Int) throws {
    if format == .coredata { return try makeItems(count) }
    try makeRows(
      (1...count).map { "(\($0), '\($0)', \($0 == 2 ? "2.5" : "\($0).0"), 'no', \($0))" }
        .joined(separator: ", "))
  }

  /// Lets the stage hand its items to a closure.
  private func script<Item: TestItem>(
    _: Item.Type, _ closure: @escaping ([Item]) -> Void
  ) {
    Script.didMigrate = { context in closure(try context.fetch(FetchDescriptor<Item>())) }
  }

  private func script(_ format: StoreFormat, _ closure: @escaping ([any TestItem]) -> Void) {
    if format == .coredata {
      script(V2.Item.self, closure)
    } else {
      script(RowsV2.Item.self, closure)
    }
  }

  private func refusal(_ format: StoreFormat) throws -> InstarError {
    try format == .coredata
      ? store.refusal(V1.self, V2.self) : store.refusal(RowsV1.self, RowsV2.self)
  }

  private static let others = ["Item.size", "Item.flag", "Item.parts", "Item.token"]

  @Test(
    "unwritten values are counted also where the closure wrote one row",
    arguments: [StoreFormat.coredata, .plain])
  func oneRowWritten(format: StoreFormat) throws {
    try make(format, 4)
    Script.losses = Self.others
    script(format) { items in items.first { $0.number == 1 }?.setText(11) }
    let error = try refusal(format)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 3 non-null values of Item.text:"), "\(error)")
  }

  @Test(
    "unwritten values do not include rows that the closure deleted",
    arguments: [StoreFormat.coredata, .plain])
  func deletedRows(format: StoreFormat) throws {
    try make(format, 4)
    Script.losses = Self.others
    script(format) { items in
      for item in items where item.number > 1 { item.modelContext?.delete(item) }
      items.first { $0.number == 1 }?.setText(11)
    }
    try migrate(format)
    #expect(try !store.notes.contains { $0.contains("Item.text") })
  }

  @Test(
    "each row with a value that does not convert gets its own, unless the closure wrote it",
    arguments: [StoreFormat.coredata, .plain])
  func convertedByRow(format: StoreFormat) throws {
    try make(format, 4)
    Script.losses = Self.others + ["Item.text"]
    script(format) { items in items.first { $0.number == 4 }?.setSize(40) }
    try migrate(format)
    let sizes: [Int?]
    if format == .coredata {
      sizes = try items(V2.Item.self).map(\.size)
    } else {
      sizes = try items(RowsV2.Item.self).map(\.size)
    }
    #expect(sizes == [1, nil, 3, 40])
    #expect(try store.notes.contains("drops 1 non-null values of Item.size"))
  }

  @Test(
    "a default that each process computes does not hide unwritten values",
    arguments: [StoreFormat.coredata, .plain])
  func computedDefault(format: StoreFormat) throws {
    try make(format, 1)
    Script.losses = Self.others + ["Item.text"]
    Script.didMigrate = { context in
      if format == .coredata {
        context.insert(V2.Item(9))
      } else {
        context.insert(RowsV2.Item(id: 9))
      }
    }
    try migrate(format)
    let sentence =
      format == .coredata
      ? "drops 1 non-null values of Item.token" : "drops 1 non-null values of Item.text"
    let notes = try store.notes
    #expect(notes.contains(sentence), "\(notes)")
  }

  @Test(
    "unwritten values do not include rows in which the closure wrote the default itself",
    arguments: [StoreFormat.coredata, .plain])
  func defaultWritten(format: StoreFormat) throws {
    try make(format, 3)
    Script.losses = ["Item.size", "Item.text", "Item.parts", "Item.token"]
    script(format) { items in for item in items { item.setFlag(false) } }
    try migrate(format)
    #expect(try !store.notes.contains { $0.contains("Item.flag") })
  }

  @Test("unwritten values include the links of a to-many relationship that becomes to-one")
  func links() throws {
    try makeItems(2)
    Script.losses = ["Item.size", "Item.flag", "Item.text", "Item.token"]
    let error = try refusal(.coredata)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 4 links of Item.parts:"), "\(error)")
    script(V2.Item.self) { items in
      let part = try? items.first?.modelContext?.fetch(FetchDescriptor<V2.Part>()).first
      items.first { $0.number == 1 }?.parts = part
    }
    #expect(try refusal(.coredata).cause.contains("drops 2 links of Item.parts:"))
    Script.losses.append("Item.parts")
    try migrate(.coredata)
    #expect(try store.notes.contains("drops 2 links of Item.parts"))
  }

  @Test("links of a relationship that becomes to-one are ended at both ends")
  func bothEnds() throws {
    let container = try store.open(OneV1.self)
    let context = ModelContext(container)
    for number in 1...2 {
      let owner = OneV1.Owner(number)
      context.insert(owner)
      for part in 1...2 { owner.pieces.append(OneV1.Piece(number * 10 + part)) }
    }
    try context.save()
    try container.close()
    Script.losses = ["Owner.pieces"]
    Script.didMigrate = { context in
      let pieces = try context.fetch(FetchDescriptor<OneV2.Piece>())
      let owner = try context.fetch(FetchDescriptor<OneV2.Owner>()).first { $0.number == 1 }
      owner?.pieces = pieces.first { $0.owner?.number == 1 && $0.number == 12 }
    }
    let migrated = ModelContext(try store.open(OneV2.self, ScriptedPlan<OneV1, OneV2>.self))
    let owned = try migrated.fetch(FetchDescriptor<OneV2.Piece>()).filter { $0.owner != nil }
    #expect(owned.map(\.number) == [12])
    let stage = try #require(
      PlanDefinition(ScriptedPlan<OneV1, OneV2>.self).migration(from: OneV1.versionIdentifier)
        .stages.first)
    let change = stage.planned.first { $0.reason == "makes Owner.pieces a to-one relationship" }
    #expect(
      change?.statements.map(\.comment).last
        == "ends the links that Owner.pieces no longer has, after didMigrate")
    #expect(stage.statements.last?.hasPrefix("UPDATE ZPIECE SET ZOWNER = NULL WHERE") == true)
    #expect(try store.notes.contains("drops 2 links of Owner.pieces"))
  }

  @Test(
    "unwritten values do not include numbers of a required column without a default, which convert")
  func requiredNumber() throws {
    try make(.plain, 3)
    Script.losses = Self.others + ["Item.text"]
    try migrate(.plain)
    #expect(try items(RowsV2.Item.self).map(\.width) == [1, 2, 3])
  }

  // MARK: Properties that move

  @Test(
    "unwritten values include those of a property that moves to a new superclass with a new type")
  func movedUp() throws {
    let container = try store.open(UpV1.self)
    let context = ModelContext(container)
    for number in 1...3 { context.insert(UpV1.Book("\(number)")) }
    try context.save()
    try container.close()
    script(UpV2.Book.self) { items in items.first?.setText(1) }
    let error = #expect(throws: SwiftDataError.self) {
      try store.open(UpV2.self, ScriptedPlan<UpV1, UpV2>.self)
    }
    let cause = try #require(error?.cause)
    #expect(cause.code == .unacceptedLoss)
    #expect(cause.cause.contains("drops 2 non-null values of Book.title:"), "\(cause)")
    Script.losses = ["Book.title"]
    try store.open(UpV2.self, ScriptedPlan<UpV1, UpV2>.self).close()
  }

  @Test(
    "unwritten values include those of all classes if a property moves to a subclass with a new type, at once or later"
  )
  func movedDown() throws {
    let container = try store.open(DownV1.self)
    let context = ModelContext(container)
    context.insert(DownV1.Album(title: "a"))
    context.insert(DownV1.Work("w"))
    context.insert(DownV1.Song("s"))
    for number in 1...2 { context.insert(DownV1.Book("\(number)")) }
    try context.save()
    try container.close()
    func loss(_ plan: any SchemaMigrationPlan.Type) throws -> String {
      let error = #expect(throws: SwiftDataError.self) { try store.open(DownV3.self, plan) }
      let cause = try #require(error?.cause)
      #expect(cause.code == .unacceptedLoss)
      return cause.cause
    }
    var message = try loss(ScriptedPlan<DownV1, DownV3>.self)
    #expect(message.contains("drops 4 non-null values of Work.title:"), "\(message)")
    script(DownV3.Book.self) { items in for item in items { item.setText(1) } }
    message = try loss(ScriptedPlan<DownV1, DownV3>.self)
    #expect(message.contains("drops 2 non-null values of Work.title:"), "\(message)")
    // The first stage loses the values of Work and Song, the second those of Book. That of Album is another property.
    message = try loss(LongDownPlan.self)
    #expect(message.contains("drops 4 non-null values of Work.title:"), "\(message)")
  }

  @Test("unwritten values include the links of a relationship with another destination")
  func otherDestination() throws {
    try makeItems(2)
    Script.losses = ["Item.text", "Item.size", "Item.flag", "Item.token"]
    let plan = ScriptedPlan<V1, LinksV2>.self
    let error = #expect(throws: SwiftDataError.self) { try store.open(LinksV2.self, plan) }
    let cause = try #require(error?.cause)
    #expect(cause.code == .unacceptedLoss)
    #expect(cause.cause.contains("drops 4 links of Item.parts:"), "\(cause)")
    script(LinksV2.Item.self) { items in
      items.first { $0.number == 1 }?.parts.append(LinksV2.Piece(name: "p"))
    }
    let rest = #expect(throws: SwiftDataError.self) { try store.open(LinksV2.self, plan) }
    #expect(rest?.cause?.cause.contains("drops 2 links of Item.parts:") == true)
  }

  @Test(
    "unwritten values do not include numbers of a unique column with a default, in a table without rowid"
  )
  func uniqueNumber() throws {
    try store.makeTables(
      """
      CREATE TABLE code (area INTEGER NOT NULL, id INTEGER NOT NULL, width INTEGER NOT NULL UNIQUE,
        PRIMARY KEY (area, id)) WITHOUT ROWID;
      INSERT INTO code VALUES (1, 1, 11), (1, 2, 12), (2, 1, 21)
      """)
    let container = try store.open(CodesV2.self, ScriptedPlan<CodesV1, CodesV2>.self)
    let codes = try ModelContext(container).fetch(FetchDescriptor<CodesV2.Code>())
    #expect(codes.map(\.width).sorted() == [11, 12, 21])
  }

  private func migrate(_ format: StoreFormat) throws {
    if format == .coredata {
      try store.open(V2.self, Plan.self).close()
    } else {
      try store.open(RowsV2.self, RowPlan.self).close()
    }
  }

  private func items<Item: TestItem>(_: Item.Type) throws -> [Item] {
    let container =
      try Item.self == V2.Item.self ? store.open(V2.self) : store.open(RowsV2.self, RowPlan.self)
    return try ModelContext(container).fetch(FetchDescriptor<Item>())
      .sorted { $0.number < $1.number }
  }

  // MARK: Plans

  private typealias Plan = ScriptedPlan<V1, V2>
  private typealias RowPlan = ScriptedPlan<RowsV1, RowsV2>

  protocol TestItem: PersistentModel {
    var number: Int { get }
    func setText(_ value: Int)
    func setSize(_ value: Int)
    func setFlag(_ value: Bool)
  }

  enum LongDownPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [DownV1.self, DownV2.self, DownV3.self] }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: DownV1.self, toVersion: DownV2.self),
        .custom(
          fromVersion: DownV2.self, toVersion: DownV3.self, willMigrate: nil, didMigrate: nil),
      ]
    }
  }

  // MARK: Models

  enum UpV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Book.self] }

    @Model
    final class Book {
      var title: String?
      init(_ title: String) { self.title = title }
    }
  }

  enum UpV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Work.self, Book.self] }

    @Model
    class Work {
      var title: Int?
      init() {}
    }

    @Model
    final class Book: Work, TestItem {
      var pages: Int = 0
      override init() { super.init() }

      var number: Int { pages }
      func setText(_ value: Int) { title = value }
      func setSize(_ value: Int) {}
      func setFlag(_ value: Bool) {}
    }
  }

  enum DownV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
      [Album.self, Work.self, Song.self, Book.self]
    }

    @Model
    final class Album {
      var title: String
      init(title: String) { self.title = title }
    }

    @Model
    class Work {
      var title: String?
      var year: Int = 0
      init(_ title: String) { self.title = title }
    }

    @Model
    final class Song: Work {
      var length: Int = 0
      override init(_ title: String) { super.init(title) }
    }

    @Model
    final class Book: Work {
      var pages: Int = 0
      override init(_ title: String) { super.init(title) }
    }
  }

  enum DownV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] {
      [Album.self, Work.self, Song.self, Book.self]
    }

    @Model
    final class Album {
      var title: String
      init(title: String) { self.title = title }
    }

    @Model
    class Work {
      var year: Int = 0
      init() {}
    }

    @Model
    final class Song: Work {
      var length: Int = 0
      override init() { super.init() }
    }

    @Model
    final class Book: Work {
      var title: String?
      var pages: Int = 0
      override init() { super.init() }
    }
  }

  enum DownV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] {
      [Album.self, Work.self, Song.self, Book.self]
    }

    @Model
    final class Album {
      var title: String
      init(title: String) { self.title = title }
    }

    @Model
    class Work {
      var year: Int = 0
      init() {}
    }

    @Model
    final class Song: Work {
      var length: Int = 0
      override init() { super.init() }
    }

    @Model
    final class Book: Work, TestItem {
      var title: Int?
      var pages: Int = 0
      override init() { super.init() }

      var number: Int { pages }
      func setText(_ value: Int) { title = value }
      func setSize(_ value: Int) {}
      func setFlag(_ value: Bool) {}
    }
  }

  enum LinksV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self, V1.Part.self, Piece.self] }

    @Model
    final class Item: TestItem {
      var number: Int
      var text: String?
      var size: Double?
      var flag: String
      var token: String
      var parts: [Piece] = []
      init(_ number: Int) {
        self.number = number
        flag = ""
        token = ""
      }

      func setText(_ value: Int) {}
      func setSize(_ value: Int) {}
      func setFlag(_ value: Bool) {}
    }

    @Model
    final class Piece {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum OneV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Piece.self] }

    @Model
    final class Owner {
      var number: Int
      @Relationship(inverse: \Piece.owner) var pieces: [Piece] = []
      init(_ number: Int) { self.number = number }
    }

    @Model
    final class Piece {
      var number: Int
      var owner: Owner?
      init(_ number: Int) { self.number = number }
    }
  }

  enum OneV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Piece.self] }

    @Model
    final class Owner {
      var number: Int
      @Relationship(inverse: \Piece.owner) var pieces: Piece?
      init(_ number: Int) { self.number = number }
    }

    @Model
    final class Piece {
      var number: Int
      var owner: Owner?
      init(_ number: Int) { self.number = number }
    }
  }

  enum CodesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Code.self] }

    @Table("code", .withoutRowID)
    @Model
    final class Code {
      @Column(.primaryKey) var area: Int
      @Column(.primaryKey) var id: Int
      @Attribute(.unique) var width: Int
      init(area: Int, id: Int) {
        self.area = area
        self.id = id
        width = 0
      }
    }
  }

  enum CodesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Code.self] }

    @Table("code", .withoutRowID)
    @Model
    final class Code {
      @Column(.primaryKey) var area: Int
      @Column(.primaryKey) var id: Int
      @Attribute(.unique) var width: Double = 0
      init(area: Int, id: Int) {
        self.area = area
        self.id = id
      }
    }
  }

  enum V1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self, Part.self] }

    @Model
    final class Item {
      var number: Int
      var text: String?
      var size: Double?
      var flag: String
      var token: String
      var parts: [Part] = []
      init(_ number: Int) {
        self.number = number
        text = "\(number)"
        size = number == 2 ? 2.5 : Double(number)
        flag = "no"
        token = "t\(number)"
      }
    }

    @Model
    final class Part {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum V2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self, Part.self] }

    @Model
    final class Item: TestItem {
      var number: Int
      var text: Int?
      var size: Int?
      var flag: Bool = false
      var token: UUID = UUID()
      var parts: Part?
      init(_ number: Int) { self.number = number }

      func setText(_ value: Int) { text = value }
      func setSize(_ value: Int) { size = value }
      func setFlag(_ value: Bool) { flag = value }
    }

    @Model
    final class Part {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum RowsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      @Column(.primaryKey) var id: Int
      var text: String?
      var size: Double?
      var flag: String?
      var width: Int
      init(id: Int) {
        self.id = id
        width = 0
      }
    }
  }

  enum RowsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item: TestItem {
      @Column(.primaryKey) var id: Int
      var text: Int?
      var size: Int?
      var flag: Bool = false
      var width: Double
      init(id: Int) {
        self.id = id
        width = 0
      }

      var number: Int { id }
      func setText(_ value: Int) { text = value }
      func setSize(_ value: Int) { size = value }
      func setFlag(_ value: Bool) { flag = value }
    }
  }
}
