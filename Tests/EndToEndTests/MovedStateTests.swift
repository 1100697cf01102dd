import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Each test has an /etc/instar of its own: a mount namespace in which a folder of the test lies over /etc.
@Suite(
  "A state folder that the configuration moved",
  .enabled(if: geteuid() == 0, "mounting needs root"))
struct MovedStateTests {
  private let folder: TemporaryFolder
  private let fixture: DaemonFixture

  init() async throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
    fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try install("state: \(folder.path("state"))\nsocket: \(fixture.socket)\n")
  }

  /// Makes the text a file of the installed configuration.
  private func install(_ text: String) throws {
    let conf = folder.path("etc/instar/conf.d")
    try FileManager.default.createDirectory(atPath: conf, withIntermediateDirectories: true)
    try Data("watches: []\n".utf8).write(to: URL(filePath: folder.path("etc/instar/instard.yml")))
    try Data(text.utf8).write(to: URL(filePath: conf + "/st.yml"))
  }

  /// Runs `instarctl` where the configuration is installed, and returns all that it prints.
  private func run(
    _ arguments: String..., variables: [String: String] = [:]
  ) throws -> (status: ChildProcess.Termination?, output: String) {
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    var environment = ProcessInfo.processInfo.environment
    environment["INSTAR_STATE_DIR"] = nil
    let command = try ChildProcess.start(
      executable: "/usr/bin/unshare",
      arguments: [
        "--mount", "sh", "-c",
        "mount -t overlay overlay -o lowerdir=\(folder.path("etc")):/etc /etc && exec \"$0\" \"$@\"",
        tool,
      ] + arguments,
      environment: environment.merging(variables) { $1 }, output: .captured(limitBytes: 1 << 20))
    return (try command.wait(deadline: soon()), command.capturedOutput)
  }

  @Test("a store that root restored stays at its old version until the release that is printed")
  func restore() async throws {
    let store = try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    let restored = try run("restore", store.path)
    #expect(restored.status == .exited(0), "\(restored.output)")
    // The option is the default, so the command is short.
    #expect(
      restored.output.contains("run: instarctl release '\(store.path)'\n"), "\(restored.output)")
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(try run("history").output.contains("restored"))
    #expect(try run("backups", "list").output.contains(store.path))
    let report = try run("report").output
    #expect(report.contains("restored") && !report.contains("cannot be asked"), "\(report)")
    #expect(try run("status").output.contains("held"))
    #expect(try run("hold").output.contains(store.path))
    #expect(try run("release", store.path).status == .exited(0))
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)
  }

  @Test("an option and the environment count more than the configuration")
  func precedence() throws {
    let (named, other) = (folder.path("named"), folder.path("other"))
    #expect(try run("history").output.contains("'\(folder.path("state"))'"))
    #expect(try run("history", "--state-dir", named).output.contains("'\(named)'"))
    let variables = ["INSTAR_STATE_DIR": other]
    #expect(try run("history", variables: variables).output.contains("'\(other)'"))
    #expect(try run("status").output.contains("'\(fixture.socket)'"))
    #expect(try run("status", "--socket", "/none.sock").output.contains("'/none.sock'"))
    try install("state: \(folder.path("state"))\n")
    #expect(try run("status").output.contains("'\(folder.path("state"))/instard.sock'"))
  }

  @Test("a configuration that cannot be read stops no command, and the warning names what is used")
  func unreadable() throws {
    try install("state: [\n")
    let answer = try run("history", "/none.store")
    #expect(answer.status == .exited(0))
    #expect(answer.output.contains("warning: cannot"), "\(answer.output)")
    #expect(answer.output.contains("using the state folder '/var/lib/instar'"), "\(answer.output)")
    let named = try run("history", "/none.store", "--state-dir", folder.path("state"))
    #expect(!named.output.contains("warning"), "\(named.output)")
  }
}
