import Foundation
import GRDB
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Stores with an expression that passes a probe and then practically never ends.
@Suite("A store that hangs its keeper")
struct HangingStoreTests {
  /// A store that is behind, and whose check never ends: one SQL function, which SQLite cannot interrupt.
  private func makeStore() throws -> TableStore {
    let store = try TableStore("alembic")
    try store.open { db in
      try db.execute(
        sql: "INSERT INTO audit VALUES ('now', 'nothing'); PRAGMA writable_schema = ON")
      try db.execute(
        sql: "UPDATE sqlite_master SET sql = ? WHERE name = 'audit'",
        arguments: [
          """
          CREATE TABLE audit (at TEXT, what TEXT, hang INTEGER NOT NULL
            AS (instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || 'b')))
          """
        ])
    }
    return store
  }

  @Test(
    "a store that hangs its keeper ends the run by its time limit, and is unchanged",
    .timeLimit(.minutes(10)))
  func run() async throws {
    let store = try makeStore()
    let before = try Data(contentsOf: URL(filePath: store.path))
    let answer = try await CommandLineTool.run([
      "migrate", store.path, "--plugin", try await FixturePlugins.tables.value, "--state-dir",
      store.folder.path("state"), "--json",
    ])
    let report = try #require(try answer.objects(RunReport.self).first)
    #expect(report.error?.code == .timeLimit, "\(answer.output)")
    #expect(report.error?.state == "unchanged")
    #expect(report.error?.next?.contains("sqlite3 -readonly '\(store.path)' .schema") == true)
    #expect(try Data(contentsOf: URL(filePath: store.path)) == before)
    #expect(store.folder.names() == ["alembic.db", "state"])
    #expect(store.folder.names("state/phases") == [])
  }

  @Test(
    "a store whose trigger hangs ends its worker, and the report says that a statement took the time",
    arguments: [
      (limit: "1h", cause: "processor time"), (limit: "4s", cause: "a statement on the clone"),
    ])
  func trigger(limit: String, cause: String) async throws {
    let store = try TableStore("django")
    try store.open { db in
      try db.execute(
        sql: """
          CREATE TRIGGER hang AFTER INSERT ON library_author BEGIN
            SELECT instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || 'b');
          END
          """)
    }
    let before = try Data(contentsOf: URL(filePath: store.path))
    let answer = try await CommandLineTool.run([
      "migrate", store.path, "--plugin", try await FixturePlugins.tables.value, "--state-dir",
      store.folder.path("state"), "--json", "--stage-time-limit", limit,
    ])
    let report = try #require(try answer.objects(RunReport.self).first)
    #expect(report.error?.code == .timeLimit, "\(answer.output)")
    #expect(report.error?.cause.contains(cause) == true, "\(answer.output)")
    #expect(report.error?.next?.contains("sqlite3 -readonly '\(store.path)' .schema") == true)
    #expect(report.error?.state == "unchanged")
    #expect(try Data(contentsOf: URL(filePath: store.path)) == before)
    #expect(store.folder.names() == ["django.db", "state"])
  }

  @Test(
    "a store that hangs its keeper stops neither the daemon's work on other stores nor its end",
    .timeLimit(.minutes(10)))
  func daemon() async throws {
    let folder = try TemporaryFolder()
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.tables.value])
    for name in ["state", "state/phases"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o700])
    }
    func move(_ store: TableStore, to name: String) throws -> String {
      let path = folder.path("srv/\(name)")
      try FileManager.default.moveItem(atPath: store.path, toPath: path)
      return path
    }
    // Its run was cut off in its cutover; the recovery checks the store.
    let cutOff = try move(makeStore(), to: "cut-off.db")
    var record = PhaseRecord(run: "R1", store: cutOff, phase: .cutover, startedAt: 0)
    record.to = Schema.Version(2, 0, 0)
    record.versionSource = .userVersion
    try WireCoder.line(record).write(to: URL(filePath: folder.path("state/phases/R1.json")))
    let good = try move(TableStore("alembic"), to: "good.db")
    try fixture.replaceInConfiguration("*.store", with: "*.db")
    try fixture.replaceInConfiguration("first: 200ms, most: 1s", with: "first: 1h, most: 1h")
    try fixture.configure("parallel: 1")
    let daemon = try fixture.start()
    try await fixture.wait(for: "cannot recover run R1 of '\(cutOff)'", in: daemon)
    try await fixture.wait(for: "migrated '\(good)'", in: daemon)
    #expect(folder.names("state/phases").contains("R1.json"))

    let hanging = try move(makeStore(), to: "hanging.db")
    try await fixture.wait(for: "locked '\(hanging)'", in: daemon)
    #expect(daemon.terminate(grace: .seconds(60)) == .exited(0))
    #expect(!folder.names("srv/.instar").contains { $0.hasPrefix("run-") })
  }
}
