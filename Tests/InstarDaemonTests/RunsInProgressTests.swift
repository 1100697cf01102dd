import InstarSchema
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Runs in progress")
struct RunsInProgressTests {
  private let start = ContinuousClock.now

  private func event(_ run: String, _ done: Int, of total: Int? = 100) -> RunEvent {
    var event = RunEvent(run: run, store: "/srv/\(run).store", step: .progress)
    event.stage = "1.0.0 → 2.0.0 (1 of 1)"
    event.progress = WorkProgress(what: "rows of Note", done: done, total: total, seconds: 1)
    return event
  }

  @Test("the journal gets a report of a long run after four seconds, then every ten")
  func journal() {
    var runs = RunsInProgress()
    let logged = (0..<30).filter { runs.note(event("a", $0), at: start + .seconds($0)) }
    #expect(logged == [4, 14, 24])
  }

  @Test("the status names the run that takes longest, until its stage or the run ends")
  func status() {
    var runs = RunsInProgress()
    #expect(runs.status == nil)
    _ = runs.note(event("a", 50), at: start)
    _ = runs.note(event("b", 10), at: start)
    #expect(runs.status == "'b.store': stage 1.0.0 → 2.0.0 (1 of 1): 10 %, 9 s left")
    var finished = event("b", 100)
    finished.progress = nil
    finished.step = .stageFinished
    let isLogged = runs.note(finished, at: start + .seconds(60))
    #expect(!isLogged)
    #expect(runs.status == "'a.store': stage 1.0.0 → 2.0.0 (1 of 1): 50 %, 1 s left")
    runs.end("a")
    #expect(runs.status == nil)
  }

  @Test("a run that does not know how much there is says what is done")
  func endless() {
    var runs = RunsInProgress()
    _ = runs.note(event("a", 7, of: nil), at: start)
    #expect(runs.status == "'a.store': stage 1.0.0 → 2.0.0 (1 of 1): 7 rows of Note")
  }
}
