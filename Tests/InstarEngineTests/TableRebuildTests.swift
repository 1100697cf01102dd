import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import Testing

private enum StallV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self, Sale.self] }

  @Table("ware")
  @Model final class Ware {
    var id: Int
    var name: String
    @Column(.encoding(.unixSeconds)) var made: Date?
    var note: String?
    @Relationship(deleteRule: .noAction, inverse: \Sale.ware) var sales: [Sale] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("sale")
  @Model final class Sale {
    var id: Int
    @Column(.encoding(.unixSeconds)) var sold: Date?
    var ware: Ware?
    init(id: Int) { self.id = id }
  }
}

/// Dates are text, which needs a rebuild of both tables; 'note' is removed.
private enum StallV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self, Sale.self] }

  @Table("ware")
  @Model final class Ware {
    var id: Int
    var name: String
    var made: Date?
    @Relationship(deleteRule: .noAction, inverse: \Sale.ware) var sales: [Sale] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("sale")
  @Model final class Sale {
    var id: Int
    var sold: Date?
    var ware: Ware?
    init(id: Int) { self.id = id }
  }
}

private enum StallPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [StallV1.self, StallV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: StallV1.self, toVersion: StallV2.self)]
  }
}

@Suite("Rebuilding ordinary tables")
struct TableRebuildTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.db")
  }

  /// Runs SQL on the store, and gives the first column of its last statement.
  @discardableResult
  private func run(_ sql: String, _ query: String? = nil) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { db in
      do {
        try db.execute(sql: sql)
      } catch {
        if db.isInsideTransaction { try db.rollback() }
        throw error
      }
      return try query.map { try String.fetchAll(db, sql: $0) } ?? []
    }
  }

  /// Every object of the store, without its root page.
  private func objects() throws -> [String: String] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { db in
      let rows = try Row.fetchAll(
        db,
        sql: "SELECT name, type || ' ' || tbl_name || ': ' || ifnull(sql, '-') FROM sqlite_schema")
      return Dictionary(
        rows.map { ($0[0] as String, $0[1] as String) }, uniquingKeysWith: { first, _ in first })
    }
  }

  private func migrate() throws {
    let definition = try PlanDefinition(StallPlan.self)
    let connection = try StoreConnection(path: path, durability: .clone)
    defer { try? connection.close() }
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
        ) { _ in }
      ],
      plan: definition.name)
  }

  private static let sale = """
    CREATE TABLE sale (id INTEGER PRIMARY KEY, ware_id INTEGER REFERENCES ware (id), sold INTEGER);
    """

  @Test("the statistics of ANALYZE stay for the planner")
  func statistics() throws {
    let query = "SELECT tbl || ' ' || ifnull(idx, '-') || ' ' || stat FROM sqlite_stat1 ORDER BY 1"
    let before = try run(
      """
      CREATE TABLE ware (id INTEGER PRIMARY KEY, name TEXT NOT NULL, made INTEGER, note TEXT);
      CREATE INDEX by_name ON ware (name);
      INSERT INTO ware (name) VALUES ('nut'), ('bolt'), ('bolt');
      \(Self.sale)
      ANALYZE;
      """, query)
    #expect(before == ["ware by_name 3 2"])
    try migrate()
    #expect(try run("", query) == before)
  }

  @Test("everything that no model describes keeps its SQL, and works")
  func surroundings() throws {
    try run(
      """
      PRAGMA foreign_keys = OFF;
      CREATE TABLE ware (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, made INTEGER, note TEXT,
        parent_id INTEGER REFERENCES ware (id) ON DELETE CASCADE, -- no model describes it
        letters INTEGER GENERATED ALWAYS AS (length(name)) VIRTUAL, loud TEXT AS (upper(name)) STORED,
        CHECK (length(name) > 1));
      CREATE TABLE sale (
        id INTEGER PRIMARY KEY, ware_id INTEGER REFERENCES ware (id) DEFERRABLE INITIALLY DEFERRED,
        sold INTEGER) STRICT;
      INSERT INTO sale VALUES (1, 3, 1700000001), (5, NULL, NULL);
      CREATE TABLE tag (
        ware INTEGER REFERENCES ware (id), word TEXT, PRIMARY KEY (ware, word)) WITHOUT ROWID;
      CREATE TABLE log (what TEXT);
      CREATE INDEX by_letters ON ware (length(name), parent_id DESC) WHERE made IS NOT NULL;
      CREATE VIEW named AS SELECT id, name FROM ware;
      CREATE VIEW sold AS SELECT n.name, s.sold FROM named AS n JOIN sale AS s ON s.ware_id = n.id;
      CREATE TRIGGER name_it INSTEAD OF INSERT ON named
        BEGIN INSERT INTO ware (name) VALUES (new.name); END;
      CREATE TRIGGER sell AFTER INSERT ON sale
        BEGIN UPDATE ware SET name = name || '!' WHERE id = new.ware_id; END;
      CREATE TRIGGER resold AFTER UPDATE OF name ON ware
        BEGIN INSERT INTO log SELECT old.name || '>' || new.name || count(*) FROM sale; END;
      CREATE VIRTUAL TABLE words USING fts5 (name, content = 'ware', content_rowid = 'id');
      CREATE TRIGGER words_in AFTER INSERT ON ware
        BEGIN INSERT INTO words (rowid, name) VALUES (new.id, new.name); END;
      CREATE TRIGGER words_out AFTER DELETE ON ware
        BEGIN INSERT INTO words (words, rowid, name) VALUES ('delete', old.id, old.name); END;
      CREATE TRIGGER words_other AFTER UPDATE ON ware BEGIN
        INSERT INTO words (words, rowid, name) VALUES ('delete', old.id, old.name);
        INSERT INTO words (rowid, name) VALUES (new.id, new.name);
      END;
      CREATE VIRTUAL TABLE places USING rtree (id, low, high);
      CREATE TRIGGER place AFTER INSERT ON ware
        BEGIN INSERT INTO places VALUES (new.id, new.id, new.id + 1); END;
      INSERT INTO ware (id, name, made, parent_id)
        VALUES (3, 'nut', 1700000000, NULL), (8, 'bolt', NULL, 3), (9, 'washer', 1700000000, 8);
      INSERT INTO tag VALUES (3, 'steel'), (8, 'brass');
      """)
    let before = try objects()
    try migrate()
    let after = try objects()
    let tables: Set<String> = ["ware", "sale"]
    for (name, text) in before where !tables.contains(name) {
      #expect(after[name] == text, "\(name)")
    }
    #expect(Set(after.keys) == Set(before.keys))
    #expect(
      after["ware"]
        == before["ware"]?.replacing("TABLE ware", with: "TABLE \"ware\"")
        .replacing("made INTEGER, note TEXT", with: "made TEXT"))
    #expect(
      after["sale"]
        == before["sale"]?.replacing("TABLE sale", with: "TABLE \"sale\"")
        .replacing("sold INTEGER)", with: "sold TEXT)"))
    #expect(
      try run("", "SELECT id || loud || letters || ifnull(made, '-') FROM ware ORDER BY id") == [
        "3NUT32023-11-14T22:13:20.000Z", "8BOLT4-", "9WASHER62023-11-14T22:13:20.000Z",
      ])
    #expect(
      try run(
        """
        INSERT INTO named (name) VALUES ('screw');
        INSERT INTO sale (ware_id) VALUES (8);
        """, "SELECT what FROM log") == ["bolt>bolt!3"])
    #expect(try run("", "SELECT name FROM sold ORDER BY name") == ["bolt!", "nut"])
    #expect(
      try run(
        "INSERT INTO words (words) VALUES ('integrity-check')",
        "SELECT rowid FROM words ('screw OR nut')")
        == ["3", "10"])
    #expect(try run("", "SELECT id FROM places WHERE high > 9 ORDER BY id") == ["9", "10"])
    // Deferred: at the end of the transaction, not before.
    #expect(throws: (any Error).self) {
      try run(
        """
        PRAGMA foreign_keys = ON; BEGIN; INSERT INTO sale (id, ware_id) VALUES (77, 4711);
        SELECT 1; COMMIT;
        """)
    }
    #expect(
      try run(
        """
        PRAGMA foreign_keys = ON; DELETE FROM sale; DELETE FROM tag;
        BEGIN; INSERT INTO sale (id, ware_id) VALUES (77, 4711); DELETE FROM sale; COMMIT;
        DELETE FROM ware WHERE id = 3;
        """, "SELECT name FROM ware") == ["screw"])
    #expect(throws: (any Error).self) { try run("UPDATE ware SET name = 'x'") }
    #expect(throws: (any Error).self) { try run("INSERT INTO sale (sold) VALUES (x'00')") }
  }

  @Test("a table that is called as one is meanwhile is left alone")
  func sameNames() throws {
    try run(
      """
      CREATE TABLE ware (id INTEGER PRIMARY KEY, name TEXT NOT NULL, made INTEGER, note TEXT);
      CREATE TABLE Instar_New_ware (x); INSERT INTO Instar_New_ware VALUES (1);
      CREATE VIEW instar_new_ware_2 AS SELECT x FROM Instar_New_ware;
      """ + Self.sale)
    let before = try objects()
    try migrate()
    #expect(try objects()["Instar_New_ware"] == before["Instar_New_ware"])
    #expect(try run("", "SELECT x FROM instar_new_ware_2") == ["1"])
  }

  @Test("constraints go one by one, also where no commas are between them")
  func withoutCommas() throws {
    try run(
      """
      CREATE TABLE ware (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, made INTEGER, note TEXT, code TEXT,
        CONSTRAINT "UNIQUE" CHECK (length(name) > 1)
        UNIQUE (code, note) ON CONFLICT IGNORE CHECK (code <> 'x')
        CONSTRAINT c UNIQUE ('code')/* last */FOREIGN KEY (code) REFERENCES ware (code));
      INSERT INTO ware (id, name, code) VALUES (1, 'nut', 'n');
      """ + Self.sale)
    try migrate()
    #expect(
      try objects()["ware"] == """
        table ware: CREATE TABLE "ware" (
          id INTEGER PRIMARY KEY, name TEXT NOT NULL, made TEXT, code TEXT,
          CONSTRAINT "UNIQUE" CHECK (length(name) > 1), CHECK (code <> 'x'),
          CONSTRAINT c UNIQUE ('code'),/* last */FOREIGN KEY (code) REFERENCES ware (code))
        """)
    for sql in [
      "UPDATE ware SET name = 'n'", "UPDATE ware SET code = 'x'",
      "INSERT INTO ware (name, code) VALUES ('bolt', 'n')",
    ] {
      #expect(throws: (any Error).self, "\(sql)") { try run(sql) }
    }
  }

  @Test("names in quotes of any kind are names, whatever they say")
  func quotedNames() throws {
    try run(
      """
      CREATE TABLE 'ware' (
        'id' INTEGER PRIMARY KEY, [name] "TEXT" NOT NULL, `made` INTEGER, note TEXT,
        "unique" TEXT, "check" TEXT DEFAULT 'unique, (', 'primary' INTEGER,
        CONSTRAINT [FOREIGN] CHECK ("unique" <> 'note'));
      INSERT INTO ware (id, name, "unique", "primary") VALUES (7, 'nut', 'u', 2);
      """ + Self.sale)
    try migrate()
    #expect(
      try objects()["ware"] == """
        table ware: CREATE TABLE "ware" (
          'id' INTEGER PRIMARY KEY, [name] "TEXT" NOT NULL, `made` TEXT,
          "unique" TEXT, "check" TEXT DEFAULT 'unique, (', 'primary' INTEGER,
          CONSTRAINT [FOREIGN] CHECK ("unique" <> 'note'))
        """)
    #expect(
      try run("", "SELECT id || name || \"unique\" || \"check\" || \"primary\" FROM ware")
        == ["7nutuunique, (2"])
  }

  @Test("columns that are called as generated ones are declared keep their values")
  func namesOfGeneratedColumns() throws {
    try run(
      """
      CREATE TABLE ware (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, made INTEGER, note TEXT,
        generated INTEGER, always TEXT, virtual, stored INTEGER NOT NULL,
        "as" NUMERIC (3) DEFAULT 1,
        long INTEGER GENERATED ALWAYS AS (length(name)), short AS/* so */(generated + 1) STORED);
      INSERT INTO ware (id, name, generated, always, virtual, stored, "as")
        VALUES (7, 'nut', 1, 'a', 2, 3, 4);
      """ + Self.sale)
    try migrate()
    #expect(
      try run(
        "",
        """
        SELECT name || generated || always || virtual || stored || "as" || long || short FROM ware
        """)
        == ["nut1a23432"])
  }

  @Test(
    "rows keep the numbers that only SQLite knows them by",
    arguments: [
      "id INTEGER PRIMARY KEY DESC", "id INT PRIMARY KEY", "id INTEGER (8) PRIMARY KEY",
      "id INTEGER PRIMARY KEY", "id \"INTEGER\" PRIMARY KEY",
    ])
  func rowIDs(_ key: String) throws {
    try run(
      """
      CREATE TABLE ware (\(key), name TEXT NOT NULL, made INTEGER, note TEXT);
      INSERT INTO ware (rowid, name) VALUES (5, 'nut'); INSERT INTO ware (rowid, name) VALUES (9, 'bolt');
      UPDATE ware SET id = CASE name WHEN 'nut' THEN 5 ELSE 9 END;
      """ + Self.sale)
    try migrate()
    #expect(try run("", "SELECT rowid || name FROM ware ORDER BY rowid") == ["5nut", "9bolt"])
  }
}
