import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@Suite("A daemon and a store that was restored")
struct HeldStoreTests {
  let folder: TemporaryFolder
  private let fixture: DaemonFixture

  init() async throws {
    folder = try TemporaryFolder()
    fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
  }

  @Test("a store that the daemon reached through a link is restored and held by its own path")
  func linkedFolder() async throws {
    try fixture.add("fine")
    try FileManager.default.moveItem(atPath: folder.path("srv"), toPath: folder.path("real"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("srv"), withDestinationPath: folder.path("real"))
    let store = BoxStore(path: folder.path("real/fine.store"))
    let daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    let restored = try await CommandLineTool.run(
      "restore", store.path, "--state-dir", folder.path("state"))
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    let release = "instarctl release '\(store.path)' --state-dir '\(folder.path("state"))'"
    #expect(daemon.capturedOutput.contains(release))
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
  }

  @Test("a store that is gone and that 'restore --to' puts in its place is held from the start")
  func replaced() async throws {
    let store = try fixture.add("fine")
    let daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    for name in folder.names("srv") where name.hasPrefix("fine.store") {
      try FileManager.default.removeItem(atPath: folder.path("srv/\(name)"))
    }
    let restored = try await CommandLineTool.run(
      "restore", store.path, "--to", store.path, "--state-dir", folder.path("state"), "--json")
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    let hold = try #require(try restored.objects(Copy.self).first?.hold)
    #expect(!hold.isReplaced && hold.store == store.path)
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    let held = try await CommandLineTool.run("hold", "--state-dir", folder.path("state"), "--json")
    #expect(try held.objects(Copy.self).map(\.hold) == [hold])
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
  }

  /// A line of `instarctl restore --to --json`, or of `hold --json`.
  private struct Copy: Decodable {
    var hold: Hold?
  }

  @Test(
    "the daemon says who holds a restored store, also after its restart, and migrates it when it is released"
  )
  func held() async throws {
    let store = try fixture.add("fine")
    var daemon = try fixture.start()
    let old = Schema.Version(1, 0, 0)
    let new = Schema.Version(2, 0, 0)
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == new)

    let restored = try await CommandLineTool.run(
      "restore", store.path, "--state-dir", folder.path("state"))
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    #expect(daemon.capturedOutput.contains("restored by run "))
    #expect(try store.version() == old)
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))

    daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    #expect(try store.version() == old)
    let released = try await CommandLineTool.run(
      "release", store.path, "--state-dir", folder.path("state"))
    #expect(released.status == 0)
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == new)
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
  }
}
