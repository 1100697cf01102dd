import Foundation
import Instar
import InstarEngine
import InstarModel
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

private struct Refusal: Error {}

@Suite("Bridges", .serialized)
struct BridgeStageTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private func bridge(
    _ migrate: @escaping @Sendable (ModelContext, ModelContext) throws -> Void
  ) -> MigrationStage {
    .bridge(fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "Bridge", migrate)
  }

  @Test(
    "the old context of a bridge reads the store as it was, the new one writes it, and both know the same row"
  )
  func bothContexts() throws {
    try store.makeNotes(.coredata)
    Script.stage = bridge { old, new in
      try new.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
        guard let before = try old.counterpart(of: note, as: NotesV1.Note.self) else { return }
        note.words = before.length
        // Counts as written, so that no loss has to be accepted.
        note.pages = before.pages.flatMap { Int($0) }
        guard try new.counterpart(of: before, as: NotesV2.Note.self) === note else {
          throw Refusal()
        }
      }
    }
    try store.migrateNotes(.coredata)
    #expect(try store.notes("words", .coredata) == ["7", "8", "9"])
    #expect(try store.notes("pages", .coredata) == ["12", "nil", "nil"])
  }

  @Test("the old context of a bridge reads large values, which are in files")
  func largeValues() throws {
    let thing = ThingsV1.Thing(name: "a")
    thing.image = Data(repeating: 7, count: 200_000)
    try store.make(ThingsV1.self, [thing])
    Script.stage = .bridge(fromVersion: ThingsV1.self, toVersion: ThingsV2.self) { old, new in
      try new.enumerate(FetchDescriptor<ThingsV2.Thing>()) { thing in
        let before = try old.counterpart(of: thing, as: ThingsV1.Thing.self)
        thing.count = before?.image?.count ?? 0
      }
    }
    try store.migrate(ThingsV1.self, ThingsV2.self)
    #expect(try store.read("SELECT ZCOUNT FROM ZTHING") == ["200000"])
  }

  @Test("the new context of a bridge sets a required property that has no initial value")
  func requiredProperty() throws {
    try store.make(ThingsV1.self, [ThingsV1.Thing(name: "a")])
    Script.stage = .bridge(fromVersion: ThingsV1.self, toVersion: ThingsV3.self) { old, new in
      for thing in try old.fetch(FetchDescriptor<ThingsV1.Thing>()) {
        try new.counterpart(of: thing, as: ThingsV3.Thing.self)?.code = "<\(thing.name)>"
      }
    }
    try store.migrate(ThingsV1.self, ThingsV3.self)
    #expect(try store.read("SELECT ZCODE FROM ZTHING") == ["<a>"])
  }

  @Test("a class of the other version has no counterpart in a context of a bridge")
  func wrongClass() throws {
    try store.make(ThingsV1.self, [ThingsV1.Thing(name: "a")])
    Script.stage = .bridge(fromVersion: ThingsV1.self, toVersion: ThingsV3.self) { old, new in
      for thing in try old.fetch(FetchDescriptor<ThingsV1.Thing>()) {
        _ = try new.counterpart(of: thing, as: ThingsV1.Thing.self)
      }
    }
    #expect(try store.refusal(ThingsV1.self, ThingsV3.self).code == .modelNotInSchema)
  }

  @Test("the counterpart as a class of another model is refused, one of the same hierarchy is not")
  func otherModel() throws {
    try store.make(ShelvesV1.self, [ShelvesV1.Item(size: 1)])
    Script.stage = .bridge(fromVersion: ShelvesV1.self, toVersion: ShelvesV2.self) { old, new in
      for item in try old.fetch(FetchDescriptor<ShelvesV1.Item>()) {
        _ = try new.counterpart(of: item, as: ShelvesV2.Shelf.self)
      }
    }
    let error = try store.refusal(ShelvesV1.self, ShelvesV2.self)
    #expect(error.code == .modelNotInSchema)
    #expect(error.cause.hasSuffix("the counterpart is a model of Item, not of Shelf"), "\(error)")
    let things = try MigratedStore()
    try things.make(
      ThingsV1.self, [ThingsV1.Thing(name: "a"), ThingsV1.Book(name: "b", author: "x")])
    nonisolated(unsafe) var found: [String?] = []
    Script.stage = .bridge(fromVersion: ThingsV1.self, toVersion: ThingsV2.self) { old, new in
      let sorted = FetchDescriptor<ThingsV1.Thing>(sortBy: [SortDescriptor(\.name)])
      for thing in try old.fetch(sorted) {
        found.append(try new.counterpart(of: thing, as: ThingsV2.Book.self)?.name)
      }
    }
    try things.migrate(ThingsV1.self, ThingsV2.self)
    #expect(found == [nil, "b"])
  }

  @Test("a bridge works in ordinary tables")
  func ordinaryTables() throws {
    try store.makeTables(RowNotesV1.tables)
    Script.losses = ["Note.pages"]
    Script.stage = .bridge(fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self) { old, new in
      for note in try old.fetch(FetchDescriptor<RowNotesV1.Note>()) {
        let next = try new.counterpart(of: note, as: RowNotesV3.Note.self)
        next?.content = "\(note.body): \(note.length)"
      }
    }
    try store.migrate(RowNotesV1.self, RowNotesV3.self)
    #expect(try store.notes("content", .plain) == ["one two: 7", "one: 8", "one two  three: 9"])
  }

  @Test("a change through the old context of a bridge is refused", arguments: [true, false])
  func oldIsReadOnly(isSaved: Bool) throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    Script.stage = bridge { old, _ in
      for note in try old.fetch(FetchDescriptor<NotesV1.Note>()) { note.title = "x" }
      if isSaved { try? old.save() }
    }
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.cause.contains("`old` reads a copy of the store"), "\(error)")
    #expect(error.stage == "Bridge (1 of 1), bridge")
  }

  @Test("the new context of a bridge does not delete models of the old one")
  func foreignDeletion() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    Script.stage = bridge { old, new in
      for note in try old.fetch(FetchDescriptor<NotesV1.Note>()) { new.delete(note) }
    }
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.cause.contains("Note 1 belongs to another context"), "\(error)")
    #expect(error.next?.contains("counterpart(of:as:)") == true, "\(error)")
  }

  @Test("the old context of a bridge runs queries and no statement that writes")
  func sql() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    nonisolated(unsafe) var titles: [String] = []
    Script.stage = bridge { old, new in
      titles = try old.sql("SELECT ZBODY FROM ZNOTE ORDER BY Z_PK", as: String.self)
      try new.sql("UPDATE ZNOTE SET ZCONTENT = 'x'")
    }
    try store.migrateNotes(.coredata)
    #expect(titles == ["one two", "one", "one two  three"])
    Script.stage = bridge { old, _ in try old.sql("DELETE FROM ZNOTE") }
    let other = try MigratedStore()
    Script.stage = bridge { old, _ in try old.sql("DELETE FROM ZNOTE") }
    try other.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    #expect(
      try other.refusalOfNotes(.coredata).cause.contains("`old` reads a copy of the store"))
  }

  @Test("an error in the middle of a bridge leaves the store as it was")
  func failure() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    Script.stage = bridge { _, new in
      for note in try new.fetch(FetchDescriptor<NotesV2.Note>()) { note.words = 1 }
      try new.save()
      throw Refusal()
    }
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.stage == "Bridge (1 of 1), bridge")
    #expect(error.cause.contains("Refusal"), "\(error)")
  }

  @Test("the copy for a bridge is beside the clone while the stage runs, and gone afterwards")
  func copyIsRemoved() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("b.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: NotesV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    try container.close()
    nonisolated(unsafe) var during: [String] = []
    let names = { @Sendable in
      try FileManager.default.contentsOfDirectory(
        atPath: URL(filePath: path).deletingLastPathComponent().path)
    }
    Script.stage = bridge { _, _ in during = try names() }
    let connection = try StoreConnection(path: path, durability: .clone)
    let definition = try PlanDefinition(ScriptedPlan<NotesV1, NotesV2>.self)
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
        ) { _ in }
      ], plan: definition.name)
    try connection.close()
    #expect(during.contains("b.before"))
    #expect(try !names().contains("b.before"))
  }

  @Test("contexts outside a bridge have no counterparts")
  func outside() throws {
    try store.makeNotes(.coredata)
    let container = try store.open(NotesV1.self)
    let context = ModelContext(container)
    let note = try #require(try context.fetch(FetchDescriptor<NotesV1.Note>()).first)
    #expect(throws: InstarError.self) {
      try context.counterpart(of: note, as: NotesV1.Note.self)
    }
  }
}

enum ThingsV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Thing.self] }

  @Model final class Thing {
    var name: String
    var code: String
    @Attribute(.externalStorage) var image: Data?
    init(name: String, code: String) { (self.name, self.code) = (name, code) }
  }
}
