import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("An app that writes to a store while it is migrated")
struct ConcurrentWriterTests {
  @Test("never loses a write that was committed", arguments: ["wal", "delete"])
  func noWriteIsLost(journalMode: String) async throws {
    let folder = try TemporaryFolder()
    // The worker takes a second and a half, so that there is something to write into.
    let store = try BoxStore("slow", in: folder, journalMode: journalMode)
    let writer = Task.detached { try Writer(path: store.path).run(for: .seconds(4)) }
    try await Task.sleep(for: .milliseconds(200))
    let answer = try await CommandLineTool.run([
      "migrate", store.path, "--plugin", try await FixturePlugins.boxes.value,
      "--state-dir", folder.path("state"), "--json",
    ])
    let report = try #require(try answer.objects(RunReport.self).first)
    #expect([.migrated, .busy].contains(report.result), "\(report)")
    let committed = try await writer.value
    #expect(!committed.isEmpty)
    let kept = try store.read {
      try Int.fetchAll($0, sql: "SELECT ZSIZE FROM ZBOX WHERE ZNAME = 'app'")
    }
    #expect(Set(kept.map(Writer.number)) == Set(committed))
    _ = try store.version()
  }
}

/// A second process's worth of writing: its own connection, one row a transaction, told to give up after a short wait.
private struct Writer {
  let path: String

  /// Numbers are spaced so that the plan's `+ 1000` can be told from them.
  static func size(_ number: Int) -> Int { 1_000_000 + number * 10_000 }
  static func number(_ size: Int) -> Int { (size - 1_000_000) / 10_000 }

  /// Returns the numbers of the rows whose commit succeeded.
  func run(for duration: Duration) throws -> [Int] {
    var configuration = Configuration()
    configuration.busyMode = .timeout(0.05)
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    let end = ContinuousClock.now + duration
    var committed: [Int] = []
    var number = 0
    while ContinuousClock.now < end {
      number += 1
      do {
        try queue.write { db in
          try db.execute(
            sql: "INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSIZE) VALUES (?, 1, 1, 'app', ?)",
            arguments: [10_000 + number, Self.size(number)])
        }
        committed.append(number)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
        // Refused: the app knows, and would try again.
      }
      Thread.sleep(forTimeInterval: 0.005)
    }
    try queue.close()
    return committed
  }
}
