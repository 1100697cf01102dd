import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("Settings of a watch")
struct WatchSettingsTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func fixture() async throws -> DaemonFixture {
    try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
  }

  /// The numbers of the processes that a process has started.
  private func children(of parent: Int32, named name: String) throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap(Int32.init).filter {
      // A process may have ended since the folder was listed.
      guard let status = try? String(contentsOfFile: "/proc/\($0)/stat", encoding: .utf8) else {
        return false
      }
      // The name is cut to 15 bytes (proc_pid_stat(5)).
      return status.hasPrefix("\($0) (\(name.prefix(15))) ")
        && status.split(separator: ")").last?.split(separator: " ").dropFirst().first
          == "\(parent)"
    }
  }

  @Test("a run has the priority of its watch")
  func priority() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("nice: 7, diskPriority: idle")
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    // A keeper that nobody needs stays for some seconds.
    let keepers = try children(of: daemon.pid, named: "instar-keeper")
    let nice = keepers.map { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t($0)) }
    #expect(nice.max() == 7)
    let keeper = try #require(zip(keepers, nice).first { $1 == 7 }?.0)
    let ionice = try ChildProcess.start(
      executable: "/usr/bin/ionice", arguments: ["-p", "\(keeper)"],
      output: .captured(limitBytes: 1024))
    _ = try ionice.wait()
    #expect(ionice.capturedOutput == "idle\n")
  }
}
