import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// A real plugin in a real worker, killed after its last message as the keeper does.
@Suite("What a plugin prints")
struct PluginOutputTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func output(_ name: String) async throws -> String {
    let plugin = try await FixturePlugins.boxes.value
    let clone = try BoxStore(name, boxes: 3, in: folder, journalMode: "delete")
    let (channel, descriptor) = try LineChannel.pair()
    let installation = try Installation.locate()
    let runtime = installation.swiftRuntimeFolder.map { ["--read", $0] } ?? []
    let worker = try ChildProcess.start(
      executable: installation.worker,
      arguments: runtime + [
        "--library", installation.library, "--plugin", plugin, "--clone-folder", folder.path,
      ],
      environment: ProcessInfo.processInfo.environment
        .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }, channel: descriptor,
      output: .captured(limitBytes: 10_000))
    close(descriptor)
    let request = WorkerRequest.migrate(
      plan: "BoxPlan", from: Schema.Version(1, 0, 0), clone: clone.path,
      store: clone.path, externalFolder: nil, sqlDebugLevel: 0)
    messages: while case .line(let line) = try channel.receive(deadline: soon()) {
      switch try WireCoder.message(WorkerEvent.self, from: line) {
      case .ready: try channel.send(WireCoder.line(request))
      case .migrated, .failed: break messages
      case .described, .planned, .stageStarted, .stageFinished, .progress, .valuesLost,
        .fetchedWhole, .sql:
        break
      }
    }
    worker.kill()
    _ = try worker.wait(deadline: soon())
    return worker.capturedOutput
  }

  @Test(
    "what a plugin prints arrives when its closure returns or throws, without a flush and without a last newline",
    arguments: ["print", "print-throw"])
  func whole(_ name: String) async throws {
    #expect(try await output(name) == "opened the box\nclosed it")
  }

  @Test("what a plugin prints arrives by lines when its process dies")
  func lines() async throws {
    #expect(try await output("print-trap").hasPrefix("opened the box\n"))
  }
}
