import Foundation
import Instar
import InstarEngine
import InstarModel
import InstarSchema
import InstarWire
import InstarStore
import Synchronization
import Testing

private struct Refusal: Error, CustomStringConvertible {
  let description: String
}

@Suite("Transforms", .serialized)
struct TransformStageTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private static func words(_ text: String) -> Int { text.split(separator: " ").count }

  /// Sources that are kept, renamed, removed and of another type.
  private func stage(
    _ format: StoreFormat, content: @escaping @Sendable (String) throws -> String = { "<\($0)>" }
  ) -> MigrationStage {
    if format == .plain {
      return .transform(
        fromVersion: RowNotesV1.self, toVersion: RowNotesV2.self, label: "CountWords"
      ) {
        Transform(RowNotesV1.Note.self, RowNotesV2.Note.self)
          .set(\.words, from: \.body) { Self.words($0) }
          .set(\.content, from: \.body) { try content($0) }
          .set(\.pages, from: \.pages) { pages in pages.flatMap { Int($0) } }
          .set(\.heading, from: \.title, \.length) { title, length in "\(title) \(length)" }
          .set(\.seconds, from: \.made) { made in
            made.map { Int($0.timeIntervalSinceReferenceDate) }
          }
      }
    }
    return .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "CountWords") {
      Transform(NotesV1.Note.self, NotesV2.Note.self)
        .set(\.words, from: \.body) { Self.words($0) }
        .set(\.content, from: \.body) { try content($0) }
        .set(\.pages, from: \.pages) { pages in pages.flatMap { Int($0) } }
        .set(\.heading, from: \.title, \.length) { title, length in "\(title) \(length)" }
        .set(\.seconds, from: \.made) { made in
          made.map { Int($0.timeIntervalSinceReferenceDate) }
        }
    }
  }

  @Test(
    "transforms compute properties from those of the version before, also from renamed, removed and retyped ones",
    arguments: [StoreFormat.coredata, .plain])
  func values(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.stage = stage(format)
    // No loss is accepted: 'pages' has another type, and 'x' becomes nil on purpose.
    try store.migrateNotes(format)
    #expect(try store.notes("words", format) == ["2", "1", "3"])
    #expect(try store.notes("content", format) == ["<one two>", "<one>", "<one two  three>"])
    #expect(try store.notes("pages", format) == ["12", "nil", "nil"])
    #expect(try store.notes("heading", format) == ["a 7", "b 8", "c 9"])
    #expect(try store.notes("seconds", format) == ["7", "8", format == .plain ? "nil" : "9"])
  }

  @Test(
    "a thrown error names property and row, and leaves the store as it was",
    arguments: [StoreFormat.coredata, .plain])
  func failure(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.stage = stage(format) { body in
      if body.hasSuffix("three") { throw Refusal(description: "too long") }
      return body
    }
    let error = try store.refusalOfNotes(format)
    #expect(error.code == .stageFailed)
    #expect(error.stage?.hasPrefix("CountWords (1 of 1)") == true, "\(error)")
    let row = format == .plain ? 5 : 3
    #expect(
      error.cause == "cannot compute Note.content of row \(row): the transform threw: too long",
      "\(error)")
  }

  @Test(
    "a plan shows each statement that a run with transforms executes, in its order",
    arguments: [StoreFormat.coredata, .plain])
  func plan(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.stage = stage(format)
    let (planned, executed) =
      try format == .plain
      ? store.statements(RowNotesV1.self, RowNotesV2.self)
      : store.statements(NotesV1.self, NotesV2.self)
    #expect(executed == planned)
    #expect(planned.contains { $0.contains("instar_set_Note_words(") })
  }

  @Test("one UPDATE after the change of schema is enough where all sources stay")
  func oneUpdate() throws {
    try store.makeNotes(.coredata)
    Script.stage = .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self) {
      Transform(NotesV1.Note.self, NotesV2.Note.self)
        .set(\.words, from: \.body) { Self.words($0) }
        .set(\.content, from: \.body) { "<\($0)>" }
    }
    Script.losses = ["Note.pages"]
    let planned = try store.plan(NotesV1.self, NotesV2.self).stages[0]
    #expect(
      planned.statements.filter { $0.contains("instar_set") } == [
        "UPDATE ZNOTE SET ZWORDS = instar_set_Note_words(ZNOTE.Z_PK, ZNOTE.ZCONTENT), "
          + "ZCONTENT = instar_set_Note_content(ZNOTE.Z_PK, ZNOTE.ZCONTENT)"
      ])
    try store.migrateNotes(.coredata)
    #expect(try store.notes("words", .coredata) == ["2", "1", "3"])
    #expect(try store.notes("content", .coredata) == ["<one two>", "<one>", "<one two  three>"])
  }

  @Test(
    "a function can read a text as UTF-8 bytes; an empty text has none, and no text gives no value")
  func bytes() throws {
    try store.make(
      NotesV1.self,
      [
        NotesV1.Note(title: "a", body: "é x", pages: "12", length: 1),
        NotesV1.Note(title: "b", body: "", pages: nil, length: 2),
      ])
    Script.stage = .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self) {
      Transform(NotesV1.Note.self, NotesV2.Note.self)
        .set(\.words, fromUTF8: \.body) { $0.count }
        .set(\.pages, fromUTF8: \.pages) { bytes in bytes.isEmpty ? nil : Int(bytes[0]) }
    }
    try store.migrateNotes(.coredata)
    #expect(try store.notes("words", .coredata) == ["4", "0"])
    #expect(try store.notes("pages", .coredata) == ["49", "nil"])
  }

  @Test("a transform of a subclass computes its own rows, one of the superclass all rows")
  func inheritance() throws {
    try store.make(
      ThingsV1.self,
      [
        ThingsV1.Thing(name: "a"), ThingsV1.Book(name: "b b", author: "x y"),
        ThingsV1.Thing(name: "c"),
      ])
    Script.stage = .transform(fromVersion: ThingsV1.self, toVersion: ThingsV2.self) {
      Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
        .set(\.count, from: \.name) { Self.words($0) }
      Transform(ThingsV1.Book.self, ThingsV2.Book.self)
        .set(\.title, from: \.name, \.author) { name, author in "\(name) by \(author)" }
        .set(\.name, from: \.name) { $0.uppercased() }
    }
    try store.migrate(ThingsV1.self, ThingsV2.self)
    #expect(try store.read("SELECT ZCOUNT FROM ZTHING ORDER BY Z_PK") == ["1", "2", "1"])
    #expect(
      try store.read("SELECT ifnull(ZTITLE, 'nil') FROM ZTHING ORDER BY Z_PK") == [
        "nil", "b b by x y", "nil",
      ])
    #expect(try store.read("SELECT ZNAME FROM ZTHING ORDER BY Z_PK") == ["a", "B B", "c"])
  }

  @Test(
    "a transform reads the values of the version before, also if an earlier transform has set them")
  func earlierTransforms() throws {
    try store.make(
      ThingsV1.self, [ThingsV1.Thing(name: "a a"), ThingsV1.Book(name: "b", author: "x")])
    Script.stage = .transform(fromVersion: ThingsV1.self, toVersion: ThingsV2.self) {
      Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
        .set(\.name, from: \.name) { "<\($0)>" }
      Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
        .set(\.count, from: \.name) { $0.count }
      Transform(ThingsV1.Book.self, ThingsV2.Book.self)
        .set(\.title, from: \.name) { $0 }
    }
    try store.migrate(ThingsV1.self, ThingsV2.self)
    #expect(try store.read("SELECT ZNAME FROM ZTHING ORDER BY Z_PK") == ["<a a>", "<b>"])
    #expect(try store.read("SELECT ZCOUNT FROM ZTHING ORDER BY Z_PK") == ["3", "1"])
    #expect(
      try store.read("SELECT ifnull(ZTITLE, 'nil') FROM ZTHING ORDER BY Z_PK") == ["nil", "b"])
  }

  @Test("values of rows whose entity loses the property are still counted as lost")
  func losingRows() throws {
    try store.make(
      RemarksV1.self,
      [RemarksV1.Thing(name: "a", remark: "x"), RemarksV1.Book(name: "b", remark: "y")])
    Script.stage = .transform(fromVersion: RemarksV1.self, toVersion: RemarksV2.self) {
      Transform(RemarksV1.Book.self, RemarksV2.Book.self)
        .set(\.remark, from: \.remark) { remark in remark.map { "<\($0)>" } }
    }
    let error = try store.refusal(RemarksV1.self, RemarksV2.self)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("1 non-null value"), "\(error)")
    Script.losses = ["Thing.remark"]
    try store.migrate(RemarksV1.self, RemarksV2.self)
    #expect(try store.read("SELECT ZREMARK FROM ZTHING WHERE ZNAME = 'b'") == ["<y>"])
  }

  @Test("a function gives empty values of a property that becomes required, in ordinary tables")
  func becomesRequired() throws {
    try store.makeTables(
      """
      CREATE TABLE contact (id INTEGER PRIMARY KEY, email TEXT);
      INSERT INTO contact VALUES (1, NULL), (2, 'a@b')
      """)
    Script.stage = .transform(fromVersion: ContactsV1.self, toVersion: ContactsV2.self) {
      Transform(ContactsV1.Contact.self, ContactsV2.Contact.self)
        .set(\.email, from: \.email) { $0 ?? "none" }
    }
    try store.migrate(ContactsV1.self, ContactsV2.self)
    #expect(try store.read("SELECT email FROM contact ORDER BY id") == ["none", "a@b"])
  }

  @Test("if and for may collect transforms")
  func builder() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    let (counts, encloses) = (true, false)
    Script.stage = .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self) {
      if counts {
        Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.words, from: \.body) {
          Self.words($0)
        }
      }
      if encloses {
        Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.content, from: \.body) { "<\($0)>" }
      } else {
        Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.content, from: \.body) { "[\($0)]" }
      }
      for heading in ["x"] {
        Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.heading, from: \.title) {
          heading + $0
        }
      }
    }
    try store.migrateNotes(.coredata)
    #expect(try store.notes("words", .coredata) == ["2", "1", "3"])
    #expect(try store.notes("content", .coredata) == ["[one two]", "[one]", "[one two  three]"])
    #expect(try store.notes("heading", .coredata) == ["xa", "xb", "xc"])
  }

  @Test("transforms end within some rows after the run is canceled")
  func cancellation() throws {
    try store.make(
      NotesV1.self,
      (0..<500).map { NotesV1.Note(title: "\($0)", body: "x", pages: nil, length: 1) })
    let calls = Mutex(0)
    Script.stage = .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self) {
      Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.words, from: \.body) { _ in
        calls.withLock { count in
          count += 1
          return count
        }
      }
    }
    let definition = try PlanDefinition(ScriptedPlan<NotesV1, NotesV2>.self)
    let connection = try StoreConnection(path: store.path, durability: .clone)
    let error = #expect(throws: InstarError.self) {
      try StageExecutor.run(
        [
          StageExecutor.Clone(
            connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
          ) { _ in }
        ], plan: definition.name, isCanceled: { calls.withLock { $0 >= 10 } })
    }
    try connection.close()
    #expect(error?.cause.contains("CancellationError") == true)
    #expect(calls.withLock { (10..<100).contains($0) })
  }

  @Test("a function that returns NaN fails the run, and so does a closure that sets it")
  func notANumber() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    let date = Date(timeIntervalSinceReferenceDate: .nan)
    Script.stage = .transform(fromVersion: NotesV1.self, toVersion: NotesV2.self) {
      Transform(NotesV1.Note.self, NotesV2.Note.self).set(\.made, from: \.made) { _ in date }
    }
    #expect(try "\(store.refusalOfNotes(.coredata))".contains("not a number (NaN)"))
    Script.stage = .custom(
      fromVersion: NotesV1.self, toVersion: NotesV2.self, willMigrate: nil,
      didMigrate: { context in
        for note in try context.fetch(FetchDescriptor<NotesV2.Note>()) { note.made = date }
        try context.save()
      })
    #expect(try "\(store.refusalOfNotes(.coredata))".contains("'made' is not a number (NaN)"))
  }

  @Test("transforms of a property from which another model's attribute is derived are refused")
  func derivedElsewhere() throws {
    try store.make(SumsV1.self, [SumsV1.Item(size: 1)])
    Script.stage = .transform(fromVersion: SumsV1.self, toVersion: SumsV2.self) {
      Transform(SumsV1.Item.self, SumsV2.Item.self).set(\.size, from: \.size) { $0 + 1 }
    }
    let error = try store.refusal(SumsV1.self, SumsV2.self)
    #expect(error.code == .invalidPlan)
    #expect(error.cause == "Shelf.total is derived from Item.size")
  }

  @Test("what a transform cannot do is refused with the property and what to do instead")
  func refusals() throws {
    try store.make(ThingsV1.self, [ThingsV1.Thing(name: "a")])
    func refusal(_ transform: [ModelTransform]) throws -> String {
      Script.stage = .transform(fromVersion: ThingsV1.self, toVersion: ThingsV2.self) {
        transform
      }
      let error = try store.refusal(ThingsV1.self, ThingsV2.self)
      #expect(error.code == .invalidPlan)
      #expect(try store.planError(ThingsV1.self, ThingsV2.self).code == .invalidPlan)
      return "\(error)"
    }
    func one<Old, New>(_ transform: Transform<Old, New>) -> [ModelTransform] {
      TransformBuilder.buildExpression(transform)
    }
    let twice = Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
      .set(\.count, from: \.name) { $0.count }.set(\.count, from: \.name) { $0.count }
    #expect(try refusal(one(twice)).contains("Thing.count is set twice"))
    let inherited = Transform(ThingsV1.Book.self, ThingsV2.Book.self)
      .set(\.count, from: \.name) { $0.count }
    #expect(try refusal(one(inherited)).contains("set it in a Transform of Thing"))
    let stranger = Transform(ThingsV1.Thing.self, ThingsV2.Book.self)
      .set(\.title, from: \.name) { $0 }
    #expect(try refusal(one(stranger)).contains("does not continue Thing"))
    let both =
      one(
        Transform(ThingsV1.Thing.self, ThingsV2.Thing.self).set(\.name, from: \.name) { $0 })
      + one(Transform(ThingsV1.Book.self, ThingsV2.Book.self).set(\.name, from: \.name) { $0 })
    #expect(try refusal(both).contains("Book.name is set twice"))
    let field = Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
      .set(\.count, from: \.name.count) { $0 }
    #expect(try refusal(one(field)).contains("which is not a stored property"))
    let large = Transform(ThingsV1.Thing.self, ThingsV2.Thing.self)
      .set(\.image, from: \.image) { $0 }
    #expect(try refusal(one(large)).contains("are in files"))
  }
}

enum ThingsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Thing.self, Book.self] }

  @Model class Thing {
    var name: String
    @Attribute(.externalStorage) var image: Data?
    init(name: String) { self.name = name }
  }

  @Model final class Book: Thing {
    var author: String
    init(name: String, author: String) {
      self.author = author
      super.init(name: name)
    }
  }
}

enum ThingsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Thing.self, Book.self] }

  @Model class Thing {
    var name: String
    @Attribute(.externalStorage) var image: Data?
    var count: Int = 0
    init(name: String) { self.name = name }
  }

  @Model final class Book: Thing {
    var author: String
    var title: String?
    init(name: String, author: String) {
      self.author = author
      super.init(name: name)
    }
  }
}

enum RemarksV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Thing.self, Book.self] }

  @Model class Thing {
    var name: String
    var remark: String?
    init(name: String, remark: String?) {
      self.name = name
      self.remark = remark
    }
  }

  @Model final class Book: Thing {
    var author: String?
    override init(name: String, remark: String?) { super.init(name: name, remark: remark) }
  }
}

enum RemarksV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Thing.self, Book.self] }

  @Model class Thing {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Book: Thing {
    var author: String?
    var remark: String?
    override init(name: String) { super.init(name: name) }
  }
}

enum ContactsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Contact.self] }

  @Table("contact")
  @Model final class Contact {
    var id: Int
    var email: String?
    init(id: Int) { self.id = id }
  }
}

enum ContactsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Contact.self] }

  @Table("contact")
  @Model final class Contact {
    var id: Int
    var email: String
    init(id: Int, email: String) { (self.id, self.email) = (id, email) }
  }
}

enum SumsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Item.self] }

  @Model final class Shelf {
    @Attribute(.derived("sum:(items.size)")) var total: Int?
    @Relationship(inverse: \Item.shelf) var items: [Item] = []
    init() {}
  }

  @Model final class Item {
    var size: Int
    var shelf: Shelf?
    init(size: Int) { self.size = size }
  }
}

enum SumsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Item.self] }

  @Model final class Shelf {
    @Attribute(.derived("sum:(items.size)")) var total: Int?
    @Relationship(inverse: \Item.shelf) var items: [Item] = []
    init() {}
  }

  @Model final class Item {
    var size: Int
    var weight: Int?
    var shelf: Shelf?
    init(size: Int) { self.size = size }
  }
}
