import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("A daemon and a store that was restored")
struct HeldStoreTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    for name in ["srv", "plugins"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
    try folder.write(
      """
      state: \(folder.path("state"))
      plugins: [\(folder.path("plugins"))]
      debounce: 50ms
      watches:
        - {folder: \(folder.path("srv")), pattern: "*.store"}
      """, to: "instard.yml")
  }

  private func startDaemon() throws -> ChildProcess {
    try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instard").path,
      arguments: ["--config", folder.path("instard.yml"), "--foreground"],
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
  }

  /// Waits until `condition` holds, and fails after `soon()`.
  private func wait(_ what: Comment, until condition: () throws -> Bool) async throws {
    let deadline = soon()
    while ContinuousClock.now < deadline {
      if try condition() { return }
      try await Task.sleep(for: .milliseconds(20))
    }
    Issue.record("waited in vain: \(what)")
  }

  @Test("a store that the daemon reached through a link is restored and held by its own path")
  func linkedFolder() async throws {
    let made = try BoxStore("fine", in: folder)
    try FileManager.default.moveItem(atPath: folder.path("srv"), toPath: folder.path("real"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("srv"), withDestinationPath: folder.path("real"))
    let store = BoxStore(path: folder.path("real/fine.store"))
    try FileManager.default.moveItem(atPath: made.path, toPath: store.path)
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: folder.path("plugins/Boxes.so"))
    let daemon = try startDaemon()
    try await wait("the migration") { daemon.capturedOutput.contains("INSTAR_EVENT=run-migrated") }
    let restored = try await CommandLineTool.run(
      "restore", store.path, "--state-dir", folder.path("state"))
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    try await wait("the event") { daemon.capturedOutput.contains("INSTAR_EVENT=store-held") }
    let release = "instarctl release '\(store.path)' --state-dir '\(folder.path("state"))'"
    #expect(daemon.capturedOutput.contains(release))
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(daemon.terminate(grace: .seconds(10)) == .exited(0))
  }

  @Test("the daemon says who holds it, also after its restart, and migrates it when it is released")
  func held() async throws {
    let made = try BoxStore("fine", in: folder)
    let store = BoxStore(path: folder.path("srv/fine.store"))
    try FileManager.default.moveItem(atPath: made.path, toPath: store.path)
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: folder.path("plugins/Boxes.so"))
    var daemon = try startDaemon()
    let old = Schema.Version(1, 0, 0)
    let new = Schema.Version(2, 0, 0)
    try await wait("the migration") { daemon.capturedOutput.contains("INSTAR_EVENT=run-migrated") }
    #expect(try store.version() == new)

    let restored = try await CommandLineTool.run(
      "restore", store.path, "--state-dir", folder.path("state"))
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    try await wait("the event") { daemon.capturedOutput.contains("INSTAR_EVENT=store-held") }
    #expect(daemon.capturedOutput.contains("restored by run "))
    #expect(try store.version() == old)
    #expect(daemon.terminate(grace: .seconds(10)) == .exited(0))

    daemon = try startDaemon()
    try await wait("the event of the next daemon") {
      daemon.capturedOutput.contains("INSTAR_EVENT=store-held")
    }
    #expect(try store.version() == old)
    let released = try await CommandLineTool.run(
      "release", store.path, "--state-dir", folder.path("state"))
    #expect(released.status == 0)
    try await wait("the second migration") {
      daemon.capturedOutput.contains("INSTAR_EVENT=run-migrated")
    }
    #expect(try store.version() == new)
    #expect(daemon.terminate(grace: .seconds(10)) == .exited(0))
  }
}
