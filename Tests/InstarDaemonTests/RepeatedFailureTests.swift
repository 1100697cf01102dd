import InstarSchema
import InstarWire
import Logging
import Testing

@testable import InstarDaemon

@Suite("Repeated failures")
struct RepeatedFailureTests {
  private let start = ContinuousClock.now

  private func report(
    _ store: String, _ cause: String, result: RunReport.Result = .failed
  ) -> RunReport {
    var report = RunReport(run: "R-\(store)", store: "/srv/\(store)", result: result, startedAt: 0)
    report.plan = "Notes"
    report.error = InstarError(
      .stageFailed, "cannot migrate", store: report.store, cause: cause, next: "fix it")
    return report
  }

  @Test(
    "the first failure is an entry of its own, others like it are one entry with the first five names"
  )
  func joined() throws {
    var log = RepeatedFailureLog<RunReport>()
    let isFirst = log.note(report("s0", "14 rows of /srv/s0 threw"), at: start)
    #expect(isFirst)
    for number in 1...200 {
      let like = report("s\(number)", "\(number) rows of /srv/s\(number) threw")
      let isEntry = log.note(like, at: start + .seconds(1))
      #expect(!isEntry, "\(number)")
    }
    let early = log.takeDue(at: start + .seconds(10))
    #expect(early == [])
    #expect(log.nextDeadline == start + .seconds(11))
    let due = log.takeDue(at: start + .seconds(11))
    let failures = try #require(due.first)
    #expect(due.count == 1 && failures.count == 200 && failures.first.store == "/srv/s0")
    #expect(failures.stores == (1...5).map { "/srv/s\($0)" })
    #expect(log.nextDeadline == nil)
    let entry = DaemonEvent.runsFailed(failures).entry
    #expect(
      entry.message
        == "200 more stores failed like '/srv/s0': 14 rows of /srv/s0 threw "
        + "('/srv/s1', '/srv/s2', '/srv/s3', '/srv/s4', '/srv/s5' and 195 others); "
        + "to list them with their errors, run: instarctl stores --activity quarantined, and: "
        + "instarctl stores --activity retrying"
    )
    #expect(entry.fields["INSTAR_COUNT"] == "200" && entry.fields["INSTAR_STORE"] == nil)
  }

  @Test("a further attempt of the first store, another cause and a success are not joined")
  func apart() {
    var log = RepeatedFailureLog<RunReport>()
    let entries = [
      log.note(report("s0", "it threw"), at: start),
      log.note(report("s0", "it threw"), at: start + .seconds(10)),
      log.note(report("s1", "the disk is full"), at: start),
      log.note(report("s2", "it threw", result: .migrated), at: start),
    ]
    #expect(entries == [true, true, true, true])
    let joined = log.takeAll()
    #expect(joined == [])
  }

  @Test(
    "entries about further failures follow every minute, and after ten quiet minutes the next failure is a first one"
  )
  func later() {
    var log = RepeatedFailureLog<RunReport>()
    _ = log.note(report("s0", "it threw"), at: start)
    _ = log.note(report("s1", "it threw"), at: start)
    var counts = [log.takeDue(at: start + .seconds(10)).map(\.count)]
    _ = log.note(report("s2", "it threw"), at: start + .seconds(20))
    _ = log.note(report("s3", "it threw"), at: start + .seconds(30))
    // A further attempt of a store that was counted.
    _ = log.note(report("s1", "it threw"), at: start + .seconds(31))
    for seconds in [79, 80] {
      counts.append(log.takeDue(at: start + .seconds(seconds)).map(\.count))
    }
    #expect(counts == [[1], [], [2]])
    let isKnown = !log.note(report("s4", "it threw"), at: start + .seconds(600))
    _ = log.takeAll()
    let isFirst = log.note(report("s5", "it threw"), at: start + .seconds(1201))
    #expect(isKnown && isFirst)
  }

  @Test("verdicts on files that nobody can use are joined by cause, and others are not")
  func verdicts() throws {
    var log = RepeatedFailureLog<ProbeReport>()
    func note(_ store: String, _ state: StoreState, _ reason: String?) -> Bool {
      log.note(ProbeReport(store: "/srv/\(store)", state: state, reason: reason), at: start)
    }
    let entries = [
      note("s0", .corrupt, "38 of 77 bytes are missing"),
      note("s1", .corrupt, "41 of 82 bytes are missing"),
      note("s2", .corrupt, "41 of 82 bytes are missing"),
      note("s3", .corrupt, "the header is damaged"),
      note("s4", .notAStore, "not a SQLite database"),
      note("s5", .notAStore, "not a SQLite database"),
      note("s6", .unknown, nil), note("s7", .unknown, nil),
    ]
    #expect(entries == [true, false, false, true, true, false, true, true])
    let joined = log.takeDue(at: start + .seconds(10)).map { DaemonEvent.storesUnusable($0).entry }
    #expect(
      joined.map(\.message) == [
        "2 more stores are damaged, like '/srv/s0': 38 of 77 bytes are missing "
          + "('/srv/s1', '/srv/s2'); to list them, run: instarctl stores --state corrupt",
        "1 more file is not a store, like '/srv/s4': not a SQLite database "
          + "('/srv/s5'); to list them, run: instarctl stores --state notAStore",
      ])
    #expect(joined.map(\.level) == [.error, .warning])
    #expect(joined.map { $0.fields["INSTAR_COUNT"] } == ["2", "1"])
  }

  @Test("stores that cannot be probed are joined with the advice of a list")
  func probeFailures() {
    var first = ProbeReport(store: "/srv/s0", state: .unreadable, reason: "permission denied")
    first.error = InstarError(
      .unreadableStore, "cannot probe '/srv/s0'", store: "/srv/s0", cause: "permission denied",
      next: "run: ls -l '/srv/s0'")
    let entry = DaemonEvent.storesUnusable(
      RepeatedFailure(first: first, count: 7, stores: ["/srv/s1"])
    ).entry
    #expect(
      entry.message
        == "7 more stores cannot be probed, like '/srv/s0': permission denied ('/srv/s1' and 6 "
        + "others); to list them with their errors, run: instarctl stores --activity quarantined, "
        + "and: instarctl stores --activity retrying")
    #expect(entry.fields["INSTAR_STORE"] == nil && entry.fields["INSTAR_CODE"] != nil)
  }
}
