import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Stores on read-only media")
struct ReadOnlyMediaTests {
  /// Whether this process may mount, in a name space of its own.
  static let canMount = geteuid() == 0 && status("/usr/bin/unshare", ["--mount", "true"]) == 0

  private static func status(_ program: String, _ arguments: [String]) -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return -1 }
    process.waitUntilExit()
    return process.terminationStatus
  }

  @Test(
    "a probe reads a store in each journal mode, and what a killed process left beside it",
    .enabled(if: canMount, "only root may mount"))
  func probe() throws {
    let folder = try TemporaryFolder()
    let output = try TemporaryFolder()
    for name in ["rollback", "cut-off"] { try HostileStores.makeStore(folder.path(name)) }
    for name in ["log", "left-log"] {
      try HostileStores.makeStore(
        folder.path(name), pragmas: "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL")
    }
    let killed = """
      import sqlite3, sys, os, signal
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA wal_autocheckpoint = 0")
      c.execute("PRAGMA cache_size = 1")
      if sys.argv[2] == "begin": c.execute("BEGIN IMMEDIATE")
      for n in range(1000):
        c.execute("INSERT INTO ZTAG (Z_ENT, Z_OPT, ZNAME) VALUES (2, 1, ?)", ("x" * 500,))
      os.kill(os.getpid(), signal.SIGKILL)
      """
    _ = Self.status("/usr/bin/env", ["python3", "-c", killed, folder.path("cut-off"), "begin"])
    _ = Self.status("/usr/bin/env", ["python3", "-c", killed, folder.path("left-log"), "log"])
    let before = try folder.contents()
    #expect(before["cut-off-journal"] != nil && before["left-log-wal"] != nil)

    let names = ["rollback", "log", "left-log", "cut-off"]
    let program = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let script = """
      mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" || exit 99
      ! touch new 2>/dev/null || exit 98
      shift
      exec "$@" > \(output.path("answer"))
      """
    let status = Self.status(
      "/usr/bin/unshare",
      ["--mount", "sh", "-c", script, "sh", folder.path, program, "probe", "--json"]
        + names.map { folder.path($0) })
    #expect(status == 0)
    let reports = try String(contentsOfFile: output.path("answer"), encoding: .utf8)
      .split(separator: "\n").map {
        try JSONDecoder().decode(ProbeReport.self, from: Data($0.utf8))
      }
    #expect(reports.map { $0.entities.last?.rows } == [20, 20, 1020, 20])
    #expect(reports.map(\.journalMode) == ["delete", "wal", "wal", "delete"])
    #expect(reports.last?.journalBytes ?? 0 > 0)
    #expect(reports[2].walBytes ?? 0 > 0)
    #expect(try folder.contents() == before)
  }
}
