import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("An app that writes to a store while it is migrated")
struct ConcurrentWriterTests {
  @Test(
    "a migration never loses a write that an app committed meanwhile",
    arguments: ["wal", "delete"],
    [BusyPolicy.wait, .migrate])
  func noWriteIsLost(journalMode: String, policy: BusyPolicy) async throws {
    let plugin = try await FixturePlugins.boxes.value
    let folder = try TemporaryFolder()
    // The app writes from before the run until after it. Where it is always quicker than the keeper the run ends as
    // busy, and people try again.
    let store = try BoxStore("app and run", in: folder, journalMode: journalMode)
    let app = try WritingApp(store.path)
    var results: [RunReport.Result] = []
    func migrate() async throws {
      let answer = try await CommandLineTool.run([
        "migrate", store.path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json",
        "--when-busy", policy.rawValue,
      ])
      let report = try #require(try answer.objects(RunReport.self).first)
      #expect([.migrated, .busy].contains(report.result), "\(report)")
      results.append(report.result)
    }
    while results.last != .migrated, results.count < 10 { try await migrate() }
    let committed = try app.finish()
    // The app may have been quicker every time; it is gone now.
    if results.last != .migrated { try await migrate() }
    #expect(results.last == .migrated, "\(results)")
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(committed.count >= WritingApp.writesBeforeRun)
    let kept = try store.read {
      try Int.fetchAll($0, sql: "SELECT ZSIZE FROM ZBOX WHERE ZNAME = 'app'")
    }
    #expect(kept.count == committed.count)
    #expect(Set(kept.map(WritingApp.number)) == Set(committed))
  }

  @Test(
    "'migrate --when-busy skip' skips a store that an app has open, with exit status 4 and the app's name"
  )
  func skipped() async throws {
    let plugin = try await FixturePlugins.boxes.value
    let folder = try TemporaryFolder()
    let store = try BoxStore("open", in: folder)
    func migrate(_ policy: String) async throws -> CommandLineTool.Answer {
      try await CommandLineTool.run(
        "migrate", store.path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json",
        "--when-busy", policy)
    }
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1])
      print("open", flush=True)
      sys.stdin.read()
      """, path: store.path)
    let busy = try await migrate("skip")
    #expect(busy.status == 4, Comment(rawValue: busy.messages))
    let report = try #require(try busy.objects(RunReport.self).first)
    #expect(report.result == .busy && report.error?.state == "unchanged")
    #expect(report.holders?.map(\.pid) == [app.pid])
    #expect(report.holders?.first?.command.hasPrefix("python3") == true)
    #expect(report.error?.cause.contains("the store is open in \(app.pid) (python3") == true)
    app.finish()
    #expect(try await migrate("skip").status == 0)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    let wrong = try await migrate("skipp")
    #expect(wrong.status == 2 && wrong.messages.contains("skip"))
  }
}

/// Another process that inserts boxes all the time, one per transaction, and does not wait for locks. SQLite's locks
/// belong to a process, so a writer in this process would not be locked out.
private final class WritingApp {
  static let writesBeforeRun = 3

  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts it, and waits until it has written something.
  init(_ store: String) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c",
      """
      import sqlite3, sys, threading, time
      stop = threading.Event()
      threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
      c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
      number, committed = 0, []
      while not stop.is_set():
          number += 1
          try:
              c.execute(
                  "INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSIZE) VALUES (?, 1, 1, 'app', ?)",
                  (10_000 + number, 1_000_000 + number * 10_000))
              committed.append(number)
              if len(committed) == \(Self.writesBeforeRun): print("writing", flush=True)
          except sqlite3.OperationalError as error:
              if "locked" not in str(error): raise
          time.sleep(0.02)
      print(*committed, flush=True)
      """, store,
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    _ = output.fileHandleForReading.availableData
  }

  /// Ends it.
  ///
  /// - Returns: The numbers of the boxes whose commit succeeded.
  func finish() throws -> [Int] {
    try input.fileHandleForWriting.close()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
  }

  /// The number of a box by its size; sizes are spaced so that the `+ 1000` of the plan does not count.
  static func number(_ size: Int) -> Int { (size - 1_000_000) / 10_000 }
}
