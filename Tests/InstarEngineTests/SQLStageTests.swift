import Foundation
import Instar
import InstarModel
import InstarSchema
import InstarWire
import Testing

@Suite("SQL in stages", .serialized)
struct SQLStageTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  @Test("interpolated values are bound, whatever they contain")
  func interpolation() {
    let name = "'; DROP TABLE note; --"
    let sql: InstarModel.SQL =
      "UPDATE note SET title = \(name) WHERE id IN \(list: [1, 2]) AND done = \(true)"
    #expect(
      sql.text
        == "UPDATE note SET title = ? WHERE id IN (?, ?) AND done = ?")
    #expect(
      sql.arguments == [
        .text("'; DROP TABLE note; --"), .integer(1), .integer(2), .integer(1),
      ])
  }

  @Test(
    "statements run before and after the change of schema, with the names of each side",
    arguments: [StoreFormat.coredata, .plain])
  func beforeAndAfter(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.losses = ["Note.pages"]
    let suffix = "'s \"x\""
    Script.stage =
      format == .plain
      ? .sql(
        fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self, label: "Trim",
        before: ["UPDATE note SET body = body || \(suffix) WHERE length > \(7)"],
        after: ["UPDATE note SET content = upper(content)", "DELETE FROM note WHERE id = \(5)"])
      : .sql(
        fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "Trim",
        before: ["UPDATE ZNOTE SET ZBODY = ZBODY || \(suffix) WHERE ZLENGTH > \(7)"],
        after: [
          "UPDATE ZNOTE SET ZCONTENT = upper(ZCONTENT)", "DELETE FROM ZNOTE WHERE Z_PK = \(3)",
        ])
    if format == .plain {
      try store.migrate(RowNotesV1.self, RowNotesV3.self)
    } else {
      try store.migrateNotes(format)
    }
    #expect(try store.notes("content", format) == ["ONE TWO", "ONE'S \"X\""])
  }

  @Test("the plan shows the statements in the order in which they run, and what they are for")
  func plan() throws {
    try store.makeNotes(.coredata)
    Script.stage = .sql(
      fromVersion: NotesV1.self, toVersion: NotesV2.self,
      before: ["UPDATE ZNOTE SET ZBODY = \("x")"], after: ["UPDATE ZNOTE SET ZCONTENT = 'y'"])
    let plan = try store.plan(NotesV1.self, NotesV2.self)
    #expect(plan.stages[0].kind == .sql)
    #expect(plan.stages[0].statements.first == "UPDATE ZNOTE SET ZBODY = ?")
    #expect(plan.stages[0].statements.last == "UPDATE ZNOTE SET ZCONTENT = 'y'")
    let change = try #require(
      plan.stages[0].planned.first { $0.reason.hasPrefix("runs SQL of the plan before") })
    #expect(change.table == "ZNOTE")
    #expect(change.statements.map(\.comment) == ["statement 1 of 1 before the change of schema"])
  }

  @Test(
    "a plan shows bound values in the statements of a stage, and each statement that the run executes, in its order",
    arguments: [StoreFormat.coredata, .plain])
  func planEqualsRun(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.losses = ["Note.pages"]
    Script.stage =
      format == .plain
      ? .sql(
        fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self,
        before: ["UPDATE note SET body = \("x")", "DELETE FROM note WHERE id = \(5)"],
        after: ["UPDATE note SET content = 'y'"])
      : .sql(
        fromVersion: NotesV1.self, toVersion: NotesV2.self,
        before: ["UPDATE ZNOTE SET ZBODY = \("x")", "DELETE FROM ZNOTE WHERE Z_PK = \(3)"],
        after: ["UPDATE ZNOTE SET ZCONTENT = 'y'"])
    let (planned, executed) =
      try format == .plain
      ? store.statements(RowNotesV1.self, RowNotesV3.self)
      : store.statements(NotesV1.self, NotesV2.self)
    #expect(executed == planned)
    #expect(planned.count(where: { $0.contains("= ?") }) == 2 && planned.count > 3)
  }

  @Test("a value that a statement writes after the change of schema counts as written")
  func written() throws {
    try store.makeNotes(.coredata)
    Script.stage = .sql(
      fromVersion: NotesV1.self, toVersion: NotesV2.self,
      after: ["UPDATE ZNOTE SET ZPAGES = \(3)"])
    try store.migrateNotes(.coredata)
    #expect(try store.notes("pages", .coredata) == ["3", "3", "3"])
  }

  @Test("a statement that fails leaves the store as it was, and the error names it")
  func failure() throws {
    try store.makeNotes(.coredata)
    Script.stage = .sql(
      fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "Fill",
      before: ["UPDATE ZNOTE SET ZBODY = 'gone'", "UPDATE ZNOTE SET ZBDY = \("x")"])
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.code == .sqlFailed)
    #expect(error.cause.contains("statement 2 of 2 before the change of schema"), "\(error)")
    #expect(error.cause.contains("no such column: ZBDY"), "\(error)")
    #expect(error.cause.contains("UPDATE ZNOTE SET ZBDY = ?"), "\(error)")
  }

  @Test(
    "a statement may only change rows of the app",
    arguments: [
      ("ALTER TABLE ZNOTE ADD COLUMN x", "does not begin with"),
      ("DROP TABLE ZNOTE", "does not begin with"), ("PRAGMA user_version = 3", "does not begin"),
      ("ATTACH 'x' AS y", "does not begin with"), ("VACUUM", "does not begin with"),
      ("COMMIT", "does not begin with"), ("", "does not begin with"),
      ("UPDATE ZNOTE SET ZBODY = ''; COMMIT", "more than one statement"),
      ("UPDATE ZNOTE SET ZBODY = ?", "1 parameters and 0 arguments"),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 0", "only Core Data maintains"),
      ("DELETE FROM Z_METADATA", "only Core Data maintains"),
      ("UPDATE ZNOTE SET Z_PK = Z_PK + 1", "identifies a row for Core Data"),
      ("UPDATE ZNOTE SET rowid = 7", "identifies a row for Core Data"),
      ("UPDATE ZNOTE SET Z_ENT = 2", "identifies a row for Core Data"),
      ("UPDATE ZNOTE SET Z_OPT = 5", "Core Data counts the saves of a row"),
      // The empty store, on which a plan is checked, has no history.
      ("DELETE FROM ACHANGE", "ACHANGE"),
      ("INSERT INTO ZNOTE (ZBODY) VALUES ('')", "insert models"),
      ("UPDATE sqlite_schema SET sql = ''", "sqlite"),
      ("SELECT * FROM ZNOTE", "writes nothing"),
    ])
  func refused(sql: String, reason: String) throws {
    try store.makeNotes(.coredata)
    Script.stage = .sql(
      fromVersion: NotesV1.self, toVersion: NotesV2.self,
      before: [InstarModel.SQL(stringLiteral: sql)])
    let error = try store.refusalOfNotes(.coredata)
    #expect("\(error)".contains(reason), "\(error)")
    let planned = try store.planError(NotesV1.self, NotesV2.self)
    #expect("\(planned)".contains(reason), "\(planned)")
  }

  @Test(
    "a statement cannot write the table with the version of the store, neither as a stage nor in a closure",
    arguments: ["INSERT INTO Store_Version VALUES ('9.0.0')", "DELETE FROM store_version"])
  func versionTable(sql: String) throws {
    try store.makeNotes(.plain)
    try store.execute(
      "CREATE TABLE store_version (version TEXT); INSERT INTO store_version VALUES ('1.0.0')")
    Script.versionSource = .table("store_version", column: "version")
    Script.losses = ["Note.pages"]
    let statement = InstarModel.SQL(stringLiteral: sql)
    Script.stage = .sql(
      fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self, after: [statement])
    let reason = "where the plan keeps the version of the store"
    // On the tables of the store; a container checks its plan on those of the models first.
    #expect(try store.planError(RowNotesV1.self, RowNotesV3.self).cause.contains(reason))
    Script.stage = nil
    Script.didMigrate = { _ = try $0.sql(statement) }
    #expect(try store.refusal(RowNotesV1.self, RowNotesV3.self).cause.contains(reason))
    Script.didMigrate = { _ = try $0.sql("SELECT version FROM store_version", as: String.self) }
    try store.migrate(RowNotesV1.self, RowNotesV3.self)
    #expect(try store.read("SELECT version FROM store_version") == ["3.0.0"])
  }

  @Test("a run ends before the cutover where the table with the version has several rows")
  func severalVersions() throws {
    try store.makeNotes(.plain)
    // As a hostile or mistaken app may do: a trigger inserts what no statement of the plan names.
    try store.execute(
      """
      CREATE TABLE store_version (version TEXT); INSERT INTO store_version VALUES ('1.0.0');
      CREATE TRIGGER t AFTER UPDATE ON note BEGIN INSERT INTO store_version VALUES ('9'); END
      """)
    Script.versionSource = .table("store_version", column: "version")
    Script.losses = ["Note.pages"]
    Script.stage = .sql(
      fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self,
      after: ["UPDATE note SET content = upper(content) WHERE id = 1"])
    let error = try store.refusal(RowNotesV1.self, RowNotesV3.self)
    #expect(error.code == .verificationFailed)
    #expect(error.cause.contains("table 'store_version' has 2 rows"))
  }

  @Test(
    "a value that is not of its property's type ends the run, with the rows",
    arguments: [StoreFormat.coredata, .plain], [false, true])
  func wrongValues(format: StoreFormat, isInClosure: Bool) throws {
    try store.makeNotes(format)
    Script.losses = ["Note.pages"]
    let sql: InstarModel.SQL =
      format == .plain
      ? "UPDATE note SET title = x'00' WHERE id > 1"
      : "UPDATE ZNOTE SET ZSECONDS = 'abc' WHERE Z_PK > 1"
    if isInClosure {
      Script.didMigrate = { context in try context.sql(sql) }
    } else {
      Script.stage =
        format == .plain
        ? .sql(fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self, after: [sql])
        : .sql(fromVersion: NotesV1.self, toVersion: NotesV2.self, after: [sql])
    }
    let error =
      try format == .plain
      ? store.refusal(RowNotesV1.self, RowNotesV3.self) : store.refusalOfNotes(format)
    #expect(error.code == .verificationFailed)
    #expect(
      error.cause
        == (format == .plain
          ? "2 rows of Note have a value of 'title' that is not of its type, String: rows 2, 5"
          : "2 rows of Note have a value of 'seconds' that is not of its type, Int: rows 2, 3"))
  }

  @Test("values of another type that the store had before may stay, but not become more")
  func wrongValuesBefore() throws {
    try store.makeTables(
      "\(RowNotesV1.tables); UPDATE note SET title = x'00' WHERE id = 2")
    Script.losses = ["Note.pages"]
    func stage(_ sql: InstarModel.SQL) -> MigrationStage {
      .sql(fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self, after: [sql])
    }
    Script.stage = stage("UPDATE note SET title = x'00' WHERE id = 5")
    let error = try store.refusal(RowNotesV1.self, RowNotesV3.self)
    #expect(error.cause.hasSuffix("rows 2, 5; before the run 1 had"), "\(error)")
    Script.stage = stage("UPDATE note SET title = 'x' WHERE id = 5")
    try store.migrate(RowNotesV1.self, RowNotesV3.self)
    #expect(
      try store.read("SELECT typeof(title) FROM note ORDER BY id") == ["text", "blob", "text"])
  }

  @Test("derived attributes follow the rows that a statement changes")
  func derivedAttributes() throws {
    let shelf = ShelvesV1.Shelf(name: "a")
    let items = (1...3).map { ShelvesV1.Item(size: $0) }
    items.forEach { $0.shelf = shelf }
    try store.make(ShelvesV1.self, [shelf] + items)
    #expect(try store.read("SELECT ZITEMCOUNT FROM ZSHELF") == ["3"])
    Script.stage = .sql(
      fromVersion: ShelvesV1.self, toVersion: ShelvesV2.self,
      before: ["DELETE FROM ZITEM WHERE ZSIZE = \(1)"],
      after: ["UPDATE ZITEM SET ZSHELF = NULL WHERE ZSIZE = \(2)"])
    try store.migrate(ShelvesV1.self, ShelvesV2.self)
    #expect(try store.read("SELECT ZITEMCOUNT FROM ZSHELF") == ["1"])
  }

  @Test(
    "a plan shows a deletion by a stage, and each statement that the run executes, in its order",
    arguments: [StoreFormat.coredata, .plain])
  func statements(format: StoreFormat) throws {
    try store.makeNotes(format)
    Script.stage =
      format == .plain
      ? .sql(
        fromVersion: RowNotesV1.self, toVersion: RowNotesV3.self,
        before: ["DELETE FROM note WHERE id = \(2)"], after: ["UPDATE note SET title = \("x")"])
      : .sql(
        fromVersion: NotesV1.self, toVersion: NotesV2.self,
        before: ["DELETE FROM ZNOTE WHERE Z_PK = \(2)"],
        after: ["UPDATE ZNOTE SET ZTITLE = \("x")"])
    let (planned, executed) =
      try format == .plain
      ? store.statements(RowNotesV1.self, RowNotesV3.self)
      : store.statements(NotesV1.self, NotesV2.self)
    #expect(executed == planned)
    #expect(planned.contains { $0.hasPrefix("DELETE FROM") } && planned.count > 2)
  }

  @Test("a closure runs statements, which see its pending changes, and its models see theirs")
  func closure() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    nonisolated(unsafe) var rows: [(String, Int?)] = []
    nonisolated(unsafe) var changed = 0
    nonisolated(unsafe) var read = ""
    Script.didMigrate = { context in
      let notes = try context.fetch(
        FetchDescriptor<NotesV2.Note>(sortBy: [SortDescriptor(\.title)]))
      notes[0].words = 5
      changed = try context.sql("UPDATE ZNOTE SET ZHEADING = ZTITLE || \("!") WHERE ZWORDS = \(5)")
      read = notes[0].heading
      rows = try context.sql(
        "SELECT ZHEADING, ZPAGES FROM ZNOTE ORDER BY Z_PK", as: String.self, Int?.self)
    }
    try store.migrateNotes(.coredata)
    #expect(changed == 1)
    #expect(read == "a!")
    #expect(rows.map(\.0) == ["a!", "", ""])
    #expect(rows.map(\.1) == [nil, nil, nil])
    #expect(try store.notes("heading", .coredata) == ["a!", "", ""])
  }

  @Test("an error of a statement ends the run, also if the closure ignores it")
  func ignoredError() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    Script.didMigrate = { context in _ = try? context.sql("UPDATE absent SET x = 1") }
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.cause.contains("no such table: absent"), "\(error)")
    #expect(error.cause.contains("ignored this error"), "\(error)")
  }

  @Test("a value of another type than the query names is an error")
  func wrongType() throws {
    try store.makeNotes(.coredata)
    Script.losses = ["Note.pages"]
    Script.didMigrate = { context in
      _ = try context.sql("SELECT ZTITLE FROM ZNOTE", as: Int.self)
    }
    let error = try store.refusalOfNotes(.coredata)
    #expect(error.cause.contains("column 1 has a value, which is not a Int"), "\(error)")
  }

  @Test("an app's own context runs no SQL")
  func outsideOfStages() throws {
    try store.makeNotes(.coredata)
    let container = try store.open(NotesV1.self)
    let error = #expect(throws: InstarError.self) {
      try ModelContext(container).sql("DELETE FROM ZNOTE")
    }
    #expect(error?.code == .unsupported)
    #expect(try store.notes("title", .coredata).count == 3)
  }
}

/// Without required columns that statements could not fill in time.
enum RowNotesV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Table("note")
  @Model final class Note {
    var id: Int
    var title: String
    @Attribute(originalName: "body") var content: String
    var made: Date?
    init(id: Int, title: String, content: String) {
      (self.id, self.title, self.content) = (id, title, content)
    }
  }
}

enum ShelvesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Item.self] }

  @Model final class Shelf {
    var name: String
    @Attribute(.derived("count:(items)")) var itemCount: Int?
    @Relationship(inverse: \Item.shelf) var items: [Item] = []
    init(name: String) { self.name = name }
  }

  @Model final class Item {
    var size: Int
    var shelf: Shelf?
    init(size: Int) { self.size = size }
  }
}

enum ShelvesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Item.self] }

  @Model final class Shelf {
    var name: String
    @Attribute(.derived("count:(items)")) var itemCount: Int?
    @Relationship(inverse: \Item.shelf) var items: [Item] = []
    init(name: String) { self.name = name }
  }

  @Model final class Item {
    var size: Int
    var weight: Int?
    var shelf: Shelf?
    init(size: Int) { self.size = size }
  }
}
