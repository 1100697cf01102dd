import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
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
    try run(arguments, variables: variables, as: nil)
  }

  /// - Parameter user: Who runs it; `nil` for root.
  private func run(
    _ arguments: [String], variables: [String: String], as user: UInt32?
  ) throws -> (status: ChildProcess.Termination?, output: String) {
    let becoming = user.map { "setpriv --reuid=\($0) --regid=\($0) --clear-groups " } ?? ""
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    var environment = ProcessInfo.processInfo.environment
    environment["INSTAR_STATE_DIR"] = nil
    let command = try ChildProcess.start(
      executable: "/usr/bin/unshare",
      arguments: [
        "--mount", "sh", "-c",
        "mount -t overlay overlay -o lowerdir=\(folder.path("etc")):/etc /etc && exec \(becoming)\"$0\" \"$@\"",
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
    #expect(report.contains("restored") && !report.contains("cannot be reached"), "\(report)")
    // A change of the hold or of the file during the probe has the store probed once more after its event.
    try await wait("status to count the store as held") {
      try run("status").output.contains("held")
    }
    #expect(try run("hold").output.contains(store.path))
    #expect(try run("release", store.path).status == .exited(0))
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)
  }

  private var alice: UInt32 { 4001 }
  /// The holds in the user's own state folder.
  private var home: String { "home/.local/state/instar/holds" }

  /// Runs `instarctl` as an ordinary user.
  private func asAlice(
    _ arguments: String...
  ) throws -> (status: ChildProcess.Termination?, output: String) {
    try run(arguments, variables: ["HOME": folder.path("home")], as: alice)
  }

  /// Makes an ordinary user's two stores: one in a watched folder, and one elsewhere.
  private func storesOfAlice() throws -> (watched: String, other: String) {
    try fixture.configureWatch("recursive: true")
    for name in ["srv/alice", "home"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      try #require(chown(folder.path(name), alice, alice) == 0)
    }
    let (watched, other) = (folder.path("srv/alice/a.store"), folder.path("home/b.store"))
    for path in [watched, other] {
      let made = try fixture.add("fine")
      try FileManager.default.moveItem(atPath: made.path, toPath: path)
      try #require(chown(path, alice, alice) == 0)
    }
    return (watched, other)
  }

  @Test("an ordinary user's commands ask the service about the user's stores that it watches")
  func ordinaryUser() async throws {
    let foreign = try fixture.add("fine", as: "foreign")
    let (watched, other) = try storesOfAlice()
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)

    let history = try asAlice("history")
    #expect(history.output.contains(watched), "\(history.output)")
    #expect(!history.output.contains(foreign.path), "\(history.output)")
    let report = try asAlice("report").output
    #expect(report.contains("  1 run ") && report.contains(", of instard\n"), "\(report)")
    #expect(report.contains("  stores   1\n"), "\(report)")
    let held = try asAlice("hold", "--why", "auditing", watched)
    #expect(held.status == .exited(0) && !held.output.contains("note:"), "\(held.output)")
    #expect(folder.names("state/holds").count == 1 && folder.names(home) == [])
    let refused = try asAlice("hold", "--why", "mine", foreign.path)
    #expect(refused.status == .exited(3) && refused.output.contains("[I608]"), "\(refused.output)")
    let own = try asAlice("hold", "--why", "mine", other)
    #expect(own.status == .exited(0) && !own.output.contains("note:"), "\(own.output)")
    #expect(folder.names("state/holds").count == 1 && folder.names(home).count == 1)
    let listed = try asAlice("hold").output
    #expect(listed.contains(watched) && listed.contains(other), "\(listed)")
    for path in [watched, other] {
      let released = try asAlice("release", path)
      #expect(released.output.contains("released; was held by"), "\(released.output)")
    }
    #expect(folder.names("state/holds") == [] && folder.names(home) == [])
    let both = try asAlice(
      "history", "--socket", fixture.socket, "--state-dir", folder.path("state"))
    #expect(both.status == .exited(2) && both.output.contains("not both"), "\(both.output)")

    daemon.kill()
    _ = try daemon.wait()
    let unseen = try asAlice("hold", "--why", "mine", watched).output
    #expect(
      unseen.contains("instard.service does not see this hold")
        && unseen.contains("while instard runs"),
      "\(unseen)")
  }

  @Test("the service holds a store that its owner restores, until the owner releases it")
  func ownersRestore() async throws {
    let (watched, _) = try storesOfAlice()
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    let restored = try asAlice("restore", watched)
    #expect(restored.status == .exited(0), "\(restored.output)")
    #expect(!restored.output.contains("does not see this hold"), "\(restored.output)")
    #expect(restored.output.contains("run: instarctl release '\(watched)'"), "\(restored.output)")
    try await fixture.wait(for: "INSTAR_EVENT=store-held", in: daemon)
    #expect(try run("hold").output.contains("restored by run"))
    #expect(try BoxStore(path: watched).version() == Schema.Version(1, 0, 0))
    #expect(folder.names("state/holds").count == 1 && folder.names(home).count == 1)
    #expect(try asAlice("release", watched).status == .exited(0))
    #expect(folder.names("state/holds") == [] && folder.names(home) == [])
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)

    // A restore that does not take place leaves no hold.
    for name in folder.names("srv/alice/.instar") where name.hasSuffix(".backup") {
      try Data("damaged".utf8).write(to: URL(filePath: folder.path("srv/alice/.instar/\(name)")))
    }
    let refused = try asAlice("restore", watched)
    #expect(refused.status != .exited(0), "\(refused.output)")
    #expect(folder.names("state/holds") == [] && folder.names(home) == [], "\(refused.output)")
  }

  @Test("a hold that ends because its file is not a store leaves the user's other hold")
  func otherHold() async throws {
    let (watched, _) = try storesOfAlice()
    #expect(try asAlice("hold", "--why", "own", watched).status == .exited(0))
    #expect(folder.names(home).count == 1)
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try Data("text, and no database of SQLite".utf8).write(to: URL(filePath: watched))
    let refused = try asAlice("hold", "--why", "second", watched)
    #expect(refused.output.contains("[I101]"), "\(refused.output)")
    #expect(folder.names("state/holds") == [] && folder.names(home).count == 1)
  }

  @Test("the service's hold of an interrupted restore ends when a later restore discards that one")
  func interruptedRestore() async throws {
    let (watched, _) = try storesOfAlice()
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    // What a restore leaves that is killed before its cutover.
    let own = try StateFolder(path: folder.path("home/.local/state/instar"))
    var phase = PhaseRecord(run: "R9", store: watched, phase: .cloning, startedAt: 1)
    phase.restoredRun = "R1"
    let journal = try RunJournal.start(run: phase.run, store: watched, in: own)
    try journal.enter(phase)
    journal.unlock()
    let owner = "\(alice):\(alice)"
    #expect(
      try await Program.run("chown", ["-R", owner, folder.path("home/.local")]).status == 0)
    #expect(try asAlice("hold", "--why", "restored by run R9", watched).status == .exited(0))
    #expect(try run("hold").output.contains("restored by run R9"))

    let restored = try asAlice("restore", watched)
    #expect(restored.status == .exited(0), "\(restored.output)")
    let holds = try run("hold").output
    #expect(holds.contains("restored by run") && !holds.contains("R9"), "\(holds)")
    #expect(folder.names("state/holds").count == 1 && folder.names(home).count == 1)
  }

  @Test("only a check of the service's configuration compares it with the service's unit")
  func comparedUnit() throws {
    let units = folder.path("etc/systemd/system")
    try FileManager.default.createDirectory(atPath: units, withIntermediateDirectories: true)
    try Data().write(to: URL(filePath: units + "/instard.service"))
    try install("watches: [{folder: \(folder.path("srv"))}]\n")
    let note = "the service's unit does not match this configuration"
    let own = try run("config", "check").output
    #expect(own.contains(note), "\(own)")
    let other = try run("config", "check", folder.path("instard.yml")).output
    #expect(other.contains("can be used") && !other.contains(note), "\(other)")
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
