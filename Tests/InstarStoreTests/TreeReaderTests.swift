import Foundation
import GRDB
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("Trees that are read from the file")
struct TreeReaderTests {
  /// Small pages, so that trees have several levels and long values go on in other pages.
  private static let schema = """
    PRAGMA page_size = 512;
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB);
    CREATE UNIQUE INDEX of_a ON t (a DESC, id);
    CREATE INDEX of_b ON t (b, c);
    CREATE TABLE w (n INTEGER, k TEXT COLLATE NOCASE, x, PRIMARY KEY (k, n)) WITHOUT ROWID;
    CREATE INDEX of_x ON w (x);
    CREATE TABLE d (a TEXT, k INTEGER PRIMARY KEY DESC);
    CREATE INDEX of_d ON d (a);
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400)
    INSERT INTO t SELECT x * 7919 % 100003 - 5000,
      'text é ' || x || CASE WHEN x % 9 = 0 THEN hex(zeroblob(x)) ELSE '' END,
      CASE x % 3 WHEN 0 THEN x WHEN 1 THEN -x / 8.0 END,
      CASE x % 50 WHEN 0 THEN randomblob(2000) WHEN 1 THEN NULL ELSE x << (x % 60) END FROM n;
    INSERT INTO w SELECT id, a, b FROM t;
    INSERT INTO d SELECT a, id FROM t;
    ALTER TABLE t ADD COLUMN later;
    CREATE INDEX of_later ON t (later);
    INSERT INTO t (a, later) VALUES ('last', 5);
    """
  private static let path = FileManager.default.temporaryDirectory.path

  private static func file() throws -> (path: String, bytes: Data) {
    let path = "\(path)/instar-trees-\(UUID().uuidString)"
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: schema) }
    try queue.close()
    return (path, try Data(contentsOf: URL(filePath: path)))
  }

  /// Numbers of each kind, texts, blobs, keys, and a column that old rows do not have.
  private static let summed: Set<ColumnList> = [
    ColumnList(table: "t", columns: ["a", "later"]), ColumnList(table: "t", columns: ["b", "c"]),
    ColumnList(table: "t", columns: ["id"]), ColumnList(table: "w", columns: ["n", "x"]),
    ColumnList(table: "w", columns: ["k"]), ColumnList(table: "d", columns: ["a", "k"]),
  ]

  /// What the check finds, by the trees or by statements; `nil` where it throws.
  private static func findings(
    _ db: Database, readsFile: Bool
  ) -> (findings: [String]?, sums: ColumnSums) {
    var sums = ColumnSums()
    let found = try? IndexCheck.findings(
      db, IndexedTable.all(db), summing: summed, into: &sums, readsFile: readsFile)
    return (found, sums)
  }

  private static func expectSameFindings(_ db: Database, _ comment: Comment) -> [String]? {
    let (read, asked) = (findings(db, readsFile: true), findings(db, readsFile: false))
    #expect(read.findings == asked.findings, comment)
    if asked.findings == [] {
      for list in summed {
        #expect(read.sums.hasValues(in: list, of: asked.sums, in: list), comment)
      }
    }
    return read.findings
  }

  @Test("trees that are read from the file have the values that SQLite returns")
  func values() throws {
    let (path, _) = try Self.file()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try GuardedConnection.use(path, access: .immutable) { db in
      let tables = try IndexedTable.all(db)
      #expect(tables.map(\.name).sorted() == ["d", "t", "w"])
      for table in tables {
        let lists = Self.summed.filter { $0.table == table.name }
        let wanted = IndexCheck.TableColumns(table, summing: Array(lists))
        #expect(!lists.isEmpty)
        #expect(IndexCheck.fingerprintsOfSoundTrees(db, wanted) != nil, "\(table.name)")
      }
      #expect(Self.expectSameFindings(db, "the whole file") == [])
    }
  }

  @Test(
    "trees that are read from the file have the rowid for an INTEGER PRIMARY KEY, whatever the record has"
  )
  func storedKey() throws {
    let (path, _) = try Self.file()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE k (id INTEGER, a TEXT); INSERT INTO k (rowid, id, a) VALUES (2, 1, 'y');
          CREATE INDEX of_k ON k (a DESC, id);
          PRAGMA writable_schema = ON;
          UPDATE sqlite_schema SET sql = 'CREATE TABLE k (id INTEGER PRIMARY KEY, a TEXT)' WHERE name = 'k'
          """)
    }
    try queue.close()
    try GuardedConnection.use(path, access: .immutable) { db in
      try StoreCheck.requireQuickCheck(db, "the store")
      let found = Self.expectSameFindings(db, "a key in the record")
      #expect(found == ["index 'of_k' of table 'k' does not match the rows of its table"])
    }
  }

  @Test(
    "SQLite reads trees where a later column has a default, or where a log or a transaction may have other pages"
  )
  func leftToSQLite() throws {
    let (path, _) = try Self.file()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          ALTER TABLE d ADD COLUMN e DEFAULT 'x'; CREATE INDEX of_e ON d (e); INSERT INTO d (a) VALUES ('z')
          """)
    }
    func isRead(_ name: String, _ db: Database) throws -> Bool {
      let table = try #require(try IndexedTable.all(db).first { $0.name == name })
      return IndexCheck.fingerprintsOfSoundTrees(db, IndexCheck.TableColumns(table, summing: []))
        != nil
    }
    try GuardedConnection.use(path, access: .immutable) { db in
      let (table, other) = (try isRead("t", db), try isRead("d", db))
      #expect(table && !other)
      #expect(Self.expectSameFindings(db, "a later column with a default") == [])
    }
    try queue.writeWithoutTransaction { db in
      #expect(try isRead("t", db))
      try db.execute(sql: "BEGIN IMMEDIATE")
      #expect(try !isRead("t", db))
      try db.execute(sql: "ROLLBACK")
    }
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
    let withLog = try GuardedConnection.use(path, access: .readOnly) { try isRead("t", $0) }
    let withoutLog = try GuardedConnection.use(path, access: .immutable) { try isRead("t", $0) }
    #expect(!withLog && withoutLog)
  }

  @Test("trees that are read from a damaged file never look sound where SQLite finds damage")
  func damage() throws {
    let (path, bytes) = try Self.file()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    var readable = 0
    for round in 0..<600 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        damaged[Int.random(in: 100..<damaged.count, using: &random)] = .random(
          in: 0 ... .max, using: &random)
      }
      try damaged.write(to: URL(filePath: path))
      // The schema itself may be damaged: then nothing can be read.
      try? GuardedConnection.use(path, access: .immutable) { db in
        guard (try? StoreCheck.requireQuickCheck(db, "the store")) != nil else { return }
        readable += 1
        _ = Self.expectSameFindings(db, "seed \(seed), round \(round)")
      }
    }
    #expect(readable > 40)
  }
}
