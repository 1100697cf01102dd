import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// The launch arguments of Apple's frameworks on real processes: an app of the SDK, and a worker.
@Suite("SQL debugging by launch arguments")
struct LaunchArgumentTests {
  private let folder: TemporaryFolder
  private var store: String { folder.path("crates.store") }

  init() throws { folder = try TemporaryFolder() }

  // MARK: An app

  /// What an app says on standard error while it opens its store, migrates it and fetches.
  private func messages(
    _ arguments: [String], environment: [String: String] = [:]
  ) async throws -> [String] {
    let program = try await FixtureApps.crates.value
    let path = folder.path("\(UUID().uuidString).store")
    let made = try await Program.run(program, ["make", path, "3"])
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let app = try ChildProcess.start(
      executable: program, arguments: ["open", path] + arguments,
      environment: ProcessInfo.processInfo.environment
        .merging(["INSTAR_STATE_DIR": folder.path("state")]) { $1 }.merging(environment) { $1 },
      output: .captured(limitBytes: 1 << 20))
    try #require(try app.wait(deadline: soon()) == .exited(0))
    #expect(app.capturedOutput.contains("3.0.0: 3 of 3"))
    return app.capturedOutput.split(separator: "\n").map(String.init)
  }

  /// What a level shows: each statement, its time, its rows, the values bound to it, how SQLite finds its rows.
  private struct Shown: Equatable {
    var statements = false
    var times = false
    var values = false
    var plans = false

    init(_ lines: [String]) {
      statements = lines.contains { $0.hasPrefix("CoreData: sql: SELECT ") }
      times = lines.contains {
        $0.wholeMatch(
          of: /CoreData: annotation: total fetch execution time: \d+\.\d{4}s for \d+ rows.*\./)
          != nil
      }
      values = lines.contains {
        $0.hasPrefix("CoreData: details: SQLite bind[0] = (int64)20000")
      }
      plans = lines.contains { $0.hasPrefix("CoreData: details: SQLite: EXPLAIN QUERY PLAN ") }
    }

    init(level: Int) {
      statements = level >= 1
      times = level >= 1
      values = level >= 3
      plans = level >= 4
    }
  }

  @Test("-com.apple.CoreData.SQLDebug N of an app shows what level N shows", arguments: 0...4)
  func sqlDebug(level: Int) async throws {
    let lines = try await messages(["-com.apple.CoreData.SQLDebug", "\(level)"])
    #expect(Shown(lines) == Shown(level: level))
    // The statements of its migration, too.
    let isMigrationShown = lines.contains {
      $0.hasPrefix("CoreData: sql: ALTER TABLE ZCRATE RENAME COLUMN ZCONTENTS TO ZFILLING")
    }
    #expect(isMigrationShown == (level > 0))
  }

  @Test("-com.apple.coredata.swiftdata.debug 1 of an app is level 1, INSTAR_SQL_DEBUG any level")
  func otherSwitches() async throws {
    #expect(
      try await Shown(messages(["-com.apple.coredata.swiftdata.debug", "1"])) == Shown(level: 1))
    #expect(
      try await Shown(messages([], environment: ["INSTAR_SQL_DEBUG": "4"])) == Shown(level: 4))
    #expect(
      try await Shown(
        messages(["-com.apple.CoreData.SQLDebug", "1"], environment: ["INSTAR_SQL_DEBUG": "3"]))
        == Shown(level: 3))
  }

  // MARK: A worker

  /// What a worker says of the statements it runs on a clone, asked for by nothing but its own launch arguments.
  private func statements(_ arguments: [String]) async throws -> [String] {
    let plugin = try await FixturePlugins.boxes.value
    let name = UUID().uuidString
    let clone = try BoxStore(name, boxes: 3, in: folder, journalMode: "delete")
    let (channel, descriptor) = try LineChannel.pair()
    let installation = try Installation.locate()
    let runtime = installation.swiftRuntimeFolder.map { ["--read", $0] } ?? []
    let worker = try ChildProcess.start(
      executable: installation.worker,
      arguments: arguments + runtime + [
        "--library", installation.library, "--plugin", plugin, "--clone-folder", folder.path,
      ], environment: ProcessInfo.processInfo.environment, channel: descriptor,
      output: .captured(limitBytes: 10_000))
    close(descriptor)
    defer { worker.kill() }
    let request = WorkerRequest.migrate(
      plan: "BoxPlan", from: Schema.Version(1, 0, 0), clone: clone.path,
      store: "/srv/a.store", externalFolder: nil, sqlDebugLevel: 0)
    var statements: [String] = []
    while case .line(let line) = try channel.receive(deadline: soon()) {
      switch try WireCoder.message(WorkerEvent.self, from: line) {
      case .ready: try channel.send(WireCoder.line(request))
      case .sql(let text): statements.append(text)
      case .migrated: return statements
      case .failed(let error): throw error
      case .described, .planned, .stageStarted, .stageFinished, .progress, .valuesLost,
        .fetchedWhole:
        break
      }
    }
    Issue.record("the worker ended: \(worker.capturedOutput)")
    return statements
  }

  @Test(
    "a worker takes the arguments of SQL debugging from its own command line", arguments: [0, 1, 4])
  func worker(level: Int) async throws {
    let statements = try await statements(["-com.apple.CoreData.SQLDebug", "\(level)"])
    #expect(statements.contains { $0.hasPrefix("CoreData: sql: ALTER TABLE ZBOX") } == (level >= 1))
    #expect(statements.contains { $0.contains("SQLite bind[0] = ") } == (level >= 3))
    #expect(statements.contains { $0.contains("EXPLAIN QUERY PLAN") } == (level >= 4))
  }

  @Test("-com.apple.coredata.swiftdata.debug 1 of a worker is level 1")
  func workerOfSwiftData() async throws {
    let statements = try await statements(["-com.apple.coredata.swiftdata.debug", "1"])
    #expect(statements.contains { $0.hasPrefix("CoreData: sql: ") })
    #expect(!statements.contains { $0.contains("SQLite bind") })
  }
}
