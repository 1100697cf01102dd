import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("Whether a store is sound")
struct StoreCheckTests {
  /// Every kind of index that SQLite has.
  private static let schema = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB, d INTEGER NOT NULL,
      g TEXT AS (lower(a)) STORED, v TEXT AS (upper(a)), UNIQUE (a, d));
    CREATE INDEX plain ON t (b);
    CREATE INDEX folded ON t (a COLLATE NOCASE DESC, b);
    CREATE INDEX trimmed ON t (a COLLATE RTRIM, c);
    CREATE INDEX part ON t (d) WHERE b > 2 AND a IS NOT NULL;
    CREATE INDEX computed ON t (length(a) DESC, v, g) WHERE length(c) > 1;
    CREATE UNIQUE INDEX one ON t (b, c);
    CREATE TABLE w (k TEXT COLLATE NOCASE, n INTEGER, x, PRIMARY KEY (k DESC, n)) WITHOUT ROWID;
    CREATE INDEX of_w ON w (x DESC);
    CREATE TABLE "odd ""name" (rowid TEXT, _rowid_ TEXT, "a b" TEXT UNIQUE);
    """

  /// A file with that schema and rows whose values are of all types.
  private static func make(encoding: String = "UTF-8", more: String = "") throws -> TestStore {
    let store = TestStore()
    try store.write(
      """
      PRAGMA encoding = '\(encoding)'; \(schema)
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300)
      INSERT INTO t (id, a, b, c, d) SELECT x,
        CASE x % 5 WHEN 0 THEN NULL WHEN 1 THEN 'Aé' || x WHEN 2 THEN 'aé  ' ELSE char(65 + x % 40) END,
        CASE x % 4 WHEN 0 THEN x / 4 WHEN 1 THEN x + 0.25 WHEN 2 THEN 1e300 * x ELSE NULL END,
        CASE x % 3 WHEN 0 THEN zeroblob(x % 50) WHEN 1 THEN 'text' || x ELSE x END, x FROM n;
      INSERT INTO w SELECT CASE id % 2 WHEN 0 THEN 'k' ELSE 'K' || id END, id, c FROM t;
      INSERT INTO "odd ""name" SELECT id, id, 'v' || id FROM t; \(more)
      """)
    return store
  }

  private static func findings(_ store: TestStore) throws -> String? {
    do {
      _ = try store.read { try StoreCheck.requireSound($0, "the store") }
      return nil
    } catch let error as InstarError {
      #expect(error.code == .corruptStore || error.code == .unsupported)
      return error.cause
    }
  }

  @Test("reading every page evaluates no CHECK constraint, and leaves the constraints in force")
  func constraintsInForce() throws {
    try DatabaseQueue().inDatabase { db in
      try db.execute(
        sql: """
          CREATE TABLE t (a CHECK (a > 0));
          PRAGMA ignore_check_constraints = ON;
          INSERT INTO t VALUES (0);
          PRAGMA ignore_check_constraints = OFF
          """)
      try StoreCheck.requireQuickCheck(db, "the store")
      #expect(throws: DatabaseError.self) { try db.execute(sql: "INSERT INTO t VALUES (0)") }
    }
  }

  @Test(
    "a store with every kind of index and value is sound",
    arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func sound(encoding: String) throws {
    #expect(try Self.findings(Self.make(encoding: encoding)) == nil)
  }

  @Test("a schema with operators of JSON and double-quoted texts is sound")
  func schemaOfApps() throws {
    let store = try Self.make(
      more: """
        CREATE TABLE o (status TEXT CHECK (status IN ("new", "old")), j TEXT, k AS (j ->> '$.a'));
        CREATE INDEX of_status ON o (status) WHERE status = "new";
        CREATE INDEX of_json ON o (j -> '$.a');
        INSERT INTO o (status, j) VALUES ('new', '{"a": 1}'), ('old', NULL);
        """)
    #expect(try Self.findings(store) == nil)
  }

  @Test(
    "an index that missed a change of its table is found, whatever its kind",
    arguments: ["plain", "folded", "trimmed", "part", "computed", "one", "of_w"])
  func stale(index: String) throws {
    for change in [
      "INSERT INTO t (id, a, b, c, d) VALUES (900, 'new', 900.5, 'blob', 900); INSERT INTO w VALUES ('new', 900, 5)",
      "DELETE FROM t WHERE id = 13; DELETE FROM w WHERE n = 13",
      "UPDATE t SET a = 'other', b = 77.5, c = 'more', d = 913 WHERE id = 13; UPDATE w SET x = 'y' WHERE n = 13",
    ] {
      let store = try Self.make()
      try store.leaveOut(index, during: change)
      let found = try Self.findings(store)
      #expect(
        found?.contains("index '\(index)' of table") == true, "\(change): \(found ?? "nothing")")
      // SQLite finds the same, in more time.
      let error = #expect(throws: InstarError.self) {
        try store.read { try StoreCheck.requireIntegrity($0, "the store") }
      }
      #expect(error?.code == .corruptStore)
      #expect(error?.cause.hasPrefix("SQLite's integrity_check reports damage: ") == true)
      #expect(error?.cause.contains("***") == false && error?.cause.contains("\n") == false)
    }
  }

  @Test("damage of the store is a proof, that of a clone and what a disk reports are not")
  func proofs() throws {
    let store = try Self.make()
    try store.leaveOut("plain", during: "DELETE FROM t WHERE id = 13")
    for path in [store.path, nil] {
      let checks: [(Database) throws -> Void] = [
        { try StoreCheck.requireIntegrity($0, "the store", path: path) },
        { _ = try StoreCheck.requireIndexes($0, "the store", path: path) },
      ]
      for check in checks {
        let error = #expect(throws: InstarError.self) { try store.read(check) }
        #expect(error?.code == .corruptStore)
        #expect(error?.provesDamage == (path == nil ? nil : true))
      }
    }
    // The clone of a run may be what SQLite cannot read.
    for code in [ResultCode.SQLITE_CORRUPT, .SQLITE_FULL, .SQLITE_IOERR] {
      let error = InstarError(DatabaseError(resultCode: code), what: "cannot migrate")
      #expect(error.provesDamage == nil)
    }
  }

  @Test(
    "the same values in another order of keys are found, and so are equal keys in a unique index")
  func orderAndDuplicates() throws {
    let order = try Self.make()
    try order.rewriteSchema("replace(sql, 'b)', 'b DESC)')", of: "plain")
    #expect(
      try Self.findings(order)?.contains("index 'plain' of table 't' is not in order") == true)

    let twice = TestStore()
    try twice.write(
      "CREATE TABLE t (a, b); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1, 1), (1, 2), (NULL, 3), (NULL, 4)"
    )
    #expect(try Self.findings(twice) == nil)
    try twice.rewriteSchema("'CREATE UNIQUE INDEX i ON t (a)'", of: "i")
    #expect(
      try Self.findings(twice)?.contains(
        "index 'i' of table 't' must be unique, but has the same key twice")
        == true)
  }

  @Test(
    "an index with a collation or a function that only the app has is refused",
    arguments: [("a COLLATE german", "the collation 'german'"), ("app_knows(a)", "app_knows")])
  func unknownToSQLite(term: String, found: String) throws {
    let store = TestStore()
    try store.write("CREATE TABLE t (a TEXT); CREATE INDEX i ON t (a)")
    try store.rewriteSchema("'CREATE INDEX i ON t (\(term))'", of: "i")
    #expect(try Self.findings(store)?.contains(found) == true)
  }

  @Test(
    "rows that violate a CHECK are found on a connection that cannot write, and its table is named")
  func checks() throws {
    let store = TestStore()
    try store.write(
      """
      CREATE TABLE t (a TEXT CHECK (a <> 'x' /* not ) */) CONSTRAINT c CHECK(length(a) < 5), b,
        CONSTRAINT "two" CHECK (b IS NULL OR a < b), CHECK (json_valid(b) OR 1));
      INSERT INTO t VALUES ('a', 'b'), (NULL, 'b'), ('abcd', NULL);
      """)
    #expect(try Self.findings(store) == nil)
    try store.write("PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES ('x', 'a')")
    let found = try Self.findings(store)
    #expect(found?.contains("1 rows of table 't' violate CHECK (a <> 'x' /* not ) */)") == true)
    #expect(found?.contains("violate CHECK (b IS NULL OR a < b)") == true)
    #expect(found?.contains("length") == false)
  }

  @Test("a CHECK that calls a function of the app is left out, and the others are evaluated")
  func functionsOfTheApp() throws {
    let store = TestStore()
    try store.write("CREATE TABLE t (a CHECK (a > 0), b); INSERT INTO t VALUES (1, 1)")
    try store.rewriteSchema("'CREATE TABLE t (a CHECK (a > 0), b CHECK (app_knows(b)))'", of: "t")
    #expect(try Self.findings(store) == nil)
    try store.rewriteSchema("'CREATE TABLE t (a CHECK (a > 5), b CHECK (app_knows(b)))'", of: "t")
    #expect(try Self.findings(store)?.contains("violate CHECK (a > 5)") == true)
  }

  @Test("a stored generated column with another value than its expression is found")
  func generated() throws {
    let store = try Self.make()
    try store.rewriteSchema("replace(sql, 'lower(a)', 'a || 1')", of: "t")
    #expect(try Self.findings(store)?.contains("violate generated column 'g'") == true)
  }

  // MARK: Sums of columns

  private static let summed = [
    ColumnList(table: "t", columns: ["d", "a"]), ColumnList(table: "w", columns: ["k", "n"]),
    ColumnList(table: "\"odd \"\"name\"", columns: ["\"a b\""]),
    ColumnList(table: "u", columns: ["x"]),
  ]

  private static func sums(_ store: TestStore) throws -> ColumnSums {
    try store.read { try StoreCheck.requireSound($0, "the store", summing: Set(summed)) }
  }

  @Test("columns with the same values have the same sums, in tables of every kind")
  func equalSums() throws {
    let more = "CREATE TABLE u (x, y); INSERT INTO u VALUES (1, 1), (2, 2);"
    let store = try Self.make(more: more)
    let first = try Self.sums(store)
    // Other columns, other rowids, another order.
    try store.write(
      """
      UPDATE t SET b = 7.5 + id, c = 'x'; UPDATE w SET x = NULL; UPDATE u SET x = 3 - x, y = 5;
      """)
    let second = try Self.sums(store)
    for list in Self.summed { #expect(second.hasValues(in: list, of: first, in: list)) }
  }

  @Test(
    "columns with other values have other sums",
    arguments: [
      (0, "UPDATE t SET d = d + 1 WHERE id = 7"), (0, "DELETE FROM t WHERE id = 7"),
      // The same values, in other rows.
      (0, "UPDATE t SET d = CASE d WHEN 6 THEN 7 ELSE 6 END WHERE d IN (6, 7)"),
      (1, "UPDATE w SET n = n + 1000 WHERE n = 3"),
      (2, #"UPDATE "odd ""name" SET "a b" = 'new' WHERE "a b" = 'v3'"#),
      (3, "UPDATE u SET x = '1' WHERE x = 1"), (3, "INSERT INTO u VALUES (NULL, 1)"),
      // Values that are equal for one collation only.
      (
        3, "DROP TABLE u; CREATE TABLE u (x COLLATE NOCASE, y); INSERT INTO u VALUES (1, 1), (2, 2)"
      ),
    ])
  func otherSums(_ index: Int, _ change: String) throws {
    let store = try Self.make(
      more: "CREATE TABLE u (x, y); INSERT INTO u VALUES (1, 1), (2, 2);")
    let first = try Self.sums(store)
    try store.write(change)
    let second = try Self.sums(store)
    for (position, list) in Self.summed.enumerated() {
      #expect(second.hasValues(in: list, of: first, in: list) == (position != index))
    }
  }

  @Test("columns that were not summed are not equal to any")
  func missingSums() throws {
    let store = try Self.make()
    let list = Self.summed[0]
    let sums = try store.read { try StoreCheck.requireSound($0, "the store", summing: [list]) }
    let none = try store.read {
      try StoreCheck.requireSound($0, "the store", summing: [list], checksIndexes: { false })
    }
    #expect(sums.hasValues(in: list, of: sums, in: list))
    #expect(!none.hasValues(in: list, of: sums, in: list))
    #expect(!sums.hasValues(in: list, of: none, in: list))
  }
}

/// A database file of one test.
private final class TestStore {
  let path = FileManager.default.temporaryDirectory.path + "/instar-check-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func write(_ sql: String) throws {
    var configuration = Configuration()
    configuration.acceptsDoubleQuotedStringLiterals = true
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func read<T>(_ body: (Database) throws -> T) throws -> T {
    let queue = try GuardedConnection.open(path, access: .immutable)
    defer { try? queue.close() }
    return try queue.inDatabase(body)
  }

  /// Replaces the text of an object, and leaves the pages as they are.
  func rewriteSchema(_ expression: String, of name: String) throws {
    try write(
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \(expression) WHERE name = '\(name)'"
    )
  }

  /// Changes rows while SQLite does not know an index.
  func leaveOut(_ index: String, during change: String) throws {
    try write(
      """
      CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = '\(index)';
      PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '\(index)';
      PRAGMA writable_schema = RESET; \(change);
      PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM kept
      """)
  }
}
