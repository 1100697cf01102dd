import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("A large store in use, whose stages write the schema alone")
struct StoreChangeTests {
  private static let rows = 250_000

  private static func fixture(
    _ journalMode: String, hasHistory: Bool = false
  ) throws -> KeeperFixture {
    let fixture = try KeeperFixture(journalMode: journalMode, rows: rows)
    if hasHistory {
      try fixture.execute(
        """
        CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER,
          ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB);
        INSERT INTO ACHANGE VALUES (1, 16001, 1, 1, 2, 1, 1, x'02'), (2, 16001, 1, 1, 1, 1, 1, x'02');
        """)
    }
    let pages = try fixture.query(Int.self, "PRAGMA page_count") ?? 0
    #expect(pages >= PageComparison.smallestPageCount)
    return fixture
  }

  private static func migrate(
    _ fixture: KeeperFixture, _ request: MigrationRequest,
    onStep: @escaping (RunEvent.Step) -> Void = { _ in }
  ) throws -> RunReport {
    let conversation = ScriptedConversation([.migrate(request)], onStep: onStep)
    try Keeper(conversation: conversation, host: LightweightHost(besides: SQLHost())).serve()
    return try #require(conversation.reports.first)
  }

  private static func requireMigrated(_ fixture: KeeperFixture, rows: Int) throws {
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE WHERE ZPINNED IS NULL") == rows)
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
  }

  @Test(
    "a large store in use gets the change of the schema itself, so that SQLite writes a few pages",
    arguments: ["delete", "wal"], [false, true])
  func change(journalMode: String, hasHistory: Bool) throws {
    let fixture = try Self.fixture(journalMode, hasHistory: hasHistory)
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("SELECT count(*) FROM sqlite_schema").fetchall()
      print("open", flush=True)
      for line in sys.stdin: print(c.execute(line).fetchall(), flush=True)
      """, path: fixture.store)
    let report = try Self.migrate(fixture, fixture.request())
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.cutover == .writeBack)
    if journalMode == "wal" {
      let log = try FileManager.default.attributesOfItem(atPath: fixture.store + "-wal")
      #expect(try #require(log[.size] as? Int) < 200_000)
    }
    #expect(app.tell("SELECT ZPINNED FROM ZNOTE WHERE Z_PK = 1") == "[(None,)]")
    app.finish()
    try Self.requireMigrated(fixture, rows: Self.rows)
    if hasHistory {
      let columns = "SELECT group_concat(hex(ZCOLUMNS)) FROM ACHANGE"
      #expect(try fixture.query(String.self, columns) == ",02")
    }
    let backup = try #require(report.backup)
    #expect(try fixture.version(of: backup) == Schema.Version(1, 0, 0))
  }

  @Test(
    "a large store in use keeps what an app commits after the copy: the run copies the store again",
    arguments: ["delete", "wal"])
  func laterCommit(journalMode: String) throws {
    let fixture = try Self.fixture(journalMode)
    var request = fixture.request()
    request.whenBusy = .migrate
    let store = fixture.store
    nonisolated(unsafe) var hasWritten = false
    let report = try Self.migrate(fixture, request) { step in
      guard case .verified = step, !hasWritten else { return }
      hasWritten = true
      // An error of the app shows in the count of rows.
      try? OtherProcess(
        """
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
        print("done", flush=True)
        """, path: store
      ).finish()
    }
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.notes.contains { $0.contains("2 copies") }, "\(report.notes)")
    try Self.requireMigrated(fixture, rows: Self.rows + 1)
  }

  @Test(
    "a store stays as it is where the change makes something else of it than of its clone",
    arguments: [
      "", "ALTER TABLE ZNOTE ADD COLUMN ZOTHER INTEGER", "PRAGMA user_version = 7",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 99", "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 2",
      "INSERT INTO Z_PRIMARYKEY VALUES (7, 'Other', 0, 0)",
    ], ["delete", "wal"])
  func otherResult(sql: String, journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let clone = fixture.folder + "/clone"
    try FileManager.default.copyItem(atPath: fixture.store, toPath: clone)
    let queue = try DatabaseQueue(path: clone)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA journal_mode = DELETE; \(KeeperFixture.addPinned); \(sql)")
    }
    let lock = try StoreLock(try StoreProbe.read(fixture.store).file, busyTimeout: 1)
    let before = try lock.read { try SchemaBaseline($0, format: .coredata) }
    let change = StoreChange(
      statements: [KeeperFixture.addPinned],
      stamp: try StoreStamp(
        earlier: before.metadata, uuid: nil,
        path: try MigrationPath(
          from: Schema.Version(1, 0, 0), in: KeeperFixture.manifest().plans[0]),
        layout: try CoreDataLayout(schema: KeeperFixture.second),
        fingerprint: before.structure.fingerprint, reference: nil),
      tables: ["Z_PRIMARYKEY"])
    try queue.writeWithoutTransaction { try change.stamp.write($0) }
    try queue.close()
    let result = try lock.makeChange(like: .file(clone)) { try change.make(in: $0, like: $1) }
    lock.release()
    #expect(result == (sql.isEmpty ? .done : .otherResult))
    #expect(try fixture.version() == Schema.Version(sql.isEmpty ? 2 : 1, 0, 0))
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
  }

  @Test(
    "a store is copied in the next attempt where the change makes something else of it",
    arguments: ["delete", "wal"])
  func copy(journalMode: String) throws {
    let fixture = try Self.fixture(journalMode)
    let app = try OtherProcess.holding(fixture.store, "DEFERRED")
    let conversation = ScriptedConversation([.migrate(fixture.request())])
    try Keeper(
      conversation: conversation, host: TamperingHost(sql: "PRAGMA user_version = 7")
    ).serve()
    let report = try #require(conversation.reports.first)
    app.finish()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      report.notes.contains { $0.contains("2 copies") && $0.hasSuffix("rolled them back") },
      "\(report.notes)")
    try Self.requireMigrated(fixture, rows: Self.rows)
    #expect(try fixture.query(Int.self, "PRAGMA user_version") == 7)
  }
}
