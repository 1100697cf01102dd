import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("A daemon and a store that an app has open")
struct BusyDaemonTests {
  @Test(
    "the daemon skips a store that an app has open, and migrates it with a copy of its backup when it is closed"
  )
  func skips() async throws {
    let folder = try TemporaryFolder()
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try folder.makeFolder("copies")
    try fixture.configure(
      """
      backupFolder: \(folder.path("copies"))
      backupCompression: zstd
      """)
    try fixture.configureWatch("whenBusy: skip")
    let store = try fixture.add("fine")
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1])
      print("open", flush=True)
      sys.stdin.read()
      """, path: store.path)
    let daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=run-busy", in: daemon)
    #expect(daemon.capturedOutput.contains("another process has the store open"))
    #expect(try store.version() == Schema.Version(1, 0, 0))
    app.finish()
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    try await fixture.wait(for: "INSTAR_EVENT=backup-copied", in: daemon)
    #expect(
      folder.names("copies").map { ($0 as NSString).pathExtension } == ["zst", "json"])
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
  }
}
