import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// What becomes of stores whose folders are moved, covered by a mount, or too many for the kernel to watch.
@Suite("Watched folders that change")
struct WatchedFolderTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func fixture() async throws -> DaemonFixture {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configureWatch("recursive: true")
    try makeFolder("srv/a")
    return fixture
  }

  private func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: folder.path(name), withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o755])
  }

  /// Runs a command that must succeed.
  private func run(_ command: String...) throws {
    let child = try ChildProcess.start(
      executable: "/usr/bin/env", arguments: command, output: .captured(limitBytes: 1 << 16))
    try #require(try child.wait() == .exited(0), "\(command): \(child.capturedOutput)")
  }

  /// The activities of all stores, by their paths below the test's folder; `nil` while the daemon starts.
  private func stores(_ fixture: DaemonFixture) async throws -> [String: Manager.Activity]? {
    let answer = try await CommandLineTool.run(["stores", "--json", "--socket", fixture.socket])
    guard answer.status == 0 else { return nil }
    let stores = try answer.objects(Manager.Store.self)
    return Dictionary(
      uniqueKeysWithValues: stores.map {
        (String($0.store.dropFirst(folder.path.count + 1)), $0.activity)
      })
  }

  private func wait(
    for expected: [String: Manager.Activity], _ fixture: DaemonFixture, _ daemon: ChildProcess
  ) async throws {
    let deadline = soon()
    var found = try await stores(fixture)
    while found != expected {
      try #require(ContinuousClock.now < deadline, "\(found ?? [:]): \(daemon.capturedOutput)")
      try await Task.sleep(for: .milliseconds(50))
      found = try await stores(fixture)
    }
  }

  private func count(_ event: String, in daemon: ChildProcess) -> Int {
    daemon.capturedOutput.components(separatedBy: "INSTAR_EVENT=\(event) ").count - 1
  }

  @Test(
    "a renamed folder keeps what is known of its stores, and one that is moved away is forgotten")
  func rename() async throws {
    let fixture = try await fixture()
    try fixture.add("throw", as: "a/bad")
    let fine = try fixture.add("fine", as: "a/fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await wait(
      for: ["srv/a/bad.store": .quarantined, "srv/a/fine.store": .idle], fixture, daemon)
    let failures = count("run-failed", in: daemon)

    #expect(Glibc.rename(folder.path("srv/a"), folder.path("srv/b")) == 0)
    try await wait(
      for: ["srv/b/bad.store": .quarantined, "srv/b/fine.store": .idle], fixture, daemon)
    // The folder is watched under its new name.
    try fixture.add("fine", as: "b/new")
    try await wait(
      for: [
        "srv/b/bad.store": .quarantined, "srv/b/fine.store": .idle, "srv/b/new.store": .idle,
      ], fixture, daemon)
    #expect(count("run-migrated", in: daemon) == 2)
    #expect(count("run-failed", in: daemon) == failures)

    #expect(Glibc.rename(folder.path("srv/b"), folder.path("elsewhere")) == 0)
    try await wait(for: [:], fixture, daemon)
    #expect(access(fine.path, F_OK) != 0)
  }

  @Test(
    "stores below a mount vanish and come back as they were, and those on it are migrated",
    .enabled(if: geteuid() == 0, "mounting needs root"))
  func mounts() async throws {
    let fixture = try await fixture()
    try fixture.configure("rescan: 1h")
    try fixture.add("throw", as: "a/bad")
    try fixture.add("fine", as: "a/fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    let before: [String: Manager.Activity] = [
      "srv/a/bad.store": .quarantined, "srv/a/fine.store": .idle,
    ]
    try await wait(for: before, fixture, daemon)
    let failures = count("run-failed", in: daemon)

    let place = folder.path("srv/a")
    try run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    var isMounted = true
    defer { if isMounted { _ = umount2(place, Int32(MNT_DETACH)) } }
    try await wait(for: [:], fixture, daemon)
    let store = try BoxStore("fine", boxes: 5, in: folder)
    try FileManager.default.copyItem(atPath: store.path, toPath: place + "/new.store")
    try await wait(for: ["srv/a/new.store": .idle], fixture, daemon)
    #expect(count("run-migrated", in: daemon) == 2)

    try #require(umount2(place, 0) == 0)
    isMounted = false
    try await wait(for: before, fixture, daemon)
    #expect(count("run-migrated", in: daemon) == 2)
    #expect(count("run-failed", in: daemon) == failures)
  }

  @Test(
    "a file system that dies stops neither runs nor backups of other watches, and its stores are migrated when it answers again",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"))
  func death() async throws {
    let fixture = try await fixture()
    try makeFolder("remote")
    try makeFolder("remote/stores")
    try makeFolder("copies")
    try fixture.replaceInConfiguration(
      "watches: [",
      with: "watches: [{folder: \(folder.path("remote/stores")), pattern: \"*.store\"}, ")
    try fixture.configure("backupFolder: \(folder.path("copies"))\ncheckBackups: 1s")
    let first = try BoxStore("fine", boxes: 5, in: folder)
    try #require(Glibc.rename(first.path, folder.path("remote/stores/first.store")) == 0)
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await wait(for: ["remote/stores/first.store": .idle], fixture, daemon)
    try await fixture.wait(for: "INSTAR_EVENT=backup-copied", in: daemon)

    let stores = open(folder.path("remote/stores"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(stores >= 0)
    defer { close(stores) }
    let fileSystem = try SilentFileSystem(at: folder.path("remote"))
    defer { fileSystem.end() }
    // The kernel reports what happens below the mount, so the daemon asks the file system that covers it.
    let late = try BoxStore("fine", boxes: 5, in: folder)
    try #require(Glibc.rename(late.path, "/proc/self/fd/\(stores)/late.store") == 0)
    try await wait(
      for: ["remote/stores/first.store": .idle, "remote/stores/late.store": .waiting], fixture,
      daemon)
    let other = try fixture.add("fine", as: "other")
    try await fixture.wait(for: "migrated '\(other.path)'", in: daemon)
    #expect(count("run-migrated", in: daemon) == 2)
    // The check of the dead watch has its turn first, for a minute.
    try await fixture.wait(for: "INSTAR_EVENT=backup-copied", times: 2, in: daemon)

    fileSystem.end()
    try await wait(
      for: [
        "remote/stores/first.store": .idle, "remote/stores/late.store": .idle,
        "srv/other.store": .idle,
      ], fixture, daemon)
    #expect(count("run-migrated", in: daemon) == 3)
  }

  @Test(
    "at the limit of inotify watches the other folders are polled, with one warning",
    .enabled(if: geteuid() == 0, "a limit of its own needs a user namespace"))
  func limit() async throws {
    let fixture = try await fixture()
    for number in 0..<6 { try makeFolder("srv/\(number)") }
    let instard = CommandLineTool.productsFolder.appendingPathComponent("instard").path
    // State folder, plugins and 'srv' take three of these.
    let daemon = try ChildProcess.start(
      executable: "/usr/bin/unshare",
      arguments: [
        "--user", "--map-root-user", "sh", "-c",
        "echo 5 > /proc/sys/user/max_inotify_watches && exec \"$@\"", "sh", instard,
        "--config", folder.path("instard.yml"), "--foreground",
      ], environment: ProcessInfo.processInfo.environment,
      output: .captured(limitBytes: 1 << 20))
    defer { daemon.kill() }
    try await fixture.wait(for: "cannot watch all folders in", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=watch-started", in: daemon)
    var expected: [String: Manager.Activity] = [:]
    for number in 0..<6 {
      try fixture.add("fine", as: "\(number)/fine")
      expected["srv/\(number)/fine.store"] = .idle
    }
    try await wait(for: expected, fixture, daemon)
    #expect(count("run-migrated", in: daemon) == 6)
    // A polled folder that goes away, and a store that does.
    try FileManager.default.removeItem(atPath: folder.path("srv/5"))
    try FileManager.default.removeItem(atPath: folder.path("srv/4/fine.store"))
    expected["srv/5/fine.store"] = nil
    expected["srv/4/fine.store"] = nil
    try await wait(for: expected, fixture, daemon)
    #expect(count("watch-failed", in: daemon) == 1)
  }

  @Test(
    "instard reports some of many links with names of stores, and the next rescan reports none again"
  )
  func links() async throws {
    let fixture = try await fixture()
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=watch-started", in: daemon)
    let made = (0..<300).count { symlink("x", folder.path("srv/a/\($0).store")) == 0 }
    #expect(made == 300)
    try await fixture.wait(for: "cannot report all unusable files and folders in", in: daemon)
    let reported = count("watch-failed", in: daemon)
    #expect(reported == 103)
    let rescan = try await CommandLineTool.run(["rescan", "--socket", fixture.socket])
    #expect(rescan.status == 0)
    try fixture.add("fine", as: "a/fine")
    try await wait(for: ["srv/a/fine.store": .idle], fixture, daemon)
    #expect(count("watch-failed", in: daemon) <= reported + 100)
  }

  @Test("after the kernel dropped events, each folder is read again")
  func overflow() async throws {
    let fixture = try await fixture()
    try fixture.configure("rescan: 1h")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=watch-started", in: daemon)
    daemon.kill(SIGSTOP)
    let limit = Int(
      try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines))
    let name = folder.path("srv/a/other")
    for _ in 0..<(limit ?? 16_384) / 2 {
      close(open(name, O_CREAT | O_WRONLY, 0o600))
      unlink(name)
    }
    try fixture.add("fine", as: "a/fine")
    daemon.kill(SIGCONT)
    try await fixture.wait(for: "INSTAR_EVENT=changes-lost", in: daemon)
    try await wait(for: ["srv/a/fine.store": .idle], fixture, daemon)
  }
}
