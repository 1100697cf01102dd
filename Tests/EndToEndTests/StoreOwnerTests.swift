import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

/// Users by their numbers alone: nothing looks them up but messages.
private let alice: UInt32 = 4001
private let bob: UInt32 = 4002
private let mallory: UInt32 = 4666

/// How the daemon is started.
enum DaemonUser: Sendable {
  case root
  /// As the unit starts it: a user of its own, with the few capabilities.
  case service
  /// A developer's.
  case ordinary

  var uid: UInt32 {
    switch self {
    case .root: 0
    case .service: 4100
    case .ordinary: 4001
    }
  }

  /// What comes before the daemon on the command line.
  var prefix: [String] {
    let none = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
    let few = ",+setuid,+setgid,+dac_read_search,+kill"
    let user = [
      "/usr/bin/setpriv", "--reuid=\(uid)", "--regid=\(uid)", "--clear-groups", "--no-new-privs",
    ]
    switch self {
    case .root: return []
    case .service: return user + none.map { $0 + few }
    case .ordinary: return user + none
    }
  }
}

@Suite("Stores of several users", .enabled(if: geteuid() == 0, "becoming others needs root"))
struct StoreOwnerTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
    for name in ["srv", "srv/alice", "srv/bob", "plugins", "state"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o755])
    }
  }

  private func configure(_ user: DaemonUser, watches: [String]) throws {
    try Data(
      """
      state: \(folder.path("state"))
      plugins: [\(folder.path("plugins"))]
      debounce: 50ms
      retry: {first: 200ms, most: 1s}
      busyTimeout: 200ms
      watches:
      \(watches.map { "  - folder: \(folder.path("srv/\($0)"))" }.joined(separator: "\n"))
      """.utf8
    ).write(to: URL(filePath: folder.path("instard.yml")))
    #expect(chmod(folder.path("instard.yml"), 0o644) == 0)
    #expect(chmod(folder.path("state"), 0o700) == 0)
    try give("state", to: user.uid)
  }

  private func give(_ name: String, to uid: UInt32, mode: mode_t? = nil) throws {
    try #require(lchown(folder.path(name), uid, uid) == 0)
    if let mode { try #require(chmod(folder.path(name), mode) == 0) }
  }

  private func store(_ name: String, of uid: UInt32, mode: mode_t) throws {
    let made = try BoxStore("plain", in: folder, journalMode: "delete")
    try FileManager.default.moveItem(atPath: made.path, toPath: folder.path("srv/\(name)"))
    try give("srv/\(name)", to: uid, mode: mode)
  }

  private func plugin(_ name: String, of uid: UInt32 = 0, mode: mode_t = 0o644) async throws {
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: folder.path("plugins/\(name)"))
    try give("plugins/\(name)", to: uid, mode: mode)
  }

  private func start(_ user: DaemonUser) throws -> ChildProcess {
    let daemon = CommandLineTool.productsFolder.appendingPathComponent("instard").path
    let command =
      user.prefix + [daemon, "--config", folder.path("instard.yml"), "--foreground"]
    return try ChildProcess.start(
      executable: command[0], arguments: Array(command.dropFirst()),
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
  }

  private func status(_ name: String) throws -> (owner: UInt32, group: UInt32, mode: mode_t) {
    var status = stat()
    try #require(lstat(folder.path(name), &status) == 0, "\(name)")
    return (status.st_uid, status.st_gid, status.st_mode & 0o7777)
  }

  private func expectMigrated(_ name: String, of uid: UInt32, mode: mode_t) throws {
    #expect(try BoxStore(path: folder.path("srv/\(name)")).version() == Schema.Version(2, 0, 0))
    #expect(try status("srv/\(name)") == (uid, uid, mode))
    let privateFolder = "srv/\((name as NSString).deletingLastPathComponent)/.instar"
    #expect(try status(privateFolder).owner == uid && status(privateFolder).mode == 0o700)
    let backups = folder.names(privateFolder)
    #expect(backups.map { ($0 as NSString).pathExtension } == ["backup", "json"], "\(backups)")
    for backup in backups {
      let status = try status("\(privateFolder)/\(backup)")
      #expect(status.owner == uid && status.mode == 0o600)
    }
  }

  @Test(
    "each store is migrated as its owner, who keeps it; what a stranger planted is refused",
    arguments: [DaemonUser.root, .service])
  func owners(user: DaemonUser) async throws {
    try configure(user, watches: ["alice", "bob"])
    try store("alice/a.store", of: alice, mode: 0o600)
    try store("bob/b.store", of: bob, mode: 0o640)
    let planted = [
      "bob/mallory.store": "the store's owner 4666",
      "bob/root.store": "belongs to user 4002, not to root",
      "bob/group.store": "group 4002 can write", "bob/link.store": "a symbolic link of user 4666",
    ]
    try store("bob/mallory.store", of: mallory, mode: 0o644)
    try store("bob/root.store", of: 0, mode: 0o644)
    try store("bob/group.store", of: bob, mode: 0o664)
    try #require(symlink(folder.path("srv/alice/a.store"), folder.path("srv/bob/link.store")) == 0)
    try give("srv/bob/link.store", to: mallory)
    try give("srv/alice", to: alice, mode: 0o700)
    try give("srv/bob", to: bob)
    let before = try planted.keys.filter { $0 != "bob/link.store" }.map {
      ($0, try Data(contentsOf: URL(filePath: folder.path("srv/\($0)"))))
    }
    try await plugin("Boxes.so")
    try await plugin("Writable.so", mode: 0o664)
    try await plugin("Foreign.so", of: mallory)

    let daemon = try start(user)
    try await wait("both migrated, all others refused") {
      let output = daemon.capturedOutput
      return output.components(separatedBy: "INSTAR_EVENT=run-migrated").count == 3
        && output.components(separatedBy: "INSTAR_CODE=I107").count == 5
        && output.components(separatedBy: "INSTAR_CODE=I404").count == 3
    }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    try expectMigrated("alice/a.store", of: alice, mode: 0o600)
    try expectMigrated("bob/b.store", of: bob, mode: 0o640)
    for (name, content) in before {
      #expect(try Data(contentsOf: URL(filePath: folder.path("srv/\(name)"))) == content)
    }
    let lines = daemon.capturedOutput.split(separator: "\n")
    for (name, cause) in planted {
      #expect(
        lines.contains {
          $0.contains("srv/\(name)'") && $0.contains(cause) && $0.contains("INSTAR_CODE=I107")
        }, "\(name): \(cause)\n\(daemon.capturedOutput)")
    }
    for name in ["Writable.so", "Foreign.so"] {
      #expect(
        lines.contains { $0.contains("plugins/\(name)'") && $0.contains("INSTAR_CODE=I404") })
    }
    // No keeper could have been there.
    #expect(try status("state").mode == 0o700)
    #expect(try status("state/ledger/ledger.jsonl").owner == user.uid)
  }

  @Test(
    "an app of root that has a lock is named, although a keeper may not see what root has open",
    arguments: [DaemonUser.root, .service], ["srv/alice/a.store", "srv/root.store"])
  func lockedByRoot(user: DaemonUser, name: String) async throws {
    try configure(user, watches: [name == "srv/root.store" ? "" : "alice"])
    let made = try BoxStore("plain", in: folder, journalMode: "delete")
    try FileManager.default.moveItem(atPath: made.path, toPath: folder.path(name))
    if name != "srv/root.store" {
      try give(name, to: alice, mode: 0o600)
      try give("srv/alice", to: alice, mode: 0o700)
    }
    try await plugin("Boxes.so")
    let app = try OtherProcess.holding(folder.path(name), "IMMEDIATE")
    let daemon = try start(user)
    try await wait("the busy store") { daemon.capturedOutput.contains("INSTAR_EVENT=run-busy") }
    #expect(
      daemon.capturedOutput.contains("the store is open in \(app.pid) (python3"),
      "\(daemon.capturedOutput)")
    app.finish()
    try await wait("the store migrated") { daemon.capturedOutput.contains("=run-migrated") }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
  }

  @Test("a store and a plugin that are put right are taken at once")
  func putRight() async throws {
    try configure(.service, watches: ["bob"])
    try store("bob/b.store", of: bob, mode: 0o664)
    try give("srv/bob", to: bob)
    try await plugin("Boxes.so", mode: 0o666)
    let daemon = try start(.service)
    try await wait("the plugin refused") { daemon.capturedOutput.contains("INSTAR_CODE=I404") }
    try #require(chmod(folder.path("plugins/Boxes.so"), 0o644) == 0)
    try await wait("the store refused") { daemon.capturedOutput.contains("INSTAR_CODE=I107") }
    try #require(chmod(folder.path("srv/bob/b.store"), 0o644) == 0)
    try await wait("the store migrated") { daemon.capturedOutput.contains("=run-migrated") }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    try expectMigrated("bob/b.store", of: bob, mode: 0o644)
  }

  @Test("an ordinary user's daemon serves that user only, and says so")
  func ordinary() async throws {
    try configure(.ordinary, watches: ["alice", "bob"])
    try store("alice/a.store", of: alice, mode: 0o600)
    try store("bob/b.store", of: bob, mode: 0o644)
    try give("srv/alice", to: alice)
    try give("srv/bob", to: bob)
    try await plugin("Boxes.so", of: alice)
    let daemon = try start(.ordinary)
    try await wait("one migrated, one refused") {
      daemon.capturedOutput.contains("=run-migrated")
        && daemon.capturedOutput.contains("cannot act as another user")
    }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    try expectMigrated("alice/a.store", of: alice, mode: 0o600)
    #expect(
      daemon.capturedOutput.contains(
        "the store belongs to user 4002; this process runs as user 4001 and cannot act as another user"
      ))
    #expect(try BoxStore(path: folder.path("srv/bob/b.store")).version() == Schema.Version(1, 0, 0))
  }

  private func migrate(_ store: String, plugin: String) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(
      "migrate", "--plugin", folder.path("plugins/\(plugin)"), "--state-dir", folder.path("state"),
      folder.path("srv/\(store)"))
  }

  @Test("root's command line leaves nothing of root's with a store or in the daemon's state")
  func administrator() async throws {
    try configure(.service, watches: ["alice"])
    try store("alice/a.store", of: alice, mode: 0o600)
    try give("srv/alice", to: alice, mode: 0o700)
    try await plugin("Boxes.so")
    let answer = try await migrate("alice/a.store", plugin: "Boxes.so")
    #expect(answer.status == 0, "\(answer.messages)")
    try expectMigrated("alice/a.store", of: alice, mode: 0o600)
    for name in ["state/phases", "state/ledger", "state/ledger/ledger.jsonl"] {
      #expect(try status(name).owner == DaemonUser.service.uid, "\(name)")
    }

    // The daemon goes on with both.
    try store("alice/b.store", of: alice, mode: 0o600)
    let daemon = try start(.service)
    try await wait("the second store migrated") { daemon.capturedOutput.contains("=run-migrated") }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    let history = try await CommandLineTool.run("history", "--state-dir", folder.path("state"))
    #expect(history.output.contains("a.store") && history.output.contains("b.store"))
  }

  @Test("root removes backups with copies that their owner cannot reach")
  func rootsCopies() async throws {
    try configure(.root, watches: ["alice"])
    try store("alice/a.store", of: alice, mode: 0o600)
    try give("srv/alice", to: alice, mode: 0o700)
    try await plugin("Boxes.so")
    try FileManager.default.createDirectory(
      atPath: folder.path("copies"), withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    let store = folder.path("srv/alice/a.store")
    func run(_ arguments: String...) async throws -> CommandLineTool.Answer {
      let answer = try await CommandLineTool.run(
        arguments + ["--state-dir", folder.path("state")])
      #expect(answer.status == 0, "\(answer.messages)")
      return answer
    }
    #expect(try await migrate("alice/a.store", plugin: "Boxes.so").status == 0)
    _ = try await run("restore", store)
    _ = try await run("backups", "copy", "--backup-folder", folder.path("copies"), store)
    #expect(folder.names("copies").count == 4)
    let pruned = try await run("backups", "prune", "--keep", "1", store)
    #expect(pruned.output.contains(": removed"))
    #expect(folder.names("copies").count == 2 && folder.names("srv/alice/.instar").count == 2)

    // A copy that cannot be removed is not forgotten.
    _ = try await run("restore", store)
    try give("copies", to: alice)
    let copy = try #require(folder.names("copies").first { $0.hasSuffix(".backup") })
    try FileManager.default.removeItem(atPath: folder.path("copies/\(copy)"))
    try FileManager.default.createDirectory(
      atPath: folder.path("copies/\(copy)"), withIntermediateDirectories: false)
    let kept = try await CommandLineTool.run(
      "backups", "prune", "--keep", "1", store, "--state-dir", folder.path("state"))
    #expect(kept.status != 0 && kept.messages.contains("cannot remove the backup"))
    #expect(folder.names("srv/alice/.instar").count == 4)
  }

  /// Runs `instarctl` as the user of a daemon, and returns its exit status and all that it prints.
  private func instarctl(
    as user: DaemonUser, _ arguments: String...
  ) throws -> (status: ChildProcess.Termination?, text: String) {
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let command =
      user.prefix + [tool] + arguments + ["--state-dir", folder.path("state")]
    let child = try ChildProcess.start(
      executable: command[0], arguments: Array(command.dropFirst()),
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    let status = try child.wait()
    return (status, child.capturedOutput)
  }

  /// Makes files of root's in the state folder, as a killed command of root's leaves them, or root's own hand.
  private func plant(_ text: String, _ names: [String]) throws {
    for name in names {
      let path = folder.path("state/\(name)")
      try Data(text.utf8).write(to: URL(filePath: path))
      try #require(chown(path, 0, 0) == 0 && chmod(path, 0o600) == 0)
    }
  }

  private static let phases = "phases/20260101T000000Z-000001.json"
  private static let ledger = "ledger/ledger.jsonl"

  /// Makes a store of alice's, a plugin for it, and a state folder that alice has used.
  private func storeWithStateFolder() async throws -> String {
    try configure(.ordinary, watches: [])
    try store("alice/a.store", of: alice, mode: 0o600)
    try give("srv/alice", to: alice, mode: 0o700)
    try await plugin("Boxes.so")
    let store = folder.path("srv/alice/a.store")
    #expect(try instarctl(as: .ordinary, "hold", "--why", "test", store).status == .exited(0))
    #expect(try instarctl(as: .ordinary, "release", store).status == .exited(0))
    return store
  }

  @Test("empty files of root's in another user's state folder stop none of its commands")
  func emptyFiles() async throws {
    let store = try await storeWithStateFolder()
    try plant("", [Self.phases, Self.ledger])
    let empty = try instarctl(as: .ordinary, "history")
    #expect(empty.status == .exited(0), Comment(rawValue: empty.text))
    let migration = try instarctl(
      as: .ordinary, "migrate", "--plugin", folder.path("plugins/Boxes.so"), store)
    #expect(migration.status == .exited(0), Comment(rawValue: migration.text))
    #expect(!migration.text.contains("warning"), Comment(rawValue: migration.text))
    try expectMigrated("alice/a.store", of: alice, mode: 0o600)
    #expect(try status("state/\(Self.ledger)").owner == alice)
    let history = try instarctl(as: .ordinary, "history")
    #expect(history.text.contains("a.store"), Comment(rawValue: history.text))

    // A command of root's gives away what is left of the earlier one.
    try plant("", [Self.phases, "ledger/copies.jsonl"])
    try plant("not empty", ["ledger/other"])
    #expect(try instarctl(as: .root, "hold", "--why", "test", store).status == .exited(0))
    #expect(try status("state/ledger/copies.jsonl").owner == alice)
    #expect(try status("state/ledger/other").owner == 0)
    if folder.names("state/phases") != [] {
      #expect(try status("state/\(Self.phases)").owner == alice)
    }
  }

  @Test(
    "files with content of root's in another user's state folder stop no run, and the error says who gives them back"
  )
  func fullFiles() async throws {
    let store = try await storeWithStateFolder()
    try plant("{}\n", [Self.phases, Self.ledger])
    let migration = try instarctl(
      as: .ordinary, "migrate", "--plugin", folder.path("plugins/Boxes.so"), store)
    #expect(migration.status == .exited(0), Comment(rawValue: migration.text))
    try expectMigrated("alice/a.store", of: alice, mode: 0o600)
    #expect(try status("state/\(Self.ledger)").owner == alice)

    let moved = folder.path("state/ledger/ledger.1.jsonl")
    let refused = try instarctl(as: .ordinary, "history")
    #expect(refused.status == .exited(1))
    let command = "as root, run: chown 4001:4001 '\(moved)'"
    #expect(refused.text.contains(command), Comment(rawValue: refused.text))
    try #require(chown(moved, alice, alice) == 0)
    let history = try instarctl(as: .ordinary, "history")
    #expect(history.status == .exited(0), Comment(rawValue: history.text))
    #expect(history.text.contains("a.store"), Comment(rawValue: history.text))
  }

  @Test("root's command line works where a store's owner could not, and leaves the store his")
  func administratorsCopy() async throws {
    try configure(.root, watches: [])
    try store("alice/a.store", of: alice, mode: 0o600)
    try give("srv/alice", to: 0, mode: 0o755)
    try await plugin("Boxes.so", mode: 0o600)
    let answer = try await migrate("alice/a.store", plugin: "Boxes.so")
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(try status("srv/alice/a.store") == (alice, alice, 0o600))
    #expect(try status("srv/alice/.instar") == (0, 0, 0o700))
  }

  @Test("a plugin that a store's owner may not read is refused with what to do")
  func unreadablePlugin() async throws {
    try configure(.root, watches: [])
    try store("alice/a.store", of: alice, mode: 0o600)
    try give("srv/alice", to: alice, mode: 0o700)
    try await plugin("Boxes.so", mode: 0o600)
    let answer = try await migrate("alice/a.store", plugin: "Boxes.so")
    #expect(answer.status == 3)
    #expect(
      answer.messages.contains("user 4001 has no permission to read the file"), "\(answer.messages)"
    )
    #expect(answer.messages.contains("I404"), "\(answer.messages)")
    #expect(answer.messages.contains("run: chmod a+r '\(folder.path("plugins/Boxes.so"))'"))
    #expect(folder.names("srv/alice") == ["a.store"])
  }

  @Test("a run that was cut off is discarded with its owner's rights")
  func recovery() async throws {
    try configure(.service, watches: ["alice"])
    let made = try BoxStore("slow", in: folder, journalMode: "delete")
    try FileManager.default.moveItem(
      atPath: made.path, toPath: folder.path("srv/alice/slow.store"))
    try give("srv/alice/slow.store", to: alice, mode: 0o600)
    try give("srv/alice", to: alice, mode: 0o700)
    try await plugin("Boxes.so")
    var daemon = try start(.service)
    try await wait("a run folder") {
      folder.names("srv/alice/.instar").contains { $0.hasPrefix("run-") }
    }
    daemon.kill()
    _ = try daemon.wait()
    daemon = try start(.service)
    try await wait("the run recovered and done again") {
      daemon.capturedOutput.contains("=run-recovered")
        && daemon.capturedOutput.contains("=run-migrated")
    }
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    try expectMigrated("alice/slow.store", of: alice, mode: 0o600)
  }
}
