import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
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
    let keeper = try #require(zip(keepers, nice).first { $1 == 7 }?.0)
    let ionice = try ChildProcess.start(
      executable: "/usr/bin/ionice", arguments: ["-p", "\(keeper)"],
      output: .captured(limitBytes: 1024))
    _ = try ionice.wait()
    #expect(ionice.capturedOutput == "idle\n")
  }

  @Test("the stores of a watch are compared with its plans only")
  func plans() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("plan: OtherPlan")
    let store = try fixture.add("fine")
    var daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "no plugin has a plan named 'OtherPlan'", in: daemon)
    daemon.kill()
    _ = try daemon.wait()
    #expect(try store.version() == Schema.Version(1, 0, 0))

    try fixture.replaceInConfiguration("plan: OtherPlan", with: "plan: [OtherPlan, BoxPlan]")
    daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test("a plan that no plugin has is reported once, with the name that was probably meant")
  func misspelledPlan() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("plan: BoxPlam")
    for number in 0..<3 { try fixture.add("fine", as: "\(number)") }
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=store-unknown", times: 3, in: daemon)
    #expect(
      daemon.capturedOutput.components(separatedBy: "INSTAR_EVENT=problem").count == 2,
      "\(daemon.capturedOutput)")
    let hint = "has a plan named 'BoxPlam'; did you mean 'BoxPlan'?"
    #expect(daemon.capturedOutput.contains("no plugin \(hint)"))
    for command in [
      ["status"], ["stores", "--plan", "BoxPlam"], ["history", "--plan", "BoxPlam"],
      ["pause", "--plan", "BoxPlam"], ["approve", "--plan", "BoxPlam"],
    ] {
      let answer = try await CommandLineTool.run(command + ["--socket", fixture.socket])
      #expect(
        (answer.output + answer.messages).replacing(/\s+/, with: " ").contains(hint),
        "\(command): \(answer.output)\(answer.messages)")
    }
    let check = try await CommandLineTool.run(
      ["config", "check", folder.path("instard.yml")])
    #expect(check.status == 0 && check.messages.contains("no plugin \(hint)"), "\(check.messages)")
  }

  @Test("a plan that a refused plugin may have is not called missing: the plugin is named")
  func planOfRefusedPlugin() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("plan: BoxPlan")
    let name = try #require(folder.names("plugins").first)
    let plugin = folder.path("plugins/\(name)")
    // Everybody can replace it. Nobody is still copying it.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -60), .posixPermissions: 0o666],
      ofItemAtPath: plugin)
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    let reason =
      "no usable plugin has a plan named 'BoxPlan'; instard refused the plugin '\(plugin)', which may have it"
    try await fixture.wait(for: reason, in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=store-unknown", in: daemon)
    #expect(!daemon.capturedOutput.contains("no plugin has"), "\(daemon.capturedOutput)")
    for command in [
      ["status"], ["stores", "--plan", "BoxPlan"], ["history", "--plan", "BoxPlan"],
      ["approve", "--plan", "BoxPlan"],
    ] {
      let answer = try await CommandLineTool.run(command + ["--socket", fixture.socket])
      let text = (answer.output + answer.messages).replacing(/\s+/, with: " ")
      #expect(
        text.contains("; instard refused the plugin '\(plugin)', which may have it"),
        "\(command): \(text)")
      #expect(!text.contains("no plugin"), "\(command): \(text)")
    }
  }

  @Test("a folder that is made later is watched if it matches the pattern of a watch")
  func folderPattern() async throws {
    let fixture = try await fixture()
    let folder = folder.path("srv")
    try fixture.replaceInConfiguration("folder: \(folder)", with: "folder: '\(folder)/*/stores'")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "watching", in: daemon)
    for name in ["a/stores", "b/other"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
    }
    let (other, store) = (
      try fixture.add("fine", as: "b/other/x"), try fixture.add("fine", as: "a/stores/y")
    )
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try other.version() == Schema.Version(1, 0, 0))
  }

  @Test("commands without --plugin use the plugins of instard, and leave out those that it refuses")
  func installedPlugins() async throws {
    let fixture = try await fixture()
    let store = try fixture.add("fine")
    try Data("no plugin".utf8).write(to: URL(filePath: folder.path("plugins/Broken.so")))
    let configuration = folder.path("instard.yml")
    let probed = try await CommandLineTool.run([
      "probe", "--json", "--config", configuration, store.path,
    ])
    #expect(try probed.objects(ProbeReport.self).first?.state == .behind)
    #expect(probed.messages.contains("Broken.so"))

    let listed = try await CommandLineTool.run(["plugin", "list", "--config", configuration])
    #expect(listed.status == 3)
    #expect(listed.output.contains("BoxPlan  1.0.0 → 2.0.0"))
    #expect(listed.output.contains("refused: "))
  }
}
