import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("Measuring long work")
struct WorkMeterTests {
  /// A clock that a test moves, and what was reported.
  private final class Recorder {
    var time = ContinuousClock.now
    var reports: [WorkProgress] = []
    /// Added each time that the clock is read.
    var tick = Duration.zero

    func meter() -> WorkMeter {
      WorkMeter(
        now: {
          self.time += self.tick
          return self.time
        }, report: { self.reports.append($0) })
    }
  }

  private let recorder = Recorder()

  @Test("work of less than a second is not reported, longer work twice a second")
  func patience() throws {
    let meter = recorder.meter()
    let piece = try #require(meter.begin("rows of Note") { 100 })
    for _ in 0..<40 {
      recorder.time += .milliseconds(100)
      meter.advance(piece, by: 1)
    }
    #expect(recorder.reports.map(\.done) == [10, 15, 20, 25, 30, 35, 40])
    let last = try #require(recorder.reports.last)
    #expect(last.what == "rows of Note" && last.total == 100)
    #expect(abs(last.perSecond - 10) < 0.001)
    #expect(abs((last.secondsLeft ?? 0) - 6) < 0.001)
  }

  @Test("work within other work is a part of it")
  func nested() throws {
    let meter = recorder.meter()
    let outer = try #require(meter.begin("rows of Note") { 10 })
    #expect(
      meter.begin("rows of Tag") {
        Issue.record("counted in vain")
        return nil
      } == nil)
    recorder.time += .seconds(2)
    meter.advance(outer, by: 1)
    meter.end(outer)
    #expect(recorder.reports.map(\.what) == ["rows of Note", "rows of Note"])
    #expect(meter.begin("rows of Tag") { nil } != nil)
  }

  @Test("what a closure names takes the place of other work, until it ends")
  func named() throws {
    let meter = recorder.meter()
    let outer = try #require(meter.begin("rows of Note") { 10 })
    meter.beginNamed("tags merged", total: 4)
    recorder.time += .seconds(2)
    meter.advance(outer, by: 1)
    meter.advanceNamed(by: 2)
    meter.endNamed()
    meter.advanceNamed(by: 1)
    #expect(recorder.reports.map(\.what) == ["tags merged", "tags merged"])
    #expect(recorder.reports.map(\.done) == [2, 2])
  }

  @Test("numbers and texts that no work can have are left out")
  func implausible() {
    var progress = WorkProgress(what: "x", done: 1, total: .max, seconds: 1)
    progress.what = String(repeating: "x", count: 100_000)
    #expect(progress.plausible.secondsLeft == nil && progress.plausible.what.count == 200)
    for speed in [1e300, -1, .nan, .infinity] {
      progress.perSecond = speed
      progress.secondsLeft = speed
      #expect(progress.plausible.perSecond == 0 && progress.plausible.secondsLeft == nil)
    }
    #expect(WorkProgress(what: "x", done: -5, total: -1, seconds: 0).plausible.done == 0)
  }

  @Test("a count that no number can hold is ignored")
  func overflow() throws {
    let meter = recorder.meter()
    let piece = try #require(meter.begin("rows of Note") { .min })
    recorder.time += .seconds(2)
    meter.advance(piece, by: .max)
    meter.advance(piece, by: .max)
    #expect(recorder.reports.map(\.done) == [.max])
  }

  @Test("without a total there is no time left")
  func endless() throws {
    let meter = recorder.meter()
    let piece = try #require(meter.begin("rows of Note") { nil })
    recorder.time += .seconds(2)
    meter.advance(piece, to: 7)
    let report = try #require(recorder.reports.first)
    #expect(report.fraction == nil && report.secondsLeft == nil && report.perSecond == 3.5)
  }

  /// What is reported while a statement runs on a large table, if each report takes long enough to be made.
  private func reports(
    of sql: String, rows: Int = 120_000, ofPlan arguments: [AttributeValue?]? = nil
  ) throws -> [WorkProgress] {
    let folder = try TemporaryFolder()
    let connection = try StoreConnection(path: folder.path("a.store"), durability: .clone)
    try connection.perform { session in
      try session.run("CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, size REAL, flag)")
      try session.run(
        """
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < \(rows))
        INSERT INTO note SELECT x, hex(zeroblob(80)), x / 2.0, 0 FROM n
        """)
      try session.run("CREATE TABLE note2 (id INTEGER PRIMARY KEY, title TEXT)")
      recorder.tick = .seconds(1)
      session.meter = recorder.meter()
      if let arguments {
        try session.run(PlanStatement(sql, arguments).prepare(session, .plain))
      } else {
        try session.run(sql, on: "note")
      }
    }
    try connection.close()
    return recorder.reports
  }

  @Test(
    "a statement on a large table reports the rows that it has read",
    arguments: [
      "INSERT INTO note2 SELECT id, title FROM note",
      "UPDATE note SET title = title || '!' WHERE size > 10",
      "DELETE FROM note WHERE flag IS NULL",
      "ALTER TABLE note DROP COLUMN flag",
    ])
  func statement(_ sql: String) throws {
    let reports = try reports(of: sql)
    #expect(reports.count > 10)
    #expect(reports.allSatisfy { $0.what == "rows of table 'note'" && $0.total == 120_000 })
    #expect(zip(reports, reports.dropFirst()).allSatisfy { $0.done <= $1.done })
    // The handler is called at equal distances, so the middle report is made when half of the rows are done.
    let middle = try #require(reports[reports.count / 2].fraction)
    #expect(abs(middle - 0.5) < 0.1)
    let last = try #require(reports.last?.fraction)
    #expect(last > 0.9 && last <= 1)
  }

  @Test(
    "a statement of a plan reports the rows that it has read",
    arguments: [
      "update note set title = title || ? where size > 10;",
      "WITH old AS (SELECT id FROM note) INSERT INTO note2 SELECT id, ? FROM old",
      "REPLACE INTO note2 SELECT id, ? FROM note",
      "DELETE FROM note WHERE title = ?",
    ])
  func planStatement(_ sql: String) throws {
    let reports = try reports(of: sql, ofPlan: [.text("!")])
    #expect(reports.count > 10)
    #expect(reports.allSatisfy { $0.what == "rows of table 'note'" && $0.total == 120_000 })
    let middle = try #require(reports[reports.count / 2].fraction)
    #expect(abs(middle - 0.5) < 0.1)
    #expect(reports.last?.done == 120_000)
  }

  @Test("a statement of a plan that reads several tables again and again is not measured")
  func nestedScans() throws {
    let nested =
      "DELETE FROM note WHERE size < (SELECT count(*) FROM note2 WHERE title = note.title)"
    #expect(try reports(of: nested, rows: 20_000, ofPlan: []).isEmpty)
  }

  @Test("a statement that reads no table, and one on a small table, are not measured")
  func unmeasured() throws {
    #expect(try reports(of: "ALTER TABLE note ADD COLUMN x").isEmpty)
    #expect(try reports(of: "UPDATE note SET flag = 1 WHERE id = 7").isEmpty)
    #expect(try reports(of: "UPDATE note SET flag = 1", rows: 1000).isEmpty)
  }
}
