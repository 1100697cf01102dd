import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("A daemon and a store that an app has open")
struct BusyDaemonTests {
  @Test("the daemon skips it, and migrates it with a copy of its backup when it is closed")
  func skips() async throws {
    let folder = try TemporaryFolder()
    for name in ["srv", "plugins", "copies"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
    try folder.write(
      """
      state: \(folder.path("state"))
      plugins: [\(folder.path("plugins"))]
      debounce: 50ms
      retry: {first: 100ms, most: 200ms}
      backupFolder: \(folder.path("copies"))
      backupCompression: zstd
      watches:
        - {folder: \(folder.path("srv")), pattern: "*.store", whenBusy: skip}
      """, to: "instard.yml")
    let made = try BoxStore("fine", in: folder)
    let store = BoxStore(path: folder.path("srv/fine.store"))
    try FileManager.default.moveItem(atPath: made.path, toPath: store.path)
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: folder.path("plugins/Boxes.so"))
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1])
      print("open", flush=True)
      sys.stdin.read()
      """, path: store.path)
    let daemon = try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instard").path,
      arguments: ["--config", folder.path("instard.yml"), "--foreground"],
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    func wait(for event: String) async throws {
      for _ in 0..<1500 where !daemon.capturedOutput.contains("INSTAR_EVENT=\(event)") {
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(daemon.capturedOutput.contains("INSTAR_EVENT=\(event)"))
    }
    try await wait(for: "run-busy")
    #expect(daemon.capturedOutput.contains("another process has the store open"))
    #expect(try store.version() == Schema.Version(1, 0, 0))
    app.finish()
    try await wait(for: "run-migrated")
    #expect(try store.version() == Schema.Version(2, 0, 0))
    try await wait(for: "backup-copied")
    #expect(
      folder.names("copies").map { ($0 as NSString).pathExtension } == ["zst", "json"])
    #expect(daemon.terminate(grace: .seconds(10)) == .exited(0))
  }
}
