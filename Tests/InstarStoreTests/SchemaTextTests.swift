import GRDB
import InstarStore
import Testing

@Suite("The text of a store's schema")
struct SchemaTextTests {
  private static let schema = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL DEFAULT '' COLLATE NOCASE,
      folder INTEGER REFERENCES folder (id), CHECK (length(title) < 9));
    CREATE TABLE folder (id INTEGER PRIMARY KEY);
    CREATE INDEX by_title ON note (title);
    CREATE TRIGGER kept AFTER DELETE ON folder BEGIN SELECT 1; END;
    CREATE VIEW titles AS SELECT title FROM note;
    """

  private func text(_ change: String = "") throws -> SchemaText {
    try DatabaseQueue().writeWithoutTransaction { db in
      try db.execute(sql: Self.schema)
      if !change.isEmpty {
        try db.execute(sql: "PRAGMA writable_schema = ON; \(change); PRAGMA writable_schema = OFF")
      }
      return try SchemaText(db)
    }
  }

  @Test("equal schemas do not differ")
  func equal() throws {
    #expect(try text().differences(from: text()).isEmpty)
  }

  @Test("while the schema of one connection is unchanged, others see their own")
  func unchanged() throws {
    func names(_ db: Database) throws -> [String] { try SchemaText(db).objects.map(\.name) }
    try DatabaseQueue().writeWithoutTransaction { db in
      try db.execute(sql: "CREATE TABLE note (id)")
      try UnchangedSchema().use(db) {
        #expect(try names(db) == ["note"])
        try DatabaseQueue().writeWithoutTransaction { other in
          #expect(try names(other).isEmpty)
          #expect(try UnchangedSchema().use(other) { try names(other) }.isEmpty)
          try other.execute(sql: "CREATE TABLE folder (id)")
          #expect(try names(other) == ["folder"])
        }
        #expect(try names(db) == ["note"])
      }
      try db.execute(sql: "CREATE TABLE tag (id)")
      #expect(try UnchangedSchema().use(db) { try names(db) } == ["note", "tag"])
    }
  }

  @Test(
    "each thing that a worker could leave is named",
    arguments: [
      ("replace(sql, 'NOCASE', 'german')", "table 'note' has '…"),
      ("replace(sql, 'NOT NULL', 'NOT NULL ON CONFLICT REPLACE')", "NOT NULL ON CONFLICT REPLACE"),
      ("replace(sql, 'length(title) < 9', '0')", "CHECK (0)"),
      ("replace(sql, 'folder (id)', 'folder (id) ON DELETE CASCADE')", "ON DELETE CASCADE"),
      ("replace(sql, 'DEFAULT ''''', 'DEFAULT ''x''')", "DEFAULT 'x'"),
      ("replace(sql, 'folder INTEGER', 'folder TEXT')", "folder TEXT"),
      ("replace(sql, ', CHECK', ', g AS (1), CHECK')", "g AS (1)"),
      ("sql || ' STRICT'", "STRICT"),
    ])
  func changedTable(expression: String, found: String) throws {
    let differences = try text(
      "UPDATE sqlite_schema SET sql = \(expression) WHERE name = 'note'"
    ).differences(from: text())
    #expect(differences.count == 1)
    #expect(differences.first?.contains(found) == true, "\(differences)")
  }

  @Test(
    "objects that are new, missing or listed twice are named",
    arguments: [
      (
        "CREATE TRIGGER spy AFTER INSERT ON note BEGIN DELETE FROM folder; END",
        "trigger 'spy' is new"
      ),
      ("CREATE TABLE more (a)", "table 'more' is new"),
      ("CREATE UNIQUE INDEX u ON note (folder)", "index 'u' is new"),
      ("DROP VIEW titles", "view 'titles' is missing"),
      ("DROP INDEX by_title", "index 'by_title' is missing"),
      (
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'by_title'",
        "index 'by_title' is listed 2 times"
      ),
      (
        "UPDATE sqlite_schema SET tbl_name = 'folder' WHERE name = 'by_title'",
        "index 'by_title' belongs to table 'folder', expected 'note'"
      ),
    ])
  func objects(change: String, found: String) throws {
    #expect(try text(change).differences(from: text()) == [found])
  }

  @Test("letters that Unicode treats as equal differ")
  func bytes() throws {
    func text(_ name: String) throws -> SchemaText {
      try DatabaseQueue().writeWithoutTransaction { db in
        try db.execute(sql: "CREATE TABLE t (\"\(name)\")")
        return try SchemaText(db)
      }
    }
    #expect(try text("\u{E9}").differences(from: text("e\u{301}")).count == 1)
  }
}
