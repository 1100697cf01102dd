import InstarSchema
import InstarWire
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

  @Test("the first is an entry of its own, the others are one entry with the first five names")
  func joined() throws {
    var log = RepeatedFailureLog()
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
    var log = RepeatedFailureLog()
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

  @Test("further ones follow every minute, and after ten quiet minutes the next is a first one")
  func later() {
    var log = RepeatedFailureLog()
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
}
