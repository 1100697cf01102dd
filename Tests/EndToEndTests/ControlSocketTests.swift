import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Steering a running daemon")
struct ControlSocketTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func fixture() async throws -> DaemonFixture {
    try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
  }

  private func call(
    _ fixture: DaemonFixture, _ arguments: String...
  ) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(arguments + ["--socket", fixture.socket])
  }

  private func stores(
    _ fixture: DaemonFixture, _ arguments: String...
  ) async throws -> [Manager.Store] {
    let answer = try await CommandLineTool.run(
      ["stores", "--json", "--socket", fixture.socket] + arguments)
    #expect(answer.status == 0, "\(answer.messages)")
    return try answer.objects(Manager.Store.self)
  }

  private func status(_ fixture: DaemonFixture) async throws -> Manager.Status {
    let answer = try await call(fixture, "status", "--json")
    return try #require(try answer.objects(Manager.Status.self).first)
  }

  private var alice: UInt32 { 4001 }

  /// Runs `instarctl` as an ordinary user.
  private func asAlice(
    _ arguments: [String], _ fixture: DaemonFixture
  ) throws -> (status: ChildProcess.Termination?, output: String) {
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let command = try ChildProcess.start(
      executable: "/usr/bin/setpriv",
      arguments: ["--reuid=\(alice)", "--regid=\(alice)", "--clear-groups", tool] + arguments
        + ["--socket", fixture.socket],
      environment: ["PATH": "/usr/bin:/bin", "HOME": "/nonexistent"].merging(
        ProcessInfo.processInfo.environment
      ) { $1 }, output: .captured(limitBytes: 1 << 20))
    return (try command.wait(deadline: soon()), command.capturedOutput)
  }

  /// Puts a store of boxes into a folder of its owner.
  private func ownedStore(
    _ name: String, _ owner: UInt32, _ fixture: DaemonFixture
  ) throws -> BoxStore {
    let made = try fixture.add("fine")
    let path = folder.path("srv/\(name)")
    let parent = (path as NSString).deletingLastPathComponent
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: false)
    try FileManager.default.moveItem(atPath: made.path, toPath: path)
    try #require(chown(parent, owner, owner) == 0 && chown(path, owner, owner) == 0)
    return BoxStore(path: path)
  }

  private func waitForActivity(
    _ activity: Manager.Activity, of store: String, _ fixture: DaemonFixture
  ) async throws {
    let deadline = soon()
    while try await !stores(fixture, "--activity", activity.rawValue).map(\.store).contains(store) {
      try #require(ContinuousClock.now < deadline, "\(store) is not \(activity)")
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test("a paused daemon starts no run, also after it was killed, until it is resumed")
  func pause() async throws {
    let fixture = try await fixture()
    var daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "watching", in: daemon)
    let answer = try await call(fixture, "pause", "--why", "a test")
    #expect(answer.status == 0 && answer.output.contains(": a test"))
    let store = try fixture.add("fine")
    try await fixture.wait(for: "INSTAR_EVENT=store-behind", in: daemon)
    #expect(try await stores(fixture).map(\.activity) == [.queued])
    daemon.kill()
    _ = try daemon.wait()

    daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=store-behind", in: daemon)
    let paused = try await status(fixture)
    #expect(paused.pause?.why == "a test" && paused.runs.isEmpty)
    #expect(paused.states == ["behind": 1] && paused.activities == ["queued": 1])
    #expect(try store.version() == Schema.Version(1, 0, 0))

    let resumed = try await call(fixture, "resume")
    #expect(resumed.status == 0 && resumed.messages.isEmpty, "\(resumed.messages)")
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try await status(fixture).pause == nil)
  }

  @Test("a store that failed is shown with its error, and retried when somebody asks for it")
  func retry() async throws {
    let fixture = try await fixture()
    let store = try fixture.add("throw")
    let fine = try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    // A late file event of its run makes the store wait for the debounce.
    var quarantined: [Manager.Store] = []
    try await wait("the failed store in quarantine, also in the status") {
      quarantined = try await stores(fixture, "--activity", "quarantined")
      let failures = try await status(fixture).failures
      return !quarantined.isEmpty && failures == quarantined
    }
    #expect(quarantined.map(\.store) == [store.path])
    #expect(quarantined.first?.error?.code == .stageFailed)
    #expect(try await stores(fixture).map(\.store) == [fine.path, store.path])

    let retried = try await call(fixture, "retry")
    #expect(retried.status == 0 && retried.messages == "instard retries 1 store\n")
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", times: 2, in: daemon)
    let approval = try await call(fixture, "approve", store.path)
    #expect(
      approval.status == 2
        && approval.messages.contains("cannot approve the migration of '\(store.path)'")
        && approval.messages.contains("the store does not wait for an approval")
        && approval.messages.contains("run: instarctl stores --socket '\(fixture.socket)'"),
      "\(approval.messages)")
    let unknown = folder.path("srv/none.store")
    #expect(try await call(fixture, "retry", unknown).status == 5)
    let none = try await call(fixture, "retry", store.path, unknown)
    #expect(none.status == 5 && none.messages.contains("retries none of the 2 stores"))
    try await waitForActivity(.idle, of: fine.path, fixture)
    let current = try await call(fixture, "retry", fine.path)
    #expect(
      current.messages == "instard does not retry '\(fine.path)' now: current at 2.0.0\n")
  }

  @Test("the status shows damaged stores and refused plugins with their causes, after what failed")
  func unusable() async throws {
    let fixture = try await fixture()
    let damaged = try fixture.add("fine", as: "a")
    let restorable = try fixture.add("fine", as: "b")
    let migrated = try await CommandLineTool.run([
      "migrate", "--plugin", try await FixturePlugins.boxes.value, "--state-dir",
      folder.path("state"), restorable.path,
    ])
    try #require(migrated.status == 0, "\(migrated.messages)")
    try #require(truncate(restorable.path, 4096) == 0)
    let size = try FileManager.default.attributesOfItem(atPath: damaged.path)[.size] as? Int
    try #require(truncate(damaged.path, off_t(try #require(size) / 2)) == 0)
    let failing = try fixture.add("throw")
    let other = try folder.write("some words\n", to: "srv/text.store")
    let plugin = folder.path("plugins/Broken.so")
    try folder.write("not a plugin", to: "plugins/Broken.so")
    // Nobody is still copying it.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -60)], ofItemAtPath: plugin)
    let daemon = try fixture.start()
    defer { daemon.kill() }
    for event in ["run-failed", "store-corrupt", "store-not-a-store", "plugin-refused"] {
      try await fixture.wait(for: "INSTAR_EVENT=\(event)", in: daemon)
    }
    // The journal has one entry for both.
    let deadline = soon()
    while try await stores(fixture, "--state", "corrupt").count < 2 {
      try #require(ContinuousClock.now < deadline, "\(daemon.capturedOutput)")
      try await Task.sleep(for: .milliseconds(20))
    }
    let status = try await status(fixture)
    try #require(
      status.failures.map(\.store) == [failing.path, damaged.path, restorable.path, other])
    #expect(status.failures[1].state == .corrupt && status.failures[1].reason != nil)
    #expect(status.failures.last?.state == .notAStore)
    #expect(status.refusedPlugins.map(\.plugin) == [plugin])
    #expect(status.refusedPlugins.first?.error.code == .notAPlugin)
    let text = try await call(fixture, "status").output
    #expect(text.contains("  unusable \(damaged.path): corrupt: the file is truncated"), "\(text)")
    #expect(text.contains("  unusable \(other): not a store: not a SQLite database"), "\(text)")
    #expect(text.contains("1 not a store"), "\(text)")
    // It has no backup.
    #expect(text.contains("restore the store from a backup of your own"), "\(text)")
    let restoring = "instarctl restore '\(restorable.path)' --state-dir '\(folder.path("state"))'"
    #expect(text.contains(restoring), "\(text)")
    #expect(text.components(separatedBy: "instarctl restore").count == 2, "\(text)")
    #expect(text.contains("  refused  \(plugin): ") && text.contains("[I401]"), "\(text)")
    #expect(try await call(fixture, "retry").messages == "instard retries 4 stores\n")
  }

  @Test("stores that are damaged alike are one entry after the first, and a reload repeats none")
  func damagedAlike() async throws {
    let fixture = try await fixture()
    for number in 0..<3 {
      let store = try fixture.add("fine", as: "\(number)").path
      let size = try FileManager.default.attributesOfItem(atPath: store)[.size] as? Int
      try #require(truncate(store, off_t(try #require(size) / 2)) == 0)
    }
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=store-corrupt", in: daemon)
    let deadline = soon()
    while try await stores(fixture, "--state", "corrupt").count < 3 {
      try #require(ContinuousClock.now < deadline, "\(daemon.capturedOutput)")
      try await Task.sleep(for: .milliseconds(20))
    }
    daemon.kill(SIGHUP)
    try await fixture.wait(for: "INSTAR_EVENT=configuration-loaded", in: daemon)
    // Its probe comes after those of the reload.
    try fixture.add("fine", as: "later")
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    daemon.kill(SIGTERM)
    _ = try daemon.wait()
    let output = daemon.capturedOutput
    #expect(output.components(separatedBy: "INSTAR_EVENT=store-corrupt").count == 2, "\(output)")
    #expect(output.contains("2 more stores are damaged, like "), "\(output)")
  }

  @Test("the journal and the status name the process that keeps a store locked")
  func locked() async throws {
    let fixture = try await fixture()
    try fixture.replaceInConfiguration("most: 1s", with: "most: 1s, attempts: 1")
    let store = try fixture.add("fine")
    // With a rollback journal, a writer keeps readers out too.
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA journal_mode = DELETE")
      c.execute("BEGIN EXCLUSIVE")
      print("holding", flush=True)
      sys.stdin.read()
      """, path: store.path)
    defer { app.finish() }
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=probe-failed", in: daemon)
    let entry = try #require(
      daemon.capturedOutput.split(separator: "\n").first { $0.contains("probe-failed") })
    #expect(entry.contains("the store is open in ") && entry.contains("(python3"), "\(entry)")
    let text = try await call(fixture, "status").output
    #expect(text.contains("the store is open in ") && text.contains("(python3"), "\(text)")
    #expect(text.contains("stop process \(app.pid) (python3"), "\(text)")
    #expect(text.contains(", then run: instarctl retry --socket"), "\(text)")
  }

  @Test(
    "failures that were counted are in the journal before another plugin replaces theirs, or none",
    arguments: [true, false])
  func countedFailures(isRemoved: Bool) async throws {
    let fixture = try await fixture()
    let stores = try (0..<2).map { try fixture.add("throw", as: "bad\($0)") }
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    for store in stores { try await waitForActivity(.quarantined, of: store.path, fixture) }
    let plugin = try #require(folder.names("plugins").first)
    let path = folder.path("plugins/\(plugin)")
    if isRemoved {
      try FileManager.default.removeItem(atPath: path)
      try await fixture.wait(for: "INSTAR_EVENT=plugin-removed", in: daemon)
    } else {
      try FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: path)
      try await fixture.wait(for: "INSTAR_EVENT=plugin-accepted", times: 2, in: daemon)
    }
    let next = isRemoved ? "INSTAR_EVENT=plugin-removed" : "INSTAR_EVENT=plugin-accepted"
    let parts = daemon.capturedOutput.components(separatedBy: next)
    #expect(parts[isRemoved ? 0 : 1].contains("INSTAR_EVENT=runs-failed"), "\(parts)")
  }

  @Test("a store whose damage only a run finds is corrupt at once", arguments: [true, false])
  func damageInRun(isTruncated: Bool) async throws {
    let fixture = try await fixture()
    let store = try fixture.add("fine", boxes: 2000)
    // The last page has rows, which no probe reads.
    let file = try FileHandle(forUpdating: URL(filePath: store.path))
    let end = try file.seekToEnd()
    if isTruncated {
      try file.truncate(atOffset: end - 4096)
      // As after a write of an old version of SQLite, which does not count the pages in the header.
      try file.seek(toOffset: 92)
      try file.write(contentsOf: Data(count: 4))
    } else {
      try file.seek(toOffset: end - 4096)
      try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
    }
    try file.close()
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=store-corrupt", in: daemon)
    try await fixture.wait(for: "INSTAR_CODE=I102", in: daemon)
    #expect(daemon.capturedOutput.contains("INSTAR_EVENT=store-behind"))
    // A late file event of its run makes the store wait for the debounce.
    var corrupt: [Manager.Store] = []
    try await wait("the store in quarantine") {
      corrupt = try await stores(fixture, "--state", "corrupt")
      return corrupt.first?.activity == .quarantined
    }
    #expect(corrupt.map(\.store) == [store.path])
    #expect(try await status(fixture).failures.map(\.store) == [store.path])
  }

  @Test("status says where instard found no plugin")
  func noPlugin() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [])
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=store-unknown", in: daemon)
    let text = try await call(fixture, "status").output
    #expect(text.contains("\n  plugin   none in '\(folder.path("plugins"))'\n"), "\(text)")
  }

  @Test(
    "a rollout halts at its budget with one alert, also over a restart, until somebody resumes it")
  func rollout() async throws {
    let fixture = try await fixture()
    try fixture.configure("rollout: {waves: [50%], budget: 0}")
    // At least one of the two stores of the first wave fails.
    for number in 0..<3 { try fixture.add("throw", as: "bad\(number)") }
    try fixture.add("fine", as: "good")
    var daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=rollout-halted", in: daemon)
    let resume = "run: instarctl resume --socket '\(fixture.socket)' --plan BoxPlan"
    #expect(daemon.capturedOutput.contains(resume), "\(daemon.capturedOutput)")
    let halted = try #require(try await status(fixture).rollouts.first)
    #expect(halted.isHaltedByFailures && halted.wave == 1 && halted.stores == 4)
    // The other store of the wave has had its turn, or waits once more.
    #expect(halted.failed >= 1 && halted.waiting >= 2)
    #expect(try await !stores(fixture, "--wave", "1").isEmpty)
    let failed = try await stores(fixture, "--turn", "failed", "--plan", "BoxPlan")
    #expect(failed.count >= halted.failed && failed.allSatisfy { $0.turn == .failed })
    let text = try await call(fixture, "status").output
    #expect(
      text.contains("halted by instard")
        && text.contains("instarctl resume --plan BoxPlan --socket '\(fixture.socket)'"))
    let waiting = try await call(fixture, "stores", "--activity", "pending").output
    #expect(waiting.contains(resume), "\(waiting)")
    let page = try await call(fixture, "report", "--html", "-").output
    #expect(page.contains("instarctl resume --socket "), "\(page)")
    daemon.kill()
    _ = try daemon.wait()

    daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=store-behind", times: halted.waiting, in: daemon)
    #expect(try await status(fixture).rollouts.first?.halt?.why == halted.halt?.why)
    #expect(!daemon.capturedOutput.contains("INSTAR_EVENT=run-started"))
    // It halts once more for each that fails and was not in the first wave.
    let deadline = soon()
    while try await stores(fixture, "--state", "current").isEmpty {
      try #require(ContinuousClock.now < deadline, "\(daemon.capturedOutput)")
      if try await status(fixture).rollouts.first?.halt != nil {
        #expect(try await call(fixture, "resume", "--plan", "BoxPlan").status == 0)
      }
      try await Task.sleep(for: .milliseconds(50))
    }
    #expect(try await call(fixture, "resume", "--plan", "NoPlan").status == 3)
  }

  @Test("a store whose watch asks is migrated after an approval")
  func approval() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("policy: ask")
    let store = try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=store-behind", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=wave-opened", in: daemon)
    #expect(try await stores(fixture).map(\.activity) == [.pending])
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(try await call(fixture, "approve").status == 2)
    let resumed = try await call(fixture, "resume", "--plan", "BoxPlan")
    #expect(resumed.status == 0)
    #expect(resumed.messages == "nothing to do: the rollout is not halted\n")
    #expect(try await call(fixture, "approve", folder.path("srv/none.store")).status == 5)
    #expect(try await call(fixture, "approve", store.path).status == 0)
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(
      try await call(fixture, "resume").messages == "nothing to do: instard is not paused\n")
    #expect(
      try await call(fixture, "retry").messages
        == "nothing to do: no store waits for another attempt\n")
    #expect(
      try await call(fixture, "approve", "--plan", "BoxPlan").messages
        == "no store of BoxPlan waits for an approval now; instard migrates those that it finds later\n"
    )
  }

  @Test(
    "an owner approves its own store, and no other one",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func approvalByOwner() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("policy: ask, recursive: true")
    let alices = try ownedStore("alice/a.store", alice, fixture)
    let other = try fixture.add("fine", as: "other")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=wave-opened", in: daemon)
    for refused in [["approve", other.path], ["approve", "--plan", "BoxPlan"]] {
      let (status, output) = try asAlice(refused, fixture)
      #expect(status == .exited(3) && output.contains("[I608]"), "\(refused): \(output)")
    }
    let advice =
      "waits for an approval; run: instarctl approve --socket '\(fixture.socket)' STORE"
    for command in [
      ["retry", alices.path], ["stores"], ["retry", "--json", alices.path], ["stores", "--json"],
    ] {
      let output = try asAlice(command, fixture).output
      #expect(output.contains(advice), "\(output)")
    }
    #expect(try asAlice(["approve", alices.path], fixture).status == .exited(0))
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try alices.version() == Schema.Version(2, 0, 0))
    #expect(try other.version() == Schema.Version(1, 0, 0))
    try await waitForActivity(.pending, of: other.path, fixture)
  }

  @Test("a store is migrated only if its rehearsal succeeds")
  func rehearsal() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("policy: rehearse")
    let fine = try fixture.add("fine")
    let bad = try fixture.add("throw")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    #expect(daemon.capturedOutput.components(separatedBy: "INSTAR_EVENT=run-rehearsed").count == 2)
    #expect(try fine.version() == Schema.Version(2, 0, 0))
    #expect(try bad.version() == Schema.Version(1, 0, 0))
  }

  @Test("rescan finds a folder that was missing")
  func rescan() async throws {
    let fixture = try await fixture()
    try FileManager.default.removeItem(atPath: folder.path("srv"))
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=watch-failed", in: daemon)
    #expect(try await status(fixture).folders.first?.error != nil)
    try FileManager.default.createDirectory(
      atPath: folder.path("srv"), withIntermediateDirectories: false)
    #expect(try await call(fixture, "rescan").status == 0)
    try await fixture.wait(for: "INSTAR_EVENT=watch-started", in: daemon)
    #expect(try await status(fixture).folders.map(\.error) == [nil])
  }

  @Test("a daemon without standard input, output and error writes its log into no file of its own")
  func closedStreams() async throws {
    let fixture = try await fixture()
    let daemon = try ChildProcess.start(
      executable: "/bin/sh",
      arguments: [
        "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-",
        CommandLineTool.productsFolder.appendingPathComponent("instard").path, "--config",
        folder.path("instard.yml"), "--foreground",
      ], environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    defer { daemon.kill() }
    let deadline = soon()
    while !FileManager.default.fileExists(atPath: fixture.socket) {
      try #require(ContinuousClock.now < deadline, "no socket")
      try await Task.sleep(for: .milliseconds(20))
    }
    let files = try (0...2).map {
      try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(daemon.pid)/fd/\($0)")
    }
    #expect(files == ["/dev/null", "/dev/null", "/dev/null"])
  }

  @Test("without a daemon the status is 6, and the error says so, and what to start")
  func unreachable() async throws {
    // A daemon that was killed leaves its socket.
    close(try UnixSocket.listen(at: folder.path("left.sock")))
    for name in ["none.sock", "left.sock"] {
      let socket = folder.path(name)
      let answer = try await CommandLineTool.run(["status", "--json", "--socket", socket])
      #expect(answer.status == 6)
      let error = try #require(try answer.errors().first)
      #expect(error.code == .daemonNotReachable && error.what == "cannot reach instard")
      #expect(error.cause == "instard is not running: nothing listens on '\(socket)'")
      #expect(error.next?.contains("systemctl start instard") == true)
    }
    let file = try folder.write("x", to: "file.sock")
    let refused = try await CommandLineTool.run(["status", "--socket", file])
    #expect(refused.status == 6 && refused.messages.contains("the file is not a socket"))
    let long = folder.path(String(repeating: "x", count: 120))
    let answer = try await CommandLineTool.run(["status", "--socket", long])
    #expect(answer.status == 6 && answer.messages.contains("cannot connect to '\(long)'"))
  }

  @Test(
    "another user sees and retries its own stores only, and cannot pause the daemon",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func ordinaryUser() async throws {
    let fixture = try await fixture()
    let theirs = try fixture.add("throw")
    _ = try fixture.add("fine")
    try #require(chown(theirs.path, alice, alice) == 0)
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=store-behind", times: 2, in: daemon)
    let (listed, stores) = try asAlice(["stores"], fixture)
    #expect(listed == .exited(0))
    #expect(stores.contains("throw.store") && !stores.contains("fine.store"))
    #expect(try asAlice(["retry", theirs.path], fixture).status == .exited(0))
    #expect(try asAlice(["retry", folder.path("srv/fine.store")], fixture).status == .exited(5))
    let fine = folder.path("srv/fine.store")
    let held = try asAlice(["hold", "--why", "auditing", theirs.path], fixture)
    #expect(
      held.status == .exited(0) && held.output.contains("held by 4001 since"), "\(held.output)")
    #expect(try await call(fixture, "hold").output.contains(theirs.path))
    #expect(try asAlice(["hold"], fixture).output.contains("auditing"))
    try await waitForActivity(.held, of: theirs.path, fixture)
    let released = try asAlice(["release", theirs.path], fixture)
    #expect(released.status == .exited(0) && released.output.contains("released; was held"))
    #expect(try await call(fixture, "release", theirs.path).output.contains("not held by instard"))
    for command in [["hold", "--why", "mine"], ["release"], ["history"]] {
      let (status, output) = try asAlice(command + [fine], fixture)
      #expect(status == .exited(3) && output.contains("[I608]"), "\(command): \(output)")
    }
    #expect(try await call(fixture, "history").output.contains(fine))
    #expect(try !asAlice(["history"], fixture).output.contains(fine))
    for command in ["pause", "resume", "rescan"] {
      let (status, output) = try asAlice([command], fixture)
      #expect(status == .exited(3) && output.contains("[I608]"), "\(command): \(output)")
    }
  }

  @Test(
    "an owner holds and releases a new store that no scan has found yet, and no other one",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func newStore() async throws {
    let fixture = try await fixture()
    try fixture.configureWatch("recursive: true")
    // Until then the daemon does not know whose a new file is.
    try fixture.replaceInConfiguration("debounce: 50ms", with: "debounce: 60s")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "watching", in: daemon)
    let alices = try ownedStore("alice/a.store", alice, fixture).path
    let other = try fixture.add("fine", as: "other").path
    let held = try asAlice(["hold", "--why", "auditing", alices], fixture)
    #expect(held.status == .exited(0) && held.output.contains("held by 4001"), "\(held.output)")
    #expect(try await call(fixture, "hold").output.contains(alices))
    #expect(try asAlice(["hold", "--why", "mine", other], fixture).status == .exited(3))
    #expect(try asAlice(["release", other], fixture).status == .exited(3))
    let released = try asAlice(["release", alices], fixture)
    #expect(released.status == .exited(0) && released.output.contains("released; was held"))
    // What no watch names is not instard's.
    let unwatched = try ownedStore("../b/b.store", alice, fixture).path
    #expect(try asAlice(["hold", "--why", "mine", unwatched], fixture).status == .exited(3))
  }
}
