import Foundation
import Glibc
import InstarKeeper
import InstarSchema
import InstarWire
import Synchronization
import Testing

/// A rename from one mount to another fails with EXDEV, also where both show the same file system.
@Suite(
  "A mount inside '.instar/'", .serialized, .enabled(if: geteuid() == 0, "mounting needs root"))
struct OtherMountTests {
  /// A folder that is mounted on itself. Nothing can be renamed into it or out of it.
  private final class OwnMount: Sendable {
    private let folder: Mutex<String?>

    init(_ folder: String) throws {
      let isBind: UInt = 4096
      try #require(mount(folder, folder, nil, isBind, nil) == 0)
      self.folder = Mutex(folder)
    }

    deinit { unmount() }

    func unmount() {
      folder.withLock { folder in
        if let mounted = folder { umount2(mounted, Int32(MNT_DETACH)) }
        folder = nil
      }
    }
  }

  /// Runs a migration during which the folder of the run is a mount, from the work on the clone to the cutover.
  private func migrate(
    _ fixture: KeeperFixture, whenMounted: @escaping @Sendable () throws -> Void = {}
  ) throws -> RunReport {
    let mounted = Mutex<OwnMount?>(nil)
    let host = SQLHost(tamper: { work in
      let folder = URL(fileURLWithPath: work.clone).deletingLastPathComponent()
        .deletingLastPathComponent().path
      let mount = try OwnMount(folder)
      mounted.withLock { $0 = mount }
      try whenMounted()
    })
    let report = try fixture.migrate(
      host,
      onAsk: { record in
        // The backup has its name now.
        if record.phase == .cutover { mounted.withLock { $0?.unmount() } }
        return true
      }
    ).report
    mounted.withLock { $0?.unmount() }
    return report
  }

  @Test("a backup that cannot be renamed is copied, and nothing else is left")
  func copiedBackup() throws {
    let fixture = try KeeperFixture()
    let before = fixture.state().bytes
    let report = try migrate(fixture)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    let backup = try #require(report.backup)
    #expect(FileManager.default.contents(atPath: backup) == before)
    let name = URL(fileURLWithPath: backup).deletingPathExtension().lastPathComponent
    #expect(fixture.state().instar == ["\(name).backup", "\(name).json"])
    let mode = try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
  }

  @Test("the store is unchanged where the backup can neither be renamed nor copied")
  func noBackup() throws {
    let fixture = try KeeperFixture()
    let before = fixture.state().bytes
    let run = fixture.request().run
    let obstacle = "Notes.store.\(run).backup.part"
    let path = "\(fixture.folder)/.instar/\(obstacle)"
    let report = try migrate(
      fixture,
      whenMounted: {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      })
    #expect(report.result == .failed)
    #expect(report.error?.code == .backupFailed)
    #expect(report.error?.cause == "cannot create '\(path)': File exists")
    #expect(report.error?.next == "run: ls -la '\(fixture.folder)/.instar'")
    #expect(report.error?.state == "unchanged")
    #expect(report.backup == nil)
    // A mount point cannot be removed; nothing is in it.
    #expect(fixture.state().instar == [obstacle, "run-\(run)"])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: "\(fixture.folder)/.instar/run-\(run)")
        == [])
    #expect(fixture.state().bytes == before)
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
  }

  @Test(
    "the clone is copied into the store without a try to exchange the two, which the report says",
    arguments: ["delete", "wal"])
  func noExchange(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let folder = fixture.folder + "/.instar"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let mount = try OwnMount(folder)
    defer { mount.unmount() }
    let request = fixture.request(cutover: .exchange)
    let (report, conversation) = try fixture.migrate(request: request)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.cutover == .writeBack)
    #expect(conversation.asked.map(\.phase) == [.cloning, .cutover])
    #expect(
      report.notes == [
        "Instar wrote to the store's file instead of exchanging it for the clone: '\(folder)' is a mount of its own"
      ])
    let name = "Notes.store.\(request.run)"
    #expect(fixture.state().instar == ["\(name).backup", "\(name).json"])
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
  }
}
