import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("A large store with a history, whose stages write the schema and the history")
struct HistoryComparisonTests {
  private static let journalModes = ["delete", "wal"]

  /// The statements of the stage.
  private static let stage = """
    \(KeeperFixture.addPinned);
    UPDATE ACHANGE SET ZCOLUMNS = NULL WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN (2);
    """

  /// So many pages that the run compares them. Most are those of one value.
  private static func fixture(
    _ journalMode: String = "delete", vacuums: Bool = true
  ) throws -> KeeperFixture {
    let fixture = try KeeperFixture(journalMode: journalMode, rows: 2000)
    let bytes = PageComparison.smallestPageCount * 4096
    try fixture.execute(
      """
      \(vacuums ? "" : "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;")
      PRAGMA journal_mode = \(journalMode);
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER,
        ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB);
      CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID);
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
      INSERT INTO ACHANGE SELECT x, 16001, 1, 1, 1 + x % 2, x, x / 3,
        CASE x WHEN 7 THEN zeroblob(20000) ELSE x'02' END FROM n;
      UPDATE ZNOTE SET ZTITLE = hex(zeroblob(\(bytes / 2))) WHERE Z_PK = 500;
      """)
    let pages = try fixture.query(Int.self, "PRAGMA page_count") ?? 0
    #expect(pages >= PageComparison.smallestPageCount)
    return fixture
  }

  /// Copies the store as a run does, changes the clone, and compares the two.
  private static func hasSameRows(
    _ fixture: KeeperFixture, after sql: String,
    damaging: (_ clone: String) throws -> Void = { _ in }
  ) throws -> Bool {
    let (clone, backup) = (fixture.folder + "/clone", fixture.folder + "/backup")
    try [clone, backup].forEach(RunFiles.makeFile)
    let lock = try StoreLock(try StoreProbe.read(fixture.store).file, busyTimeout: 1)
    let own = try lock.read { try PageBaseline($0, format: .coredata, includesHistory: true) }
    try lock.copy(to: clone)
    lock.release()
    try FileCopy.copy(clone, to: backup)
    let queue = try DatabaseQueue(path: clone)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
    try damaging(clone)
    return try PageComparison(
      clone: clone, source: .copy(backup), own: #require(own), format: .coredata
    ).perform()
  }

  private static func migrate(
    _ fixture: KeeperFixture, thenInClone sql: String? = nil
  ) throws -> RunReport {
    let conversation = ScriptedConversation([.migrate(fixture.request())])
    let host = LightweightHost(besides: SQLHost())
    if let sql {
      try Keeper(conversation: conversation, host: TamperingHost(sql: sql)).serve()
    } else {
      try Keeper(conversation: conversation, host: host).serve()
    }
    return try #require(conversation.reports.first)
  }

  /// Changes rows while SQLite does not know an index.
  private static func unknown(_ index: String, during change: String) -> String {
    """
    CREATE TEMP TABLE kept AS SELECT rowid AS place, * FROM sqlite_schema WHERE name = '\(index)';
    PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '\(index)';
    PRAGMA writable_schema = RESET; \(change);
    PRAGMA writable_schema = ON;
    INSERT INTO sqlite_schema (rowid, type, name, tbl_name, rootpage, sql) SELECT * FROM kept;
    PRAGMA writable_schema = RESET;
    """
  }

  /// Overwrites the last page of a tree, which is not its root.
  private static func damage(_ tree: String, in path: String) throws {
    let (page, size) = try StoreReader.withReadOnlyStore(path) { db in
      let sql = "SELECT max(pageno) FROM dbstat WHERE name = ? AND path <> '/'"
      return (
        try Int.fetchOne(db, sql: sql, arguments: [tree]),
        try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
      )
    }
    try overwrite(path, at: (#require(page) - 1) * size, Data(repeating: 0xA5, count: size))
  }

  private static func overwrite(_ path: String, at offset: Int, _ bytes: Data) throws {
    let handle = try #require(FileHandle(forUpdatingAtPath: path))
    try handle.seek(toOffset: UInt64(offset))
    try handle.write(contentsOf: bytes)
    try handle.close()
  }

  // MARK: The comparison

  @Test("a large store with a history shares one check with its clone", arguments: journalModes)
  func sameRows(journalMode: String) throws {
    #expect(try Self.hasSameRows(Self.fixture(journalMode, vacuums: false), after: Self.stage))
  }

  @Test(
    "a large store with a history shares one check with its clone if it has auto-vacuum and no page became free"
  )
  func autoVacuum() throws {
    let stage = Self.stage.replacing("IN (2)", with: "IN (1)")
    #expect(try Self.hasSameRows(Self.fixture(vacuums: true), after: stage))
    #expect(try !Self.hasSameRows(Self.fixture(vacuums: true), after: Self.stage))
  }

  @Test(
    "a large store with a history shares one check with its clone where pages became free, or free pages are used",
    arguments: [
      "DELETE FROM ACHANGE WHERE ZENTITY = 1", "DELETE FROM ACHANGE",
      "UPDATE ACHANGE SET ZCOLUMNS = NULL", "UPDATE ACHANGE SET ZCOLUMNS = zeroblob(3000)",
      "INSERT INTO Z_METADATA VALUES (2, 'other', zeroblob(100000))",
    ], [true, false])
  func freePages(sql: String, hasFreePages: Bool) throws {
    let fixture = try Self.fixture(vacuums: false)
    if hasFreePages {
      try fixture.execute("CREATE TABLE gone AS SELECT * FROM ACHANGE; DROP TABLE gone")
    }
    #expect(try Self.hasSameRows(fixture, after: Self.stage + sql))
  }

  @Test(
    "a large store with a history shares no check with its clone where anything else was written",
    arguments: [
      "UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK = 250", "DELETE FROM ZNOTE WHERE Z_PK = 1",
      "DROP INDEX ACHANGE_ZTRANSACTIONID_INDEX", "CREATE TABLE other (x)", "VACUUM",
      unknown(
        "ACHANGE_ZTRANSACTIONID_INDEX",
        during: "UPDATE ACHANGE SET ZTRANSACTIONID = 5000 WHERE Z_PK = 900"),
    ])
  func otherRows(sql: String) throws {
    #expect(try !Self.hasSameRows(Self.fixture(vacuums: false), after: Self.stage + sql))
  }

  @Test(
    "a large store with a history shares no check with its clone where a page of the clone's own trees is damaged",
    arguments: ["ACHANGE", "ACHANGE_ZTRANSACTIONID_INDEX"])
  func damagedHistory(tree: String) throws {
    let fixture = try Self.fixture(vacuums: false)
    #expect(
      try !Self.hasSameRows(fixture, after: Self.stage) { try Self.damage(tree, in: $0) })
  }

  @Test(
    "a large store with a history shares no check with its clone where rows of the clone's history are out of order"
  )
  func disorderedHistory() throws {
    let fixture = try Self.fixture(vacuums: false)
    #expect(
      try !Self.hasSameRows(fixture, after: Self.stage) { clone in
        let sql = "SELECT max(pageno) FROM dbstat WHERE name = 'ACHANGE' AND pagetype = 'leaf'"
        let page = try fixture.query(Int.self, sql, in: clone)
        let start = (try #require(page) - 1) * 4096
        let bytes = try #require(FileManager.default.contents(atPath: clone))
        // The places of the first two rows, behind the page's header. No index tells that they have changed places.
        let (first, second) = (bytes[start + 8..<start + 10], bytes[start + 10..<start + 12])
        try Self.overwrite(clone, at: start + 8, Data(second + first))
      })
  }

  @Test(
    "a large store with a history shares no check with its clone where the clone's list of free pages is damaged",
    arguments: [0, 2, 5000, 1 << 31])
  func damagedFreePages(page: UInt32) throws {
    let fixture = try Self.fixture(vacuums: false)
    try fixture.execute("CREATE TABLE gone AS SELECT * FROM ACHANGE; DROP TABLE gone")
    #expect(
      try !Self.hasSameRows(fixture, after: Self.stage) { clone in
        let first = try #require(FileManager.default.contents(atPath: clone))[32..<36]
        let trunk = first.reduce(0) { $0 << 8 | Int($1) }
        // The first leaf of the first trunk.
        let bytes = withUnsafeBytes(of: page.bigEndian) { Data($0) }
        try Self.overwrite(clone, at: (trunk - 1) * 4096 + 8, bytes)
      })
  }

  // MARK: The run

  @Test(
    "a large store with a history is migrated, and its backup is sound", arguments: journalModes,
    [true, false])
  func sound(journalMode: String, vacuums: Bool) throws {
    let fixture = try Self.fixture(journalMode, vacuums: vacuums)
    let app = try OtherProcess.holding(fixture.store, "DEFERRED")
    let report = try Self.migrate(fixture)
    app.finish()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    let kept = "SELECT count(*) FROM ACHANGE WHERE ZCOLUMNS IS NOT NULL"
    #expect(try fixture.query(Int.self, kept) == 500)
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
    let backup = try #require(report.backup)
    #expect(try fixture.query(Int.self, kept, in: backup) == 1000)
    #expect(try fixture.query(String.self, "PRAGMA integrity_check", in: backup) == "ok")
  }

  @Test(
    "a store with a damaged page is refused",
    arguments: ["ZNOTE", "ZNOTE_ZFOLDER_INDEX", "ACHANGE", "ACHANGE_ZTRANSACTIONID_INDEX"])
  func damagedPage(tree: String) throws {
    let fixture = try Self.fixture(vacuums: false)
    try Self.damage(tree, in: fixture.store)
    try Self.requireRefusal(fixture, Self.migrate(fixture))
  }

  @Test(
    "a store is refused where an index does not match its table",
    arguments: [
      unknown("ZNOTE_ZFOLDER_INDEX", during: "UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK = 250"),
      unknown(
        "ACHANGE_ZTRANSACTIONID_INDEX",
        during: "UPDATE ACHANGE SET ZTRANSACTIONID = 5000 WHERE Z_PK = 900"),
    ])
  func damagedIndex(sql: String) throws {
    let fixture = try Self.fixture(vacuums: false)
    try fixture.execute(sql)
    let report = try Self.migrate(fixture)
    #expect(report.error?.cause.contains("does not match the rows of its table") == true)
    try Self.requireRefusal(fixture, report)
  }

  @Test("a store is refused where an index of its history is damaged, and that of the clone is not")
  func damageInStoreAlone() throws {
    let fixture = try Self.fixture(vacuums: false)
    let index = "ACHANGE_ZTRANSACTIONID_INDEX"
    try fixture.execute(
      Self.unknown(
        index, during: "UPDATE ACHANGE SET ZTRANSACTIONID = 5000 WHERE Z_PK = 900"))
    #expect(try Self.hasSameRows(fixture, after: "\(Self.stage) REINDEX \(index)"))
    try Self.requireRefusal(fixture, Self.migrate(fixture, thenInClone: "REINDEX \(index)"))
  }

  @Test("a store stays as it is where an index of its clone's history is damaged")
  func damageInCloneAlone() throws {
    let fixture = try Self.fixture(vacuums: false)
    let before = fixture.state()
    let report = try Self.migrate(
      fixture,
      thenInClone: Self.unknown(
        "ACHANGE_ZTRANSACTIONID_INDEX",
        during: "UPDATE ACHANGE SET ZTRANSACTIONID = 5000 WHERE Z_PK = 900"))
    #expect(report.error?.code == .verificationFailed, "\(String(describing: report.error))")
    #expect(report.error?.cause.contains("ACHANGE") == true)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
  }

  private static func requireRefusal(_ fixture: KeeperFixture, _ report: RunReport) throws {
    #expect(report.error?.code == .corruptStore, "\(String(describing: report.error))")
    #expect(report.error?.provesDamage == true)
    #expect(report.error?.state == "unchanged")
    #expect(report.backup == nil)
    #expect(fixture.state().instar == nil)
    #expect(
      try fixture.query(
        Int.self, "SELECT count(*) FROM pragma_table_info('ZNOTE') WHERE name = 'ZPINNED'") == 0)
  }
}
