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

  @Test("ends the run by its time limit, and is unchanged", .timeLimit(.minutes(3)))
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
    "ends the worker that fires its trigger, and the report says that a statement took the time",
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
    "stops neither the daemon's work on other stores nor its end",
    .timeLimit(.minutes(3)))
  func daemon() async throws {
    let plugin = try await FixturePlugins.tables.value
    let folder = try TemporaryFolder()
    for name in ["srv", "plugins", "state", "state/phases"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o700])
    }
    try FileManager.default.copyItem(atPath: plugin, toPath: folder.path("plugins/Tables.so"))
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
    try Data(
      """
      state: \(folder.path("state"))
      plugins: [\(folder.path("plugins"))]
      debounce: 50ms
      parallel: 1
      retry: {first: 1h, most: 1h}
      watches:
        - {folder: \(folder.path("srv")), pattern: "*.db"}
      """.utf8
    ).write(to: URL(filePath: folder.path("instard.yml")))
    let daemon = try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instard").path,
      arguments: ["--config", folder.path("instard.yml"), "--foreground"],
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    func wait(for text: String) async throws {
      while !daemon.capturedOutput.contains(text) { try await Task.sleep(for: .milliseconds(50)) }
    }
    try await wait(for: "cannot recover run R1 of '\(cutOff)'")
    try await wait(for: "migrated '\(good)'")
    #expect(folder.names("state/phases").contains("R1.json"))

    let hanging = try move(makeStore(), to: "hanging.db")
    try await wait(for: "locked '\(hanging)'")
    #expect(daemon.terminate(grace: .seconds(60)) == .exited(0))
    #expect(!folder.names("srv/.instar").contains { $0.hasPrefix("run-") })
  }
}
