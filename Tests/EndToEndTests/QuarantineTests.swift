import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Quarantined stores over a restart of the daemon")
struct QuarantineEndToEndTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func status(_ fixture: DaemonFixture) async throws -> Manager.Status {
    let answer = try await CommandLineTool.run(["status", "--json", "--socket", fixture.socket])
    return try #require(try answer.objects(Manager.Status.self).first)
  }

  /// Starts another daemon after one that was killed.
  private func restart(_ daemon: ChildProcess, _ fixture: DaemonFixture) throws -> ChildProcess {
    daemon.kill()
    _ = try daemon.wait()
    return try fixture.start()
  }

  @Test(
    "a killed daemon that starts again does not run a quarantined store, and shows why, until it changes"
  )
  func killed() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let store = try fixture.add("throw")
    var daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    // A late file event of its run makes the store wait for the debounce.
    var failures: [Manager.Store] = []
    try await wait("the store in quarantine") {
      failures = try await status(fixture).failures
      return failures.map(\.activity) == [.quarantined]
    }

    daemon = try restart(daemon, fixture)
    // A store that is migrated shows that plugins and folders were read.
    let fine = try fixture.add("fine")
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try fine.version() == Schema.Version(2, 0, 0))
    #expect(try await status(fixture).failures == failures)
    #expect(!daemon.capturedOutput.contains("INSTAR_EVENT=run-failed"))

    try FileManager.default.setAttributes(
      [.modificationDate: Date()], ofItemAtPath: store.path)
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
  }

  @Test("a plugin or a setting that changed meanwhile ends the quarantine")
  func otherPlugin() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.add("throw")
    var daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    daemon.kill()
    _ = try daemon.wait()
    let plugin = try #require(folder.names("plugins").first)
    try FileManager.default.setAttributes(
      [.modificationDate: Date()], ofItemAtPath: folder.path("plugins/\(plugin)"))
    daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)

    try fixture.configureWatch("stageTimeLimit: 9m")
    daemon = try restart(daemon, fixture)
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
  }
}
