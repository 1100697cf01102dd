import Foundation
import GRDB
import InstarKeeper
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("A store with a replicator")
struct ReplicatedStoreTests {
  /// What Litestream does to a database: its tables and folder, no checkpoints by others, and a read transaction that
  /// never ends, so that the log is not restarted.
  private static func litestream(_ store: String) throws -> OtherProcess {
    try OtherProcess(
      """
      folder, name = os.path.split(sys.argv[1])
      os.makedirs(os.path.join(folder, "." + name + "-litestream"), exist_ok=True)
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA journal_mode = WAL")
      c.execute("PRAGMA wal_autocheckpoint = 0")
      c.execute("CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
      c.execute("CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)")
      c.execute("INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1")
      c.execute("BEGIN")
      c.execute("SELECT count(*) FROM _litestream_seq").fetchall()
      print("replicating", flush=True)
      for line in sys.stdin:
          os._exit(0)
      """, path: store)
  }

  private func log(_ fixture: KeeperFixture) throws -> Data {
    try #require(FileManager.default.contents(atPath: fixture.store + "-wal"))
  }

  @Test(
    "a store is migrated by a commit in its log, which keeps every byte that was in it",
    arguments: [true, false])
  func keepsLog(isRunning: Bool) throws {
    let fixture = try KeeperFixture(rows: 5000)
    let litestream = try Self.litestream(fixture.store)
    // Without a process that has the store open, SQLite checkpoints the log when the last connection is closed.
    if !isRunning { litestream.kill() }
    let before = try log(fixture)
    #expect(!before.isEmpty)
    let file = fixture.state().bytes
    let (report, _) = try fixture.migrate()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.notes.contains { $0.hasPrefix("litestream replicates the store") })
    let after = try log(fixture)
    #expect(after.count > before.count && after.starts(with: before))
    // The store's own file has no page of the new version: all of them are in the log.
    #expect(fixture.state().bytes == file)
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM _litestream_seq") == 1)
    litestream.kill()
  }

  @Test("a store with a replicator keeps its log in a recovery too")
  func recovery() throws {
    let fixture = try KeeperFixture()
    try Self.litestream(fixture.store).kill()
    let (report, conversation) = try fixture.migrate()
    #expect(report.result == .migrated)
    let before = try log(fixture)
    let record = try #require(conversation.asked.last)
    #expect(try record.recovered().outcome == .finished)
    #expect(try log(fixture).starts(with: before))
  }

  @Test("a store without a log is refused, with the next step, and is unchanged")
  func refused() throws {
    let fixture = try KeeperFixture(journalMode: "delete")
    let folder = fixture.folder + "/.Notes.store-litestream"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    let before = fixture.state().bytes
    let (report, conversation) = try fixture.migrate()
    #expect(report.result == .refused)
    #expect(report.error?.code == .unsupported && report.error?.state == "unchanged")
    #expect(report.error?.cause.contains(folder) == true)
    #expect(report.error?.next?.contains("rm -r '\(folder)'") == true)
    #expect(conversation.asked.isEmpty)
    #expect(fixture.state().bytes == before && fixture.state().instar == nil)
    // What the error advises.
    try fixture.execute("PRAGMA journal_mode = WAL")
    #expect(try fixture.migrate().report.result == .migrated)
  }

  @Test("a log that is turned off between the inspection and the lock is noticed")
  func turnedOff() throws {
    let fixture = try KeeperFixture(journalMode: "wal")
    try FileManager.default.createDirectory(
      atPath: fixture.folder + "/.Notes.store-litestream", withIntermediateDirectories: false)
    let (report, _) = try fixture.migrate(onAsk: { record in
      if record.phase == .cloning {
        #expect(throws: Never.self) { try fixture.execute("PRAGMA journal_mode = DELETE") }
      }
      return true
    })
    #expect(report.error?.code == .unsupported && report.error?.state == "unchanged")
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
  }

  @Test("the probe and the plan report the replicator; its tables belong to no version")
  func reported() throws {
    let fixture = try KeeperFixture()
    let litestream = try Self.litestream(fixture.store)
    let conversation = ScriptedConversation([
      .probe(stores: [fixture.store], plans: [fixture.plugin], rows: .none, findsHolders: true),
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil),
    ])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    litestream.kill()
    guard case .probed(let encoded) = conversation.events.first else {
      Issue.record("\(conversation.events)")
      return
    }
    let probe = try encoded.report()
    #expect(probe.state == .unversioned || probe.state == .behind, "\(probe.differences)")
    #expect(probe.replicator?.name == .litestream)
    #expect(probe.replicator?.folder == fixture.folder + "/.Notes.store-litestream")
    #expect(probe.replicator?.tables == ["_litestream_lock", "_litestream_seq"])
    #expect(probe.holders.map(\.pid) == [litestream.pid])
    #expect(
      conversation.plans.first?.findings.contains {
        $0.severity == .note && $0.message.hasPrefix("litestream replicates")
      } == true)
    let plain = try KeeperFixture()
    #expect(try StoreProbe.read(plain.store).replicator == nil)
  }
}
