import Foundation
import Glibc
import InstarLinux
import InstarTestSupport
import InstarWire
import InstarWorker
import Testing

@Suite("The fork server of a keeper, with the engine")
struct ForkedWorkerTests {
  /// Sends a request to a worker that the server forks, and returns its answer.
  private func answer(
    _ request: WorkerRequest, of server: ForkServer, plugin: String
  ) throws -> WorkerEvent {
    let installation = try Installation.locate()
    let runtime = try #require(installation.swiftRuntimeFolder)
    let (channel, descriptor) = try LineChannel.pair(lineLimitBytes: WireCoder.lineLimitBytes)
    let worker = try server.start(
      arguments: ["--library", installation.library, "--plugin", plugin, "--read", runtime]
        + ["--read", CommandLineTool.productsFolder.path],
      channel: descriptor, output: .captured(limitBytes: 4000))
    defer {
      worker.kill()
      _ = try? worker.wait()
    }
    close(descriptor)
    func next() throws -> WorkerEvent {
      guard case .line(let line) = try channel.receive(deadline: soon()) else {
        throw NoAnswer(output: worker.capturedOutput)
      }
      return try WireCoder.message(WorkerEvent.self, from: line)
    }
    guard case .ready = try next() else { throw NoAnswer(output: worker.capturedOutput) }
    try channel.send(try WireCoder.line(request))
    return try next()
  }

  private struct NoAnswer: Error {
    let output: String
  }

  @Test("a keeper's fork server prepares by a migration in memory that succeeds")
  func prepares() throws {
    try WorkerPreparation.perform()
  }

  @Test(
    "a keeper's fork server loads the engine without leaving a thread, and forks workers that describe their plugins"
  )
  func describes() async throws {
    let installation = try Installation.locate()
    let server = try ForkServer(
      executable: installation.worker,
      arguments: ["--serve", "--library", installation.library],
      environment: ProcessInfo.processInfo.environment)
    for (plugin, plan) in [
      (try await FixturePlugins.boxes.value, "BoxPlan"),
      (try await FixturePlugins.cars.value, "CarPlan"),
      (try await FixturePlugins.boxes.value, "BoxPlan"),
    ] {
      guard case .described(let manifest) = try answer(.describe, of: server, plugin: plugin)
      else {
        Issue.record("\(plugin) was not described")
        continue
      }
      #expect(manifest.plans.map(\.name) == [plan])
    }
  }
}
