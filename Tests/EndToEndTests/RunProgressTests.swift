import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// A closure that takes a tenth of a second for each box.
@Suite("The progress of a long stage")
struct RunProgressTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let stage = "1.0.0 → 2.0.0 (1 of 1)"

  @Test("each report of progress is an object with --events, and is right")
  func events() async throws {
    let plugin = try await FixturePlugins.boxes.value
    let store = try BoxStore("painted", boxes: 30, in: folder)
    let answer = try await CommandLineTool.run([
      "migrate", store.path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json",
      "--events",
    ])
    #expect(answer.status == 0)
    let lines = answer.output.split(separator: "\n")
    let events = try lines.dropLast().map {
      try WireCoder.message(RunEvent.self, from: Data($0.utf8))
    }
    #expect(events.first?.step == .started && events.last?.step == .cutOver)
    let reports = events.filter { $0.step == .progress }
    #expect(reports.count > 1)
    #expect(reports.allSatisfy { $0.stage == Self.stage })
    var done = 0
    for progress in try reports.map({ try #require($0.progress) }) {
      #expect(progress.what == "boxes painted" && progress.total == 30)
      #expect(progress.done > done)
      done = progress.done
      // Each box takes a tenth of a second, or more.
      #expect(progress.perSecond > 0 && progress.perSecond <= 10)
      let left = try #require(progress.secondsLeft)
      #expect(abs(left - Double(30 - done) / progress.perSecond) < 0.001)
    }
    let report = try WireCoder.message(RunReport.self, from: Data(try #require(lines.last).utf8))
    #expect(report.result == .migrated)
  }

  @Test(
    "a terminal shows that a command waits for a store that another process has locked",
    arguments: ["migrate", "restore", "rehearse", "verify"], ["delete", "wal"])
  func waiting(command: String, journalMode: String) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: journalMode)
    let plugin = try await FixturePlugins.boxes.value
    let state = ["--state-dir", folder.path("state")]
    if command == "restore" {
      let made = try await CommandLineTool.run(
        ["migrate", store.path, "--plugin", plugin] + state)
      #expect(made.status == 0, Comment(rawValue: made.messages))
    }
    let app = try OtherProcess.holding(store.path, "EXCLUSIVE")
    let arguments =
      [command, store.path] + state + ["--busy-timeout", "3s"]
      + (command == "restore" ? [] : ["--plugin", plugin])
    let line = "waiting for '\(store.path)': another process has locked the store"
    let shown = try await onTerminal(arguments)
    app.finish()
    // Readers of a store with a log wait for nobody.
    let waits = journalMode == "delete" || ["migrate", "restore"].contains(command)
    #expect(shown.messages.contains(line) == waits, Comment(rawValue: shown.messages))
    #expect((shown.status == 4) == waits, Comment(rawValue: shown.messages))
    // Nobody has it locked now.
    let free = try await onTerminal(arguments)
    #expect(
      free.status == 0 && !free.messages.contains("waiting"), Comment(rawValue: free.messages))
    let elsewhere = try OtherProcess.holding(store.path, "EXCLUSIVE")
    #expect(
      try await !CommandLineTool.run(arguments + ["--busy-timeout", "2s"]).messages.contains(
        "waiting"))
    elsewhere.finish()
  }

  /// Runs `instarctl` with a terminal of 200 columns.
  private func onTerminal(_ arguments: [String]) async throws -> SwiftCompiler.Answer {
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let command = ([tool] + arguments).map(CommandText.quoted).joined(separator: " ")
    return try await Program.run(
      "script",
      ["--quiet", "--return", "--command", "stty cols 200; \(command)", folder.path("typescript")])
  }

  @Test("--events without --json is refused")
  func usage() async throws {
    let answer = try await CommandLineTool.run(["migrate", "a.store", "--events"])
    #expect(answer.status == 2)
    #expect(answer.messages.contains("add --json"))
  }

  @Test("the progress of a stage is in the service's status and in the journal")
  func daemon() async throws {
    let plugin = try await FixturePlugins.boxes.value
    let fixture = try DaemonFixture(in: folder, plugins: [plugin])
    _ = try fixture.add("painted", boxes: 60)
    let manager = try NotifySocket(in: folder.path)
    let instard = try fixture.start(environment: ["NOTIFY_SOCKET": manager.path])
    defer { instard.terminate(grace: .seconds(10)) }
    let status = try #require(manager.wait(for: "1 running ('painted.store': "))
    #expect(status.contains("stage \(Self.stage): "))
    #expect(status.contains(" %, ") && status.contains(" left)"))
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: instard)
    let entries = instard.capturedOutput.split(separator: "\n")
      .filter { $0.contains("INSTAR_EVENT=run-progress") }
    #expect(entries.count >= 1)
    #expect(entries.first?.contains(" of 60 boxes painted (") == true)
  }

  @Test("a closure that asks ends by itself when its worker is told to stop")
  func canceled() async throws {
    let plugin = try await FixturePlugins.boxes.value
    let clone = try BoxStore("painted", boxes: 600, in: folder, journalMode: "delete")
    let (channel, descriptor) = try LineChannel.pair()
    let installation = try Installation.locate()
    let runtime = installation.swiftRuntimeFolder.map { ["--read", $0] } ?? []
    let worker = try ChildProcess.start(
      executable: installation.worker,
      arguments: runtime + [
        "--library", installation.library, "--plugin", plugin, "--clone-folder", folder.path,
      ], environment: ProcessInfo.processInfo.environment, channel: descriptor,
      output: .captured(limitBytes: 10_000))
    close(descriptor)
    defer { worker.kill() }
    let request = WorkerRequest.migrate(
      plan: "BoxPlan", from: Schema.Version(1, 0, 0), clone: clone.path, store: clone.path,
      externalFolder: nil, sqlDebugLevel: 0)
    var failure: InstarError?
    messages: while case .line(let line) = try channel.receive(deadline: soon()) {
      switch try WireCoder.message(WorkerEvent.self, from: line) {
      case .ready: try channel.send(WireCoder.line(request))
      case .progress: worker.kill(SIGTERM)
      case .failed(let error):
        failure = error
        break messages
      case .migrated: break messages
      case .described, .planned, .stageStarted, .stageFinished, .valuesLost, .fetchedWhole, .sql:
        break
      }
    }
    #expect(try #require(failure).cause == "willMigrate threw: CancellationError()")
  }
}
