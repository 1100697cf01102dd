import GRDB
import Instar
import InstarWire
import Testing

/// What the app, not the models, declares about a column stays where SQLite can keep it, and is refused elsewhere.
@Suite("Columns of ordinary tables that change their type", .serialized)
struct RetypedColumnTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  private static let appCode = [
    "CREATE INDEX by_size ON item (size DESC) WHERE size > 1",
    "CREATE UNIQUE INDEX by_length ON item (length(size), id)",
    "CREATE VIEW sizes AS SELECT size FROM item",
    "CREATE TRIGGER twice AFTER UPDATE OF size ON item BEGIN UPDATE log SET n = n + new.size; END",
  ]

  @Test(
    "columns of ordinary tables that change their type keep constraints, indexes, views and triggers of the app"
  )
  func surroundings() throws {
    try store.makeTables(
      """
      CREATE TABLE log (n); INSERT INTO log VALUES (0);
      CREATE TABLE kind (id REAL PRIMARY KEY); INSERT INTO kind VALUES (5), (6), (8.5), (13);
      CREATE TABLE item (id INTEGER PRIMARY KEY, size INTEGER DEFAULT 7 UNIQUE CHECK (size < 100)
        REFERENCES kind (id), g AS (size * 2), CHECK (size <> 13));
      INSERT INTO item (id, size) VALUES (1, 5), (2, NULL), (3, 6);
      \(Self.appCode.joined(separator: "; "))
      """)
    try store.migrate(SizesV1.self, SizesV2.self)
    #expect(
      try store.read(
        "SELECT sql FROM sqlite_schema WHERE name IN ('by_size', 'by_length', 'sizes', 'twice') ORDER BY name"
      ) == [1, 0, 2, 3].map { Self.appCode[$0] })
    let table = try #require(
      try store.read("SELECT sql FROM sqlite_schema WHERE name = 'item'").first)
    for clause in [
      "size REAL DEFAULT 7 UNIQUE CHECK (size < 100)", "REFERENCES kind (id)",
      "g AS (size * 2)",
      "CHECK (size <> 13)",
    ] { #expect(table.contains(clause), "\(table)") }
    #expect(
      try store.read("SELECT id || ':' || ifnull(size, '-') || typeof(size) FROM item ORDER BY id")
        == ["1:5.0real", "2:-null", "3:6.0real"])
    try store.execute("UPDATE item SET size = 8.5 WHERE id = 1")
    #expect(try store.read("SELECT n FROM log") == ["8.5"])
    #expect(throws: DatabaseError.self) {
      try store.execute("UPDATE item SET size = 8.5 WHERE id = 3")
    }
    #expect(throws: DatabaseError.self) {
      try store.execute("UPDATE item SET size = 13 WHERE id = 3")
    }
  }

  @Test("values that break a kept CHECK are refused, and the plan names each such CHECK")
  func brokenCheck() throws {
    try store.makeTables(
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, size INTEGER CHECK (typeof(size) <> 'real'),
        CHECK (id > 0), CHECK (size <> 13));
      INSERT INTO item VALUES (1, 5)
      """)
    let error = try store.refusal(SizesV1.self, SizesV2.self)
    #expect(error.cause.contains("CHECK constraint failed"), "\(error)")
    #expect(error.next?.contains("whose converted form meets the constraint") == true)
    let statements = try store.plan(SizesV1.self, SizesV2.self).stages[0].planned
      .flatMap(\.statements)
    #expect(
      statements.map(\.comment).contains(
        "copies the rows; the run fails if converted values do not meet "
          + "CHECK (typeof(size) <> 'real') and CHECK (size <> 13)"), "\(statements)")
  }

  @Test("a default that the new type cannot have is refused by plan and run")
  func strangeDefault() throws {
    try store.makeTables(
      "CREATE TABLE item (id INTEGER PRIMARY KEY, size TEXT DEFAULT 'none'); INSERT INTO item VALUES (1, NULL)"
    )
    let run = try store.refusal(TextsV1.self, SizesV2.self)
    let plan = try store.planError(TextsV1.self, SizesV2.self)
    #expect(run.cause.contains("DEFAULT 'none'") && run.code == .needsCustomStage, "\(run)")
    #expect(plan.cause == run.cause)
  }

  @Test("a type change of a primary-key column is refused by plan and run")
  func primaryKey() throws {
    try store.makeTables("CREATE TABLE word (key TEXT PRIMARY KEY); INSERT INTO word VALUES ('a')")
    let run = try store.refusal(WordsV1.self, WordsV2.self)
    let plan = try store.planError(WordsV1.self, WordsV2.self)
    #expect(run.code == .needsCustomStage)
    #expect(
      run.cause.contains("'key' from TEXT to INTEGER, which is part of the primary key"), "\(run)"
    )
    #expect(plan.cause == run.cause)
  }

  @Test("a required column is refused with the number of values that do not convert")
  func required() throws {
    try store.makeTables(
      "CREATE TABLE item (id INTEGER PRIMARY KEY, size REAL NOT NULL); INSERT INTO item VALUES (1, 2), (2, 2.5)"
    )
    let run = try store.refusal(RealsV1.self, WholeV2.self)
    #expect(run.code == .missingRequiredValues)
    #expect(run.cause.contains("1 row of item has no value that converts"), "\(run)")
    try store.execute("DELETE FROM item WHERE id = 2")
    try store.migrate(RealsV1.self, WholeV2.self)
    #expect(try store.read("SELECT size FROM item") == ["2"])
  }

  @Test("a unique column is refused where several rows would get the default")
  func unique() throws {
    try store.makeTables(
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, size TEXT NOT NULL DEFAULT '' UNIQUE);
      INSERT INTO item VALUES (1, 'a'), (2, 'b')
      """)
    let run = try store.refusal(UniqueV1.self, UniqueV2.self)
    #expect(run.code == .duplicateUniqueValues)
    #expect(
      run.cause.contains("2 rows of item") && run.cause.contains("initial value 0"), "\(run)")
    #expect(run.next?.contains("optional property in one version") == true)
  }

  @Test(
    "columns that change their type take over JSON in text and bytes that the new type decodes",
    arguments: ["TEXT", "BLOB"])
  func json(type: String) throws {
    try store.makeTables(
      """
      CREATE TABLE item (id INTEGER PRIMARY KEY, size \(type));
      INSERT INTO item VALUES (1, CAST('["a","b"]' AS \(type))), (2, NULL), (3, CAST('[]' AS \(type)))
      """)
    if type == "TEXT" {
      try store.migrate(TextsV1.self, ListsV2.self)
    } else {
      try store.migrate(BytesV1.self, ListsV2.self)
    }
    #expect(
      try store.read("SELECT ifnull(size, '-') || typeof(size) FROM item ORDER BY id")
        == [#"["a","b"]text"#, "-null", "[]text"])
  }

  @Test(
    "columns keep their values if a key becomes a relationship, or a relationship a key",
    arguments: [true, false])
  func keptColumn(becomesRelationship: Bool) throws {
    let reference = becomesRelationship ? "" : " REFERENCES owner (id) ON DELETE SET NULL"
    try store.makeTables(
      """
      CREATE TABLE owner (id INTEGER PRIMARY KEY); INSERT INTO owner VALUES (1), (2);
      CREATE TABLE item (id INTEGER PRIMARY KEY, owner_id INTEGER\(reference));
      INSERT INTO item VALUES (1, 2), (2, NULL), (3, 1)
      """)
    Script.isLightweight = true
    if becomesRelationship {
      try store.migrate(KeysV1.self, LinksV2.self)
    } else {
      try store.migrate(LinksV1.self, KeysV2.self)
    }
    #expect(
      try store.read("SELECT ifnull(owner_id, '-') FROM item ORDER BY id") == ["2", "-", "1"])
    let table = try #require(
      try store.read("SELECT sql FROM sqlite_schema WHERE name = 'item'").first)
    #expect(table.contains("REFERENCES owner") == becomesRelationship, "\(table)")
    #expect(try store.notes.isEmpty)
  }

  // MARK: Models

  enum SizesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum SizesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: Double?
      init(id: Int) { self.id = id }
    }
  }

  enum TextsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: String?
      init(id: Int) { self.id = id }
    }
  }

  enum BytesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: Data?
      init(id: Int) { self.id = id }
    }
  }

  enum ListsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: [String]?
      init(id: Int) { self.id = id }
    }
  }

  enum RealsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: Double
      init(id: Int) { (self.id, size) = (id, 0) }
    }
  }

  enum WholeV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var size: Int
      init(id: Int) { (self.id, size) = (id, 0) }
    }
  }

  enum UniqueV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      @Attribute(.unique) var size: String = ""
      init(id: Int) { self.id = id }
    }
  }

  enum UniqueV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      @Attribute(.unique) var size: Int = 0
      init(id: Int) { self.id = id }
    }
  }

  enum WordsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Word.self] }

    @Table("word")
    @Model
    final class Word {
      @Column(.primaryKey) var key: String
      init(key: String) { self.key = key }
    }
  }

  enum WordsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Word.self] }

    @Table("word")
    @Model
    final class Word {
      @Column(.primaryKey) var key: Int
      init(key: Int) { self.key = key }
    }
  }

  enum KeysV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Item.self] }

    @Table("owner")
    @Model
    final class Owner {
      var id: Int
      init(id: Int) { self.id = id }
    }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      @Column("owner_id") var ownerID: Int?
      init(id: Int) { self.id = id }
    }
  }

  enum LinksV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Item.self] }

    @Table("owner")
    @Model
    final class Owner {
      var id: Int
      init(id: Int) { self.id = id }
    }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var owner: Owner?
      init(id: Int) { self.id = id }
    }
  }

  enum LinksV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Item.self] }

    @Table("owner")
    @Model
    final class Owner {
      var id: Int
      init(id: Int) { self.id = id }
    }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      @Column("owner_id") var owner: Owner?
      init(id: Int) { self.id = id }
    }
  }

  enum KeysV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Owner.self, Item.self] }

    @Table("owner")
    @Model
    final class Owner {
      var id: Int
      init(id: Int) { self.id = id }
    }

    @Table("item")
    @Model
    final class Item {
      var id: Int
      var ownerId: Int?
      init(id: Int) { self.id = id }
    }
  }
}
