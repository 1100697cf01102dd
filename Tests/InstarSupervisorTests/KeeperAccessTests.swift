import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarSupervisor

@Suite(
  "Runs of a user who turns a folder into a link to another user's folder",
  .enabled(if: geteuid() == 0, "giving files away needs root"))
struct KeeperAccessTests {
  private static let alice: UInt32 = 4001
  private static let bob: UInt32 = 4002
  private let folder: TemporaryFolder
  private let daemon = KeeperAccess(.storeOwner)

  init() throws {
    folder = try TemporaryFolder(mode: 0o755)
    for (name, owner) in [("alice", Self.alice), ("bob", Self.bob)] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o755])
      try folder.write(name, to: "\(name)/a.store", mode: 0o600)
      try #require(chown(folder.path(name), owner, owner) == 0)
      try #require(chown(folder.path("\(name)/a.store"), owner, owner) == 0)
    }
    try link("alice/link", owner: Self.alice)
    try link("roots", owner: 0)
  }

  private var bobs: String { folder.path("bob/a.store") }
  /// Alice's path, on which her link is.
  private var linked: String { folder.path("alice/link/a.store") }

  private func link(_ name: String, owner: UInt32) throws {
    try #require(symlink(folder.path("bob"), folder.path(name)) == 0)
    try #require(lchown(folder.path(name), owner, owner) == 0)
  }

  /// A supervisor without a keeper.
  private func supervisor(_ state: StateFolder) -> Supervisor {
    let installation = Installation(
      keeper: folder.path("none"), worker: "/w", library: "/l", swiftRuntimeFolder: nil,
      modulesFolder: "/m", macroExecutable: "/x")
    return Supervisor(installation: installation, stateFolder: state, rights: .storeOwner)
  }

  @Test(
    "the ledger has runs on a user's link under their own path; a symbolic link of root's is resolved"
  )
  func ledgerPath() throws {
    for rights in [KeeperRights.storeOwner, .administrator] {
      let access = KeeperAccess(rights)
      #expect(access.ledgerPath(of: linked).text == linked)
      #expect(access.ledgerPath(of: folder.path("roots/a.store")).text == bobs)
      #expect(access.ledgerPath(of: bobs).text == bobs)
    }
    #expect(KeeperAccess(.caller).ledgerPath(of: linked).text == bobs)
    try #require(unlink(bobs) == 0)
    #expect(daemon.ledgerPath(of: linked).text == linked)
    #expect(daemon.ledgerPath(of: folder.path("roots/a.store")).text == bobs)
  }

  @Test(
    "no keeper recovers runs on a user's link as the other user, also where that user has no such store"
  )
  func recovery() throws {
    #expect(throws: Never.self) { try daemon.identity(forRecoveryOf: bobs) }
    #expect(throws: Never.self) {
      try daemon.identity(forRecoveryOf: folder.path("roots/a.store"))
    }
    #expect(try instarError { _ = try daemon.identity(forRecoveryOf: linked) }.code == .unsafePath)
    try #require(unlink(bobs) == 0)
    #expect(throws: Never.self) { try daemon.identity(forRecoveryOf: bobs) }
    #expect(try instarError { _ = try daemon.identity(forRecoveryOf: linked) }.code == .unsafePath)
  }

  @Test("a run on a user's link that was cut off holds up no run of the other user's store")
  func openRun() async throws {
    let state = try StateFolder(path: folder.path("state"))
    let record = PhaseRecord(
      run: RunIdentifier.make(), store: linked, phase: .cloning, startedAt: 1)
    try state.record(record)
    let supervisor = supervisor(state)
    try await supervisor.recover(store: bobs) { Issue.record("\($0) was recovered") }
    await #expect(throws: InstarError.self) { try await supervisor.recover(store: linked) { _ in } }
    #expect(try supervisor.storesWithOpenRuns().stores == [linked])
  }

  @Test("a backup is the store's owner's, also of a store that is gone")
  func owner() throws {
    #expect(daemon.owner(of: folder.path("alice/a.store")) == Self.alice)
    #expect(daemon.owner(of: linked) == nil)
    #expect(KeeperAccess(.caller).owner(of: linked) == 0)
    try #require(unlink(bobs) == 0)
    #expect(daemon.owner(of: bobs) == Self.bob)
    #expect(daemon.owner(of: folder.path("gone.store")) == nil)
    #expect(daemon.owner(of: folder.path("gone/a.store")) == nil)
  }

  @Test("a keeper works on backups only where Instar keeps them, and while their owner is known")
  func places() async throws {
    let state = try StateFolder(path: folder.path("state"))
    let supervisor = supervisor(state)
    func backup(of store: String, at path: String, copy: String? = nil) -> BackupReference {
      BackupReference(run: "R", store: store, path: path, manifest: nil, copy: copy)
    }
    let own = folder.path("bob/.instar/a.store.R.backup")
    for copy in [nil, "/mnt/a.store.R.backup", "/old/a.store.R.backup.zst"] {
      #expect(supervisor.isTrusted(backup(of: bobs, at: own, copy: copy)))
    }
    let linked = folder.path("roots/.instar/a.store.R.backup")
    #expect(supervisor.isTrusted(backup(of: bobs, at: linked)))
    for path in [
      folder.path("alice/.instar/a.store.R.backup"), folder.path("bob/.instar/b.store.R.backup"),
      folder.path("bob/.instar/a.store.R2.backup"), folder.path("bob/a.store.R.backup"),
      folder.path("alice/link/.instar/a.store.R.backup"), "/etc/shadow",
    ] {
      let foreign = backup(of: bobs, at: path)
      #expect(!supervisor.isTrusted(foreign), "\(path)")
      await #expect(throws: InstarError.self) { try await supervisor.handle(foreign, .remove) }
    }
    #expect(!supervisor.isTrusted(backup(of: bobs, at: own, copy: "/etc/shadow")))
    // A person may have chosen another folder, but not what else is in it.
    let named = KeeperAccess(.administrator)
    #expect(throws: Never.self) {
      try named.requireTrusted(backup(of: bobs, at: "/mnt/a.store.R.backup"))
    }
    #expect(throws: InstarError.self) {
      try named.requireTrusted(backup(of: bobs, at: "/etc/shadow"))
    }
    // A store that is gone from root's folder may have been anybody's.
    let gone = backup(
      of: folder.path("gone.store"), at: folder.path(".instar/gone.store.R.backup"))
    #expect(!supervisor.isTrusted(gone))
    do throws(InstarError) {
      try await supervisor.handle(gone, .verify)
      Issue.record("a keeper of root's was started")
    } catch {
      #expect(error.code == .unsafePath)
    }
  }

  @Test("an owner whose keeper names another user's file takes nothing from that user's share")
  func shares() async throws {
    let state = try StateFolder(path: folder.path("state"))
    func note(_ run: String, of store: String, backup: String, ofMiB size: Int) throws {
      try folder.write("", to: backup)
      try #require(truncate(folder.path(backup), size << 20) == 0)
      try #require(chown(folder.path(backup), Self.bob, Self.bob) == 0)
      var report = RunReport(run: run, store: store, result: .migrated, startedAt: 1)
      report.backup = folder.path(backup)
      try state.append(report)
    }
    for number in 1...3 { try note("R\(number)", of: bobs, backup: "bob/\(number)", ofMiB: 1) }
    try note("R4", of: folder.path("alice/a.store"), backup: "bob/large", ofMiB: 100)
    var results: [BackupResult] = []
    try await supervisor(state).prune(
      try state.backups(), keeping: BackupRetention(totalBytes: 8 << 20), now: 1, isDryRun: true
    ) { results.append($0) }
    #expect(results.isEmpty)
  }
}
