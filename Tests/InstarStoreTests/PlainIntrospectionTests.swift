import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("The schema that ordinary tables show")
struct PlainIntrospectionTests {
  private func read(_ sql: String) throws -> StoreIntrospection {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
    return try StoreIntrospection.read(folder.path("a.db")).introspection
  }

  @Test(
    "two required columns that are unique together are a table of links, also without a primary key"
  )
  func links() throws {
    let found = try read(
      """
      CREATE TABLE "Post" ("id" TEXT NOT NULL PRIMARY KEY);
      CREATE TABLE "Tag" ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT);
      CREATE TABLE "_PostToTag" (
        "A" TEXT NOT NULL REFERENCES "Post" ("id"), "B" INTEGER NOT NULL REFERENCES "Tag" ("id"));
      CREATE UNIQUE INDEX "_PostToTag_AB_unique" ON "_PostToTag" ("A", "B");
      CREATE TABLE loose (a TEXT REFERENCES "Post" ("id"), b INTEGER REFERENCES "Tag" ("id"));
      CREATE UNIQUE INDEX loose_both ON loose (a, b);
      CREATE TABLE _prisma_migrations (id TEXT PRIMARY KEY NOT NULL);
      """)
    #expect(found.schema.entities.map(\.name).sorted() == ["Post", "Tag"])
    let tags = try #require(found.schema.entity(named: "Post")?.relationships.first)
    #expect(
      tags.column?.junction
        == Schema.Column.Junction(table: "_PostToTag", own: ["A"], other: ["B"]))
    #expect(found.schema.entity(named: "Tag")?.relationships.map(\.name) == ["posts"])
    #expect(
      found.notes == [
        "table loose has no model, because it has no primary key; a migration keeps it unchanged"
      ])
  }

  @Test(
    "indexes of some rows, or with greater values first, are said where an empty store can have them"
  )
  func indexes() throws {
    let found = try read(
      """
      CREATE TABLE note (
        id INTEGER PRIMARY KEY, title TEXT, at DATETIME, folder_id INTEGER REFERENCES folder (id));
      CREATE TABLE folder (id INTEGER PRIMARY KEY);
      CREATE INDEX plain ON note (title);
      CREATE INDEX latest ON note (at DESC, title COLLATE NOCASE);
      CREATE UNIQUE INDEX titled ON note ("title") WHERE title IS NOT NULL AND id NOT IN (1, 2);
      CREATE INDEX lower ON note (lower(title));
      CREATE INDEX foldered ON note (folder_id DESC);
      """)
    let note = try #require(found.schema.entity(named: "Note"))
    #expect(note.indices == [["title"]])
    #expect(
      note.table?.indexes.sorted { $0.name < $1.name } == [
        Schema.TableIndex(name: "latest", terms: ["at DESC", "title COLLATE NOCASE"]),
        Schema.TableIndex(
          name: "titled", terms: ["\"title\""], isUnique: true,
          condition: "title IS NOT NULL AND id NOT IN (1, 2)"),
      ])
    // What it says can be made.
    let layout = try PlainLayout(schema: found.schema)
    try DatabaseQueue().write { db in
      for statement in layout.createStatements { try db.execute(sql: statement) }
    }
  }

  @Test("names that would be one in Swift differ, and the first value decides the type")
  func names() throws {
    let found = try read(
      """
      CREATE TABLE a_b (
        id INTEGER PRIMARY KEY, x_y DATETIME, "x y" DATETIME, xY CHAR(32), "x-y" BLOB, z NUMERIC (3),
        w TEXT COLLATE nocase DEFAULT 'COLLATE', v AS (x_y + 1), u BLOB);
      CREATE TABLE "a b" (id INTEGER PRIMARY KEY);
      INSERT INTO a_b (x_y, "x y", xY, "x-y") VALUES (NULL, '2024-01-02 03:04:05', 'a', NULL),
        (1700000000000, NULL, NULL, 'text');
      """)
    #expect(found.schema.entities.map(\.name) == ["AB", "AB2"])
    let entity = try #require(found.schema.entity(named: "AB"))
    #expect(
      entity.attributes.map { "\($0.name) \($0.type.rawValue)" } == [
        "id int64", "xY date", "xY2 date", "xY3 string", "xY4 string", "z decimal", "w string",
        "v data", "u data",
      ])
    #expect(
      entity.attributes.map { $0.column?.encoding?.rawValue ?? "-" }
        == ["-", "unixMilliseconds", "dateTime", "-", "-", "-", "-", "-", "-"])
    #expect(entity.attributesByName["w"]?.column?.collation == "nocase")
    #expect(entity.attributesByName["v"]?.column?.generated == "x_y + 1")
  }
}
