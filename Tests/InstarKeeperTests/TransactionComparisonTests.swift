import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarKeeper

@Suite("The pages of a transaction and of the backup")
struct TransactionComparisonTests {
  private let folder: TemporaryFolder
  private let store: String
  private let backup: String

  init() throws {
    folder = try TemporaryFolder()
    (store, backup) = (folder.path + "/store", folder.path + "/backup")
  }

  /// Makes a store of small pages and its backup, and changes the store in a transaction.
  private func hasSameRows(
    after sql: String, in schema: String = "", settings: String = "", backup change: String = "",
    isGuarded: Bool = true
  ) throws -> Bool {
    try write(
      """
      PRAGMA page_size = 1024; \(settings);
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT);
      CREATE INDEX by_title ON note (title);
      CREATE TABLE tag (name TEXT);
      \(schema);
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200)
      INSERT INTO note (id, title) SELECT x, 'a longer title of a note ' || x FROM n;
      """, to: store)
    let before = try baseline()
    try FileManager.default.copyItem(atPath: store, toPath: backup)
    if !change.isEmpty { try write(change, to: backup) }
    return try compare(before, isGuarded: isGuarded) { try $0.execute(sql: sql) }
  }

  private func baseline() throws -> SchemaBaseline {
    try GuardedConnection.use(store, access: .readOnly) { try SchemaBaseline($0, format: .plain) }
  }

  /// - Parameter change: What the transaction does.
  private func compare(
    _ before: SchemaBaseline, isGuarded: Bool = true,
    after change: (Database) throws -> Void = { _ in }
  ) throws -> Bool {
    func compare(_ db: Database) throws -> Bool {
      try db.execute(sql: "PRAGMA writable_schema = ON; BEGIN IMMEDIATE")
      defer { try? db.execute(sql: "ROLLBACK") }
      try change(db)
      return try TransactionComparison(
        backup: backup, roots: before.roots, pageSize: before.pageSize
      ).hasSameRows(db)
    }
    return try isGuarded
      ? GuardedConnection.use(store, access: .readWrite, compare)
      : DatabaseQueue(path: store).writeWithoutTransaction(compare)
  }

  private func write(_ sql: String, to path: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  /// Enough tables for a schema of several pages.
  private static let tables = (0..<40)
    .map { "CREATE TABLE other\($0) (a TEXT, b TEXT, c TEXT, a_long_name_for_a_column TEXT)" }
    .joined(separator: "; ")

  @Test(
    "rows of a transaction and of the backup are the same after a change of the schema alone",
    arguments: [
      "ALTER TABLE note ADD COLUMN tone TEXT", "ALTER TABLE note RENAME COLUMN title TO caption",
      "ALTER TABLE note RENAME TO letter", "SELECT 1",
    ], ["", tables])
  func schemaAlone(sql: String, schema: String) throws {
    #expect(try hasSameRows(after: sql, in: schema))
  }

  @Test("a store with a log has a backup without one, and the same rows")
  func log() throws {
    #expect(
      try hasSameRows(
        after: "ALTER TABLE note ADD COLUMN tone TEXT", settings: "PRAGMA journal_mode = WAL",
        backup: "PRAGMA journal_mode = DELETE"))
  }

  @Test(
    "rows of a transaction and of the backup are not the same after anything else",
    arguments: [
      "UPDATE note SET title = 'b' WHERE id = 100", "DELETE FROM note WHERE id = 199",
      "INSERT INTO tag VALUES ('red')", "DROP INDEX by_title", "CREATE INDEX by_name ON tag (name)",
      "DROP TABLE tag", "CREATE TABLE other (id INTEGER)", "PRAGMA user_version = 7",
      "PRAGMA application_id = 7",
      """
      UPDATE sqlite_schema SET rootpage =
        (SELECT sum(rootpage) FROM sqlite_schema WHERE name IN ('note', 'tag')) - rootpage
      WHERE name IN ('note', 'tag')
      """,
    ])
  func otherChanges(sql: String) throws {
    // A guarded connection does not let statements write the rows of the schema.
    #expect(try !hasSameRows(after: sql, isGuarded: !sql.contains("UPDATE sqlite_schema")))
  }

  @Test("a schema that needs another page is compared in full")
  func appendedPage() throws {
    let text = String(repeating: "x", count: 2_000)
    #expect(try !hasSameRows(after: "ALTER TABLE note ADD COLUMN tone TEXT DEFAULT '\(text)'"))
  }

  @Test(
    "a byte of any page but the schema's makes a difference",
    arguments: [30, 55, 1024 + 500, 5 * 1024 + 3])
  func changedByte(offset: UInt64) throws {
    #expect(try hasSameRows(after: "ALTER TABLE note ADD COLUMN tone TEXT"))
    let handle = try #require(FileHandle(forUpdatingAtPath: backup))
    try handle.seek(toOffset: offset)
    let byte = try #require(try handle.read(upToCount: 1)?.first)
    try handle.seek(toOffset: offset)
    try handle.write(contentsOf: [byte ^ 1])
    try handle.close()
    #expect(try !compare(baseline()))
  }

  @Test("a backup of another size has other rows")
  func shorterBackup() throws {
    #expect(try hasSameRows(after: "SELECT 1"))
    #expect(truncate(backup, 1024) == 0)
    #expect(try !compare(baseline()))
  }
}
