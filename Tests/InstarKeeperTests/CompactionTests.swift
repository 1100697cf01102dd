import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("Free pages after the stages")
struct CompactionTests {
  private static let rows = 3_000
  /// Leaves ten rows.
  private static let host = SQLHost(
    kind: .custom, sql: KeeperFixture.addPinned + "; DELETE FROM ZNOTE WHERE Z_PK > 10")

  @Test(
    "free pages of more than a quarter are given back, and the backup has them",
    arguments: ["INCREMENTAL", "NONE"], CutoverPolicy.allCases)
  func compacts(autoVacuum: String, cutover: CutoverPolicy) throws {
    let fixture = try KeeperFixture(rows: Self.rows)
    try fixture.execute("PRAGMA auto_vacuum = \(autoVacuum); VACUUM")
    let before = try #require(try fixture.query(Int.self, "PRAGMA page_count"))
    var request = fixture.request()
    request.cutover = cutover
    let (report, _) = try fixture.migrate(Self.host, request: request)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      report.notes.contains { $0.hasSuffix("and were given back to the file system") },
      "\(report.notes)")
    #expect(try fixture.query(Int.self, "PRAGMA freelist_count") == 0)
    let after = try #require(try fixture.query(Int.self, "PRAGMA page_count"))
    #expect(after * 2 < before, "\(after) of \(before) pages")
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 10)
    #expect(
      try fixture.query(Int.self, "PRAGMA auto_vacuum") == (autoVacuum == "NONE" ? 0 : 2))
    let backup = try #require(report.backup)
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE", in: backup) == Self.rows)
  }

  @Test(
    "free pages stay where rows of an ordinary table could get other rowids",
    arguments: [
      ("id INTEGER PRIMARY KEY, what", true), ("id TEXT PRIMARY KEY, what", false),
      ("what", false), ("id INT PRIMARY KEY, what", false),
      ("id INTEGER, n INTEGER, what, PRIMARY KEY (id, n)", false),
    ])
  func hiddenRowIDs(_ table: (columns: String, isCompacted: Bool)) throws {
    let (columns, isCompacted) = table
    let folder = try TemporaryFolder()
    let path = folder.path("clone.db")
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE log (\(columns));
          CREATE TABLE keyed (k TEXT PRIMARY KEY) WITHOUT ROWID;
          INSERT INTO log (rowid, what) VALUES (7, 'seven');
          INSERT INTO log (rowid, what) VALUES (9, zeroblob(1000000));
          DELETE FROM log WHERE rowid = 9;
          """)
    }
    try queue.close()
    let layout = try StoreFormat.plain.layout(
      of: Schema(entities: [], version: Schema.Version(1, 0, 0)))
    let clone = Clone.file(path)
    let compaction = try #require(try Compaction(path, layout))
    let note = try compaction.perform { _ in }
    #expect(note.contains("did not compact the store") == !isCompacted, "\(note)")
    let size = try clone.size()
    #expect((size < 100_000) == isCompacted, "\(size) bytes")
    let row = try clone.read {
      try Int.fetchOne($0, sql: "SELECT rowid FROM log")
    }
    #expect(row == 7)
  }

  @Test("free pages stay where they are few")
  func few() throws {
    let fixture = try KeeperFixture(rows: Self.rows)
    let (report, _) = try fixture.migrate(
      SQLHost(kind: .custom, sql: KeeperFixture.addPinned + "; DELETE FROM ZNOTE WHERE Z_PK > 2700")
    )
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(!report.notes.contains { $0.contains("pages were free") })
    #expect(try fixture.query(Int.self, "PRAGMA freelist_count") ?? 0 > 0)
  }

  @Test("a clone whose list of free pages is damaged ends the run, with the store unchanged")
  func damagedList() throws {
    let fixture = try KeeperFixture(rows: Self.rows)
    let before = fixture.state().bytes
    var host = Self.host
    host.tamper = { work in
      let file = try FileHandle(forUpdating: URL(filePath: work.clone))
      defer { try? file.close() }
      // The first trunk page of the list of free pages.
      try file.seek(toOffset: 32)
      try file.write(contentsOf: [0, 0, 0, 2])
    }
    let (report, _) = try fixture.migrate(host)
    #expect(report.error?.code == .verificationFailed, "\(String(describing: report.error))")
    #expect(report.error?.state == "unchanged")
    #expect(fixture.state().bytes == before)
  }
}
