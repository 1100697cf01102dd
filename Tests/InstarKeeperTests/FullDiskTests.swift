import Foundation
import GRDB
import InstarKeeper
import InstarSchema
import InstarStore
import InstarWire
import Testing

@Suite("Full disks, and logs that stay", .serialized)
struct FullDiskTests {
  @Test(
    "on a disk of any fullness, the store is migrated, or the disk is reported as full and nothing is left",
    .enabled(if: geteuid() == 0, "mounting needs root"), arguments: ["delete", "wal"])
  func fullDisk(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode, rows: 3000)
    let size = try #require(fixture.state().bytes?.count)
    let disk = try SmallDisk(in: fixture.folder, bytes: 16 << 20)
    defer { disk.unmount() }
    let store = disk.folder + "/Notes.store"
    var results: Set<String> = []
    for step in 0...16 {
      try FileManager.default.copyItem(atPath: fixture.store, toPath: store)
      try disk.fill(leaving: (size / 2 + 128 << 10) * step)
      let before = FileManager.default.contents(atPath: store)
      var request = fixture.request(run: "r\(step)")
      request.store = store
      let report = try fixture.migrate(request: request).report
      let names = try Set(FileManager.default.contentsOfDirectory(atPath: disk.folder))
      if report.result == .migrated {
        results.insert("migrated")
        #expect(names == ["Notes.store", ".instar", "filler"])
      } else {
        results.insert("full")
        #expect(report.error?.code == .noSpace, "\(String(describing: report.error))")
        #expect(report.error?.state?.hasPrefix("unchanged") == true)
        #expect(report.backup == nil)
        #expect(names == ["Notes.store", "filler"])
        #expect(FileManager.default.contents(atPath: store) == before)
      }
      for name in names {
        try FileManager.default.removeItem(atPath: disk.folder + "/" + name)
      }
    }
    #expect(results == ["migrated", "full"])
  }

  @Test(
    "a run is refused where a plan tells beforehand that the disk is too full, and how much to free",
    .enabled(if: geteuid() == 0, "mounting needs root"))
  func planOnFullDisk() throws {
    let fixture = try KeeperFixture(rows: 3000)
    let size = try #require(fixture.state().bytes?.count)
    let disk = try SmallDisk(in: fixture.folder, bytes: 16 << 20)
    defer { disk.unmount() }
    let store = disk.folder + "/Notes.store"
    try FileManager.default.copyItem(atPath: fixture.store, toPath: store)
    func findings() throws -> [Finding] {
      let conversation = ScriptedConversation([
        .plan(stores: [store], plans: [fixture.plugin], adopt: nil)
      ])
      try Keeper(conversation: conversation, host: SQLHost()).serve()
      return try #require(conversation.plans.first).findings.filter { $0.code == .noSpace }
    }
    #expect(try findings().isEmpty)
    try disk.fill(leaving: size * 2)
    let found = try findings()
    #expect(found.map(\.severity) == [.error])
    let needed = Quantity.bytes(Int64(size * 3 + 1 << 20))
    #expect(found.first?.message.hasPrefix("the run needs \(needed) in ") == true, "\(found)")
    #expect(found.first?.message.hasSuffix(" are free") == true, "\(found)")
    #expect(found.first?.fix?.hasPrefix("free ") == true, "\(found)")
    for rehearses in [false, true] {
      var request = fixture.request()
      request.store = store
      request.rehearses = rehearses
      let (report, conversation) = try fixture.migrate(request: request)
      #expect(report.result == .refused)
      #expect(report.error?.code == .noSpace && report.error?.cause == found.first?.message)
      #expect(report.rehearsal?.neededBytes == (rehearses ? Int64(size * 3 + 1 << 20) : nil))
      #expect(conversation.asked.isEmpty)
    }
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: disk.folder))
        == ["Notes.store", "filler"])
    try disk.fill(leaving: 12 << 20)
    #expect(try findings().isEmpty)
  }

  @Test(
    "the log that an app left stays as it is where the run fails, and is migrated where it succeeds"
  )
  func pendingLog() throws {
    let fixture = try KeeperFixture(journalMode: "wal")
    let copy = fixture.folder + "/Copy.store"
    let app = try DatabaseQueue(path: fixture.store)
    try app.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 0; DELETE FROM ZNOTE WHERE Z_PK > 6")
    }
    // As the app leaves both files when it is killed.
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: fixture.store + suffix, toPath: copy + suffix)
    }
    try app.close()
    func files() -> [Data?] {
      ["", "-wal"].map { FileManager.default.contents(atPath: copy + $0) }
    }
    let before = files()
    #expect(before[1]?.isEmpty == false)
    var request = fixture.request()
    request.store = copy
    let failure = InstarError(.workerDied, "cannot run", cause: "killed by SIGILL")
    let failed = try fixture.migrate(SQLHost(failure: failure), request: request).report
    #expect(failed.error?.state == "unchanged")
    #expect(files() == before)
    request.run = "r2"
    #expect(try fixture.migrate(request: request).report.result == .migrated)
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE", in: copy) == 6)
    #expect(FileManager.default.contents(atPath: copy + "-wal")?.isEmpty != false)
  }
}

/// A file system in memory with little space.
private struct SmallDisk {
  let folder: String

  init(in parent: String, bytes: Int) throws {
    folder = parent + "/disk"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try Self.run("mount", "-t", "tmpfs", "-o", "size=\(bytes),mode=0700", "tmpfs", folder)
  }

  func unmount() {
    // What stays mounted is removed with the test's own mounts.
    try? Self.run("umount", folder)
  }

  /// Writes a file that takes all space but some bytes.
  func fill(leaving bytes: Int) throws {
    var status = statvfs()
    try #require(statvfs(folder, &status) == 0)
    let size = max(Int(status.f_bavail) * Int(status.f_frsize) - bytes, 0)
    try Data(count: size).write(to: URL(fileURLWithPath: folder + "/filler"))
  }

  private static func run(_ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
  }
}
