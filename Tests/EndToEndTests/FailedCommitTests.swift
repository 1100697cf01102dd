import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Faults and accidents in the middle of a cutover, injected by strace.
@Suite("A cutover whose commit fails")
struct FailedCommitTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func makeStore(journalMode: String, nameBytes: Int = 10) throws -> BoxStore {
    let store = try BoxStore("fine", boxes: 60, in: folder, journalMode: journalMode)
    let queue = try DatabaseQueue(path: store.path)
    try queue.inDatabase {
      try $0.execute(sql: "UPDATE ZBOX SET ZNAME = hex(zeroblob(\(nameBytes)))")
    }
    try queue.close()
    return store
  }

  /// Runs a migration under strace.
  ///
  /// - Parameter file: The system calls on this file are tampered with.
  private func migrate(
    _ store: BoxStore, tampering file: String, _ inject: String,
    whileRunning: () throws -> Void = {}
  ) async throws -> RunReport {
    let output = folder.path("output")
    try Data().write(to: URL(fileURLWithPath: output))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/strace")
    process.arguments = [
      "-f", "-qq", "-o", "/dev/null", "-P", file, "-e", "inject=fsync,fdatasync:\(inject)",
      CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "migrate",
      store.path, "--plugin", try await FixturePlugins.boxes.value, "--state-dir",
      folder.path("state"), "--json",
    ]
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = FileHandle.nullDevice
    try process.run()
    try whileRunning()
    process.waitUntilExit()
    let answer = CommandLineTool.Answer(
      status: process.terminationStatus,
      output: try String(contentsOfFile: output, encoding: .utf8),
      messages: "")
    return try #require(try answer.objects(RunReport.self).first)
  }

  private var backups: [String] { folder.names(".instar").filter { $0.hasSuffix(".backup") } }

  /// The report must be what a new connection finds.
  private func expectTruth(_ report: RunReport, _ store: BoxStore, _ place: Comment) throws {
    let version = try store.version()
    switch report.result {
    case .migrated:
      #expect(version == Schema.Version(2, 0, 0), place)
      #expect(try store.labels() == 60, place)
      #expect(backups.count == 1, place)
    default:
      let state = try #require(report.error?.state, place)
      if state.hasPrefix("unchanged") {
        #expect(version == Schema.Version(1, 0, 0), place)
        #expect(folder.names(".instar") == [], place)
        #expect(report.backup == nil, place)
      } else {
        #expect(state.hasPrefix("in doubt"), "\(place): \(state)")
        #expect(backups.count == 1, place)
      }
    }
  }

  @Test(
    "a failed commit is reported as a new connection finds the store, and the backup is removed only with a proof",
    arguments: ["delete", "wal"], ["", "-side", "-folder"])
  func failingSync(journalMode: String, part: String) async throws {
    var failures = 0
    for number in ["1", "2", "3", "4", "1+"] {
      let store = try makeStore(journalMode: journalMode)
      let file =
        switch part {
        case "-side": store.path + (journalMode == "wal" ? "-wal" : "-journal")
        case "-folder": folder.path
        default: store.path
        }
      let report = try await migrate(store, tampering: file, "error=EIO:when=\(number)")
      let place: Comment = "\(journalMode)\(part) \(number): \(String(describing: report.error))"
      if report.result != .migrated { failures += 1 }
      try expectTruth(report, store, place)
      // The next run recovers first where that is needed.
      let again = try await migrate(store, tampering: "/none", "error=EIO")
      #expect([.migrated, .current].contains(again.result), place)
      #expect(try store.version() == Schema.Version(2, 0, 0), place)
      #expect(folder.names("state/phases").filter { $0.hasSuffix(".json") } == [], place)
      try? FileManager.default.removeItem(atPath: folder.path(".instar"))
      for name in folder.names() where name.hasPrefix("fine.store") {
        try FileManager.default.removeItem(atPath: folder.path(name))
      }
    }
    // With a log, a commit is durable before the store's own file is synchronized.
    if journalMode == "delete" || part != "" {
      #expect(failures > 0, "\(journalMode)\(part): each run migrated its store")
    }
  }

  @Test("a failed commit does not come back when an app that shares the log is killed")
  func failedFrames() async throws {
    for number in ["1", "2", "1+"] {
      let store = try makeStore(journalMode: "wal")
      let app = try OtherProcess(
        """
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        c.execute("PRAGMA wal_autocheckpoint = 0")
        c.execute("UPDATE ZBOX SET Z_OPT = Z_OPT + 1")
        print("open", flush=True)
        sys.stdin.read()
        """, path: store.path)
      let report = try await migrate(
        store, tampering: store.path + "-wal", "error=EIO:when=\(number)")
      app.kill()
      try expectTruth(report, store, "\(number): \(String(describing: report.error))")
      try? FileManager.default.removeItem(atPath: folder.path(".instar"))
      for name in folder.names() where name.hasPrefix("fine.store") || name == "state" {
        try FileManager.default.removeItem(atPath: folder.path(name))
      }
    }
  }

  /// When the file is replaced: `large` stores are synchronized before the last page is copied.
  @Test(
    "a cutover whose file was replaced is never reported as migrated, and the new file stays as it is",
    arguments: ["delete", "wal"], [false, true])
  func replaced(journalMode: String, isLarge: Bool) async throws {
    let store = try makeStore(journalMode: journalMode, nameBytes: isLarge ? 100_000 : 10)
    let side = store.path + (journalMode == "wal" ? "-wal" : "-journal")
    let other = Data("another file".utf8)
    let report = try await migrate(store, tampering: side, "delay_enter=8000000:when=1") {
      func sideBytes() -> Int64 {
        var status = stat()
        return stat(side, &status) == 0 ? Int64(status.st_size) : 0
      }
      let deadline = soon()
      while sideBytes() == 0 {
        try #require(ContinuousClock.now < deadline, "nothing was written to \(side)")
        usleep(1000)
      }
      usleep(isLarge && journalMode == "delete" ? 0 : 1_000_000)
      #expect(rename(store.path, folder.path("moved")) == 0)
      try other.write(to: URL(fileURLWithPath: store.path))
    }
    #expect(report.result == .failed)
    #expect(report.error?.code == .storeChanged, "\(String(describing: report.error))")
    #expect(report.error?.state?.hasPrefix("replaced by another process") == true)
    #expect(FileManager.default.contents(atPath: store.path) == other)
    #expect(backups.count == 1)
    var status = stat()
    #expect(stat(side, &status) != 0 || status.st_size == 0)
  }
}
