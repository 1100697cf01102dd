import Foundation
import InstarKeeper
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("A store that others use while it is migrated")
struct ConcurrentWriterTests {
  /// An app in another process that inserts notes all the time, with hardly a pause, and tells at
  /// the end how many it has committed.
  private final class WritingApp {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(_ store: String) throws {
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = [
        "python3", "-c",
        """
        import sqlite3, sys, threading, time
        stop = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
        c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        done = 0
        while not stop.is_set():
            try:
                c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
                done += 1
                if done == 3: print("writing", flush=True)
                time.sleep(0.002)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error): raise
        print(done, flush=True)
        """, store,
      ]
      process.standardInput = input
      process.standardOutput = output
      try process.run()
      _ = output.fileHandleForReading.availableData
    }

    /// Ends the app.
    ///
    /// - Returns: How many rows it has committed.
    func finish() throws -> Int? {
      try input.fileHandleForWriting.close()
      process.waitUntilExit()
      let text = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
      return Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }

  @Test(
    "no write of another process is lost, and one that never pauses does not keep the run waiting",
    arguments: ["delete", "wal"], [BusyPolicy.wait, .migrate])
  func keepsEveryWrite(journalMode: String, policy: BusyPolicy) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let app = try WritingApp(fixture.store)
    var request = fixture.request(busyTimeout: 30)
    request.whenBusy = policy
    let report = try fixture.migrate(request: request).report
    let committed = try #require(try app.finish())
    #expect(committed >= 3)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 10 + committed)
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
  }

  @Test(
    "a store that another process holds is busy, and says who holds it",
    arguments: ["delete", "wal"])
  func busy(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let holder = try OtherProcess.holding(fixture.store, "IMMEDIATE")
    let (report, _) = try fixture.migrate(request: fixture.request(busyTimeout: 0.05))
    #expect(report.result == .busy)
    #expect(report.error?.code == .busyStore)
    #expect(report.error?.cause.contains("\(holder.pid) (python") == true)
    #expect(fixture.state().instar == nil)
    holder.finish()
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
    let (again, _) = try fixture.migrate(request: fixture.request(run: "again"))
    #expect(again.result == .migrated)
  }

  @Test(
    "an app that is writing can commit while a run waits for it", arguments: ["delete", "wal"])
  func commitsMeanwhile(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (app, output) = (Process(), Pipe())
    app.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    app.arguments = [
      "python3", "-c",
      """
      import sqlite3, sys, time
      c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=2)
      c.execute("BEGIN IMMEDIATE")
      c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
      print("writing", flush=True)
      time.sleep(0.5)
      c.execute("COMMIT")
      """, fixture.store,
    ]
    app.standardOutput = output
    try app.run()
    #expect(output.fileHandleForReading.readData(ofLength: 7) == Data("writing".utf8))
    let report = try fixture.migrate(request: fixture.request(busyTimeout: 30)).report
    app.waitUntilExit()
    #expect(app.terminationStatus == 0)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 11)
  }

  @Test("what an app that was killed had committed to its log is migrated with the store")
  func leftLog() throws {
    let fixture = try KeeperFixture(journalMode: "wal")
    let app = Process()
    app.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    app.arguments = [
      "python3", "-c",
      """
      import sqlite3, sys, os, signal
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA wal_autocheckpoint = 0")
      c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
      os.kill(os.getpid(), signal.SIGKILL)
      """, fixture.store,
    ]
    try app.run()
    app.waitUntilExit()
    let (report, _) = try fixture.migrate()
    #expect(report.result == .migrated)
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 11)
    #expect(try fixture.query(Int.self, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 2") == 11)
  }

  @Test(
    "a file that takes the store's name during the run is not written",
    arguments: ["delete", "wal"])
  func exchangedFile(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let store = fixture.store
    let intruder = try #require(FileManager.default.contents(atPath: store))
    let host = SQLHost(tamper: { _ in
      try FileManager.default.moveItem(atPath: store, toPath: store + ".old")
      try intruder.write(to: URL(fileURLWithPath: store))
    })
    let (report, _) = try fixture.migrate(host)
    #expect(report.error?.code == .storeChanged)
    #expect(FileManager.default.contents(atPath: store) == intruder)
  }

  @Test(
    "the second of two runs at the same time finds the store current",
    arguments: [CutoverPolicy.exchange, .writeBack])
  func twoRuns(cutover: CutoverPolicy) throws {
    let fixture = try KeeperFixture()
    var first: RunReport?
    let (report, _) = try fixture.migrate(onAsk: { phase in
      // The second run has inspected the store, and does not have its lock.
      guard phase.phase == .cloning else { return true }
      var request = fixture.request(run: "20260101T000000Z-000002")
      request.cutover = cutover
      first = try? fixture.migrate(request: request).report
      return true
    })
    #expect(first?.result == .migrated, "\(String(describing: first?.error))")
    #expect(report.result == .current, "\(String(describing: report.error))")
    #expect(report.error == nil && report.backup == nil && report.leftovers == nil)
    #expect(report.from == KeeperFixture.second.version)
    #expect(fixture.state().instar?.contains { $0.hasPrefix("run-") } == false)
  }

  @Test(
    "a store whose folder is renamed during the run is missing, and is not written",
    arguments: ["delete", "wal"])
  func renamedFolder(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (folder, moved) = (fixture.folder, fixture.folder + ".moved")
    let before = try #require(FileManager.default.contents(atPath: fixture.store))
    let host = SQLHost(tamper: { _ in
      try FileManager.default.moveItem(atPath: folder, toPath: moved)
    })
    let (report, _) = try fixture.migrate(host)
    #expect(access(moved + "/.instar", F_OK) != 0)
    // So that the fixture finds its folder, and removes it.
    try FileManager.default.moveItem(atPath: moved, toPath: folder)
    #expect(report.result == .failed && report.error?.code == .missingStore)
    #expect(report.error?.state == "missing" && report.error?.next != nil)
    #expect(FileManager.default.contents(atPath: fixture.store) == before)
    #expect(try fixture.migrate().report.result == .migrated)
    #expect(fixture.state().instar?.contains { $0.hasPrefix("run-") } == false)
  }
}
