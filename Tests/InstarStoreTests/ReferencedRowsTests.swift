import Foundation
import GRDB
import InstarTestSupport
import Testing

@testable import InstarStore

/// A set of keys may only answer that all rows are found where a look-up of each would find them.
@Suite("Keys that reference rows")
struct ReferencedRowsTests {
  private static let tables = """
    CREATE TABLE folder (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL);
    CREATE TABLE note (
      id INTEGER PRIMARY KEY, title TEXT, folder INTEGER, parent INTEGER REFERENCES note (id));
    CREATE INDEX of_folder ON note (folder);
    CREATE TABLE note_tag (note INTEGER, tag INTEGER, PRIMARY KEY (note, tag)) WITHOUT ROWID;
    INSERT INTO folder VALUES (-3, 1), (0, 2), (7, 1), (4000, 1);
    INSERT INTO note VALUES
      (1, 'a', -3, NULL), (2, 'b', 7, 1), (3, 'c', NULL, 1), (9, 'd', 4000, 9), (10, 'e', 7, 9);
    INSERT INTO note_tag VALUES (1, 1), (1, 2), (9, 1);
    """

  /// What a set of keys finds: folders of all kinds, folders of kind 1, parents, and notes of tags.
  private static func found(_ db: Database) throws -> [Bool] {
    func areAll(
      _ owner: String, _ column: String, _ table: String, kind: (String, [Int])? = nil
    ) throws -> Bool {
      try ReferencedRows(
        table: SQLIdentifier.sql(table), key: SQLIdentifier.sql("id"),
        kind: kind.map { (SQLIdentifier.sql($0), $1) }
      ).areAll(in: SQLIdentifier.sql(column), of: SQLIdentifier.sql(owner), db)
    }
    return [
      try areAll("note", "folder", "folder"),
      try areAll("note", "folder", "folder", kind: ("kind", [3, 1])),
      try areAll("note", "parent", "note"),
      try areAll("note_tag", "note", "note"),
    ]
  }

  private static func found(after changes: String, journal: String = "delete") throws -> [Bool] {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql:
          "PRAGMA foreign_keys = OFF; PRAGMA page_size = 512; PRAGMA journal_mode = \(journal)")
      try db.execute(sql: tables + changes)
    }
    let open = try queue.read { try found($0) }
    try queue.close()
    let closed = try GuardedConnection.use(path, access: .immutable) { try found($0) }
    #expect(journal == "wal" || open == closed)
    return closed
  }

  @Test(
    "all keys of rows are found, also of ordinary tables without an index",
    arguments: ["delete", "wal"])
  func sound(_ journal: String) throws {
    #expect(try Self.found(after: "", journal: journal) == [true, true, true, true])
  }

  @Test("keys are found among many pages of keys")
  func manyPages() throws {
    let many = """
      WITH RECURSIVE n(x) AS (SELECT 11 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)
      INSERT INTO note SELECT x, hex(zeroblob(x % 300)), 7, x - 1 FROM n;
      INSERT INTO note_tag SELECT id, 3 FROM note;
      """
    #expect(try Self.found(after: many) == [true, true, true, true])
    #expect(
      try Self.found(after: many + "DELETE FROM note WHERE id = 1717;")
        == [true, true, false, false])
  }

  @Test(
    "keys are not found where a look-up finds none",
    arguments: [
      ("a row is gone", "DELETE FROM note WHERE id = 9", [true, true, false, false]),
      ("the row is of another kind", "UPDATE note SET folder = 0", [true, false, true, true]),
      (
        "before the first key", "UPDATE note SET folder = -4 WHERE id = 3",
        [false, false, true, true]
      ),
      (
        "behind the last key", "INSERT INTO note_tag VALUES (9223372036854775807, 1)",
        [true, true, true, false]
      ),
      ("between two keys", "UPDATE note SET parent = 8 WHERE id = 3", [true, true, false, true]),
      (
        "a number with a fraction", "UPDATE note SET folder = 6.5 WHERE id = 1",
        [false, false, true, true]
      ),
    ])
  func missing(_ what: String, _ change: String, _ expected: [Bool]) throws {
    #expect(try Self.found(after: change) == expected, "\(what)")
  }

  @Test(
    "keys are left to SQL where a set cannot tell",
    arguments: [
      ("a text", "UPDATE note SET folder = 'seven' WHERE id = 1", [false, false, true, true]),
      (
        "keys that are far apart",
        "INSERT INTO folder VALUES (-9223372036854775807, 1), (9223372036854775807, 1)",
        [false, false, true, true]
      ),
      (
        "no rows at all", "UPDATE note SET folder = NULL; DELETE FROM folder",
        [false, false, true, true]
      ),
    ])
  func uncertain(_ what: String, _ change: String, _ expected: [Bool]) throws {
    #expect(try Self.found(after: change) == expected, "\(what)")
  }
}
