import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarKeeper

@Suite("The pages of a store and of its clone")
struct PageComparisonTests {
  /// A store of small pages, and a file with the same bytes.
  private struct Pair {
    let folder: TemporaryFolder
    let store: String
    let clone: String
    let own: PageBaseline

    init(_ sql: String = "") throws {
      folder = try TemporaryFolder()
      (store, clone) = (folder.path + "/store", folder.path + "/clone")
      try Self.write(
        """
        PRAGMA page_size = 512;
        CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT);
        CREATE INDEX by_title ON note (title);
        CREATE TABLE tag (name TEXT);
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)
        INSERT INTO note (id, title) SELECT x, 'a longer title of a note ' || x FROM n;
        \(sql)
        """, to: store)
      try FileManager.default.copyItem(atPath: store, toPath: clone)
      own = try GuardedConnection.use(store, access: .immutable) {
        try #require(try PageBaseline($0, format: .plain, includesHistory: false))
      }
    }

    static func write(_ sql: String, to path: String) throws {
      let queue = try DatabaseQueue(path: path)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
    }

    func hasSameRows(after sql: String) throws -> Bool {
      try Self.write(sql, to: clone)
      return try compare()
    }

    func compare() throws -> Bool {
      try PageComparison(clone: clone, source: .copy(store), own: own, format: .plain).perform()
    }
  }

  @Test(
    "rows of a store and of its clone are the same after a change of the schema alone",
    arguments: [
      "ALTER TABLE note ADD COLUMN tone TEXT", "ALTER TABLE note RENAME COLUMN title TO caption",
      "ALTER TABLE note RENAME TO letter",
      "CREATE TRIGGER changed AFTER UPDATE ON note BEGIN SELECT 1; END",
    ])
  func schemaAlone(sql: String) throws {
    #expect(try Pair().hasSameRows(after: sql))
  }

  @Test("a schema may take pages that are appended")
  func appendedPages() throws {
    let pair = try Pair()
    let text = String(repeating: "x", count: 2_000)
    #expect(try pair.hasSameRows(after: "ALTER TABLE note ADD COLUMN tone TEXT DEFAULT '\(text)'"))
    let pages = try GuardedConnection.use(pair.clone, access: .immutable) {
      try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0
    }
    #expect(pages > pair.own.pageCount)
  }

  @Test(
    "rows of a store and of its clone are not the same after anything else",
    arguments: [
      "UPDATE note SET title = 'b' WHERE id = 250", "DELETE FROM note WHERE id = 499",
      "INSERT INTO tag VALUES ('red')", "DROP INDEX by_title", "CREATE INDEX by_name ON tag (name)",
      "CREATE TABLE other (x)", "DROP TABLE tag", "ALTER TABLE note DROP COLUMN title", "VACUUM",
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 4 WHERE name = 'by_title'",
    ])
  func anythingElse(sql: String) throws {
    let pair = try Pair("CREATE INDEX by_name ON tag (name); DROP INDEX by_name;")
    let isAltered = sql.hasPrefix("ALTER TABLE note DROP")
    #expect(try !pair.hasSameRows(after: isAltered ? "DROP INDEX by_title; " + sql : sql))
  }

  @Test("a schema may take free pages")
  func freePages() throws {
    let pair = try Pair("CREATE TABLE gone AS SELECT * FROM note; DROP TABLE gone;")
    let text = String(repeating: "x", count: 2_000)
    #expect(try pair.hasSameRows(after: "ALTER TABLE note ADD COLUMN tone TEXT DEFAULT '\(text)'"))
  }

  @Test("a clone that is shorter than the store, or has one other byte, is not the same")
  func otherBytes() throws {
    let pair = try Pair()
    #expect(try pair.compare())
    let handle = try #require(FileHandle(forUpdatingAtPath: pair.clone))
    let page = try #require((2...pair.own.pageCount).first { !pair.own.pages.contains($0) })
    try handle.seek(toOffset: UInt64((page - 1) * pair.own.pageSize + 511))
    let byte = try #require(try handle.read(upToCount: 1)?.first)
    try handle.seek(toOffset: UInt64((page - 1) * pair.own.pageSize + 511))
    try handle.write(contentsOf: Data([byte ^ 1]))
    #expect(try !pair.compare())
    try handle.truncate(atOffset: UInt64((pair.own.pageCount - 1) * pair.own.pageSize))
    try handle.close()
    #expect(try !pair.compare())
  }

  @Test("damage in the pages that a stage wrote is found")
  func damagedSchema() throws {
    let pair = try Pair()
    let text = String(repeating: "x", count: 2_000)
    try Pair.write("ALTER TABLE note ADD COLUMN tone TEXT DEFAULT '\(text)'", to: pair.clone)
    // The first overflow page of the schema names one that it does not have.
    let handle = try #require(FileHandle(forUpdatingAtPath: pair.clone))
    try handle.seek(toOffset: UInt64(pair.own.pageCount * pair.own.pageSize))
    try handle.write(contentsOf: Data([0, 0, 0, 2]))
    try handle.close()
    // SQLite finds it, or the pages of the schema are not those that were appended.
    #expect((try? pair.compare()) != true)
  }
}
