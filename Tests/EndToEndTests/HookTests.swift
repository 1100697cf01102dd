import Foundation
import Glibc
import InstarLinux
import InstarTestSupport
import Testing

@Suite("Hooks of a running daemon")
struct HookTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func addHook(_ event: String, _ script: String) throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("hooks.d/\(event).d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    try folder.write("#!/bin/sh\n\(script)\n", to: "hooks.d/\(event).d/hook", mode: 0o755)
  }

  @Test(
    "hooks hear of stores that are migrated or quarantined, while one that hangs holds up nothing")
  func events() async throws {
    let fixture = try DaemonFixture(
      in: folder, plugins: [try await FixturePlugins.boxes.value])
    let user = ProcessIdentity.User(uid: geteuid()).name
    try fixture.configure(
      "hooks: {folder: \(folder.path("hooks.d")), user: \(user), timeout: 5s}")
    for event in ["run-migrated", "run-failed"] {
      // The entry first: the test reads it as soon as the event is there.
      try addHook(event, "cat >>\(folder.path("entries")); echo \"$1\" >>\(folder.path("events"))")
    }
    try addHook("daemon-started", "sleep 1000")
    try fixture.add("throw")
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=hook-failed", in: daemon)
    #expect(daemon.capturedOutput.contains("the hook did not end within 5 s, and was killed"))

    let deadline = soon()
    while ((try? folder.text(of: "events")) ?? "").split(separator: "\n").count < 2 {
      try #require(ContinuousClock.now < deadline, "\(daemon.capturedOutput)")
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(
      Set(try folder.text(of: "events").split(separator: "\n")) == ["run-failed", "run-migrated"])
    let entries = try folder.text(of: "entries").split(separator: "\n").map {
      try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
    }
    let failed = try #require(entries.first { $0["INSTAR_EVENT"] == "run-failed" })
    #expect(failed["INSTAR_CODE"] == "I301")
    #expect(failed["INSTAR_STORE"] == folder.path("srv/throw.store"))
    #expect(failed["MESSAGE"]?.contains("instard retries when the store") == true)
    #expect(failed["PRIORITY"] == "3")
  }
}
