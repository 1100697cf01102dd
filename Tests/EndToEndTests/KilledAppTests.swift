import Foundation
import GRDB
import InstarLinux
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

/// Kills an app at random instants while it migrates its store by opening a container. `INSTAR_TEST_SEED` repeats the
/// instants of another run, as far as two runs take the same time.
@Suite("An app that is killed while it opens its container")
struct KilledAppTests {
  private static let attempts = 12
  private static let crates = 150

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// What the app is waited for with, before the random time begins.
  private enum Start: CaseIterable {
    /// The run folder is there: backup and clone are being made.
    case cloning
    /// The backup has its final name: the stages are at work, or the clone is being verified.
    case working
    /// The run's phase is `cutover`: the store is about to be written.
    case cutover
  }

  private func start(_ program: String, _ store: String, state: String) throws -> ChildProcess {
    try ChildProcess.start(
      executable: program, arguments: ["open", store],
      environment: ProcessInfo.processInfo.environment.merging(["INSTAR_STATE_DIR": state]) { $1 },
      output: .captured(limitBytes: 1 << 20))
  }

  /// Waits until the app has come to `start`; `false` where it ended first.
  private func wait(for start: Start, _ app: ChildProcess, in attempt: String) -> Bool {
    while (try? app.wait(deadline: .now)) == nil {
      switch start {
      case .cloning:
        if folder.names("\(attempt)/.instar").contains(where: { $0.hasPrefix("run-") }) {
          return true
        }
      case .working:
        if folder.names("\(attempt)/state/backups").contains(where: { $0.hasSuffix(".backup") }) {
          return true
        }
      case .cutover:
        let isWriting = folder.names("\(attempt)/state/phases").contains { name in
          let record = try? String(
            contentsOfFile: folder.path("\(attempt)/state/phases/\(name)"), encoding: .utf8)
          return record?.contains("cutover") == true
        }
        if isWriting { return true }
      }
      usleep(300)
    }
    return false
  }

  /// The version of a store that SQLite itself has brought in order, as any opener's SQLite does.
  private func version(of store: String) throws -> Schema.Version? {
    let queue = try DatabaseQueue(path: store)
    defer { try? queue.close() }
    return try queue.inDatabase { db in
      #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM ZCRATE") == Self.crates)
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(ZCRATE) FROM ZITEM") == Self.crates)
      return try CoreDataMetadata.read(db).version
    }
  }

  @Test(
    "an app killed while it opens a container leaves a whole store, old or new, and the next start finishes the migration",
    arguments: ["wal", "delete"])
  func killed(journalMode: String) async throws {
    let program = try await FixtureApps.crates.value
    let original = folder.path("original.store")
    let made = try await Program.run(program, ["make", original, "\(Self.crates)"])
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let queue = try DatabaseQueue(path: original)
    try queue.inDatabase { try $0.execute(sql: "PRAGMA journal_mode = \(journalMode)") }
    try queue.close()

    var random = SeededGenerator(seed: KilledKeeperTests.seed)
    var killed = 0
    for attempt in 0..<Self.attempts {
      let place: Comment =
        "seed \(KilledKeeperTests.seed), attempt \(attempt) of \(journalMode)"
      let name = "\(attempt)"
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      let store = folder.path("\(name)/crates.store")
      try FileManager.default.copyItem(atPath: original, toPath: store)
      let state = folder.path("\(name)/state")

      let app = try start(program, store, state: state)
      let from = Start.allCases[attempt % Start.allCases.count]
      let delay = UInt32.random(
        in: 0...(from == .cutover ? 8_000 : 60_000), using: &random)
      if wait(for: from, app, in: name) {
        usleep(delay)
        app.kill()
      }
      let end = try app.wait(deadline: soon())
      if end != .exited(0) { killed += 1 }

      let found = try version(of: store)
      #expect(found == Schema.Version(1, 0, 0) || found == Schema.Version(3, 0, 0), place)

      let again = try start(program, store, state: state)
      #expect(try again.wait(deadline: soon()) == .exited(0), place)
      let output = again.capturedOutput
      #expect(output.contains("3.0.0: \(Self.crates) of \(Self.crates)"), place)
      #expect(try version(of: store) == Schema.Version(3, 0, 0), place)
      #expect(!folder.names(name).contains(".instar"), place)
      #expect(folder.names("\(name)/state/phases").filter { $0.hasSuffix(".json") } == [], place)
      let backups = folder.names("\(name)/state/backups").filter { $0.hasSuffix(".backup") }
      #expect(backups.count == 1, place)
    }
    #expect(killed > 0, "seed \(KilledKeeperTests.seed): no attempt was killed")
  }
}
