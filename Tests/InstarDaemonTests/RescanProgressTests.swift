import Testing

@testable import InstarDaemon

@Suite("The time of the next rescan")
struct RescanProgressTests {
  private let start = ContinuousClock.now
  private var rescan = RescanProgress()

  /// A minute, or a hundred times what the last rescan took.
  private static func delay(after time: Duration) -> Duration { max(.seconds(60), time * 100) }

  init() { rescan.begin(["/a", "/b"], at: start, delay: Self.delay) }

  private mutating func finish(_ watch: String, _ time: Duration, after: Duration) {
    rescan.finish(watch, time, at: start + after, delay: Self.delay)
  }

  @Test(
    "the time of the next rescan counts from the end of the last scan, and grows with what all scans took"
  )
  mutating func scans() {
    #expect(rescan.due == start + .seconds(60))
    finish("/a", .seconds(1), after: .seconds(2))
    #expect(rescan.due == start + .seconds(102))
    finish("/b", .seconds(2), after: .seconds(4))
    #expect(rescan.due == start + .seconds(304))
  }

  @Test(
    "the time of the next rescan stays when a watch is scanned again because its folder changed")
  mutating func changingFolder() {
    for second in 1..<50 { finish("/a", .seconds(1), after: .seconds(second)) }
    #expect(rescan.due == start + .seconds(101))
  }

  @Test("a rescan follows at once after lost events, whatever is scanned then")
  mutating func lostEvents() {
    finish("/a", .zero, after: .seconds(1))
    finish("/b", .zero, after: .seconds(1))
    let (isNew, isNewAgain) = (
      rescan.want(at: start + .seconds(2)), rescan.want(at: start + .seconds(2))
    )
    #expect(isNew && !isNewAgain)
    finish("/a", .seconds(1), after: .seconds(3))
    #expect(rescan.due == start + .seconds(2))
  }

  @Test(
    "a rescan after events that were lost during another one begins when that one has ended and rested"
  )
  mutating func lostEventsDuringRescan() {
    _ = rescan.want(at: start + .seconds(1))
    #expect(rescan.due == start + .seconds(60))
    finish("/a", .seconds(1), after: .seconds(2))
    #expect(rescan.due == start + .seconds(60))
    finish("/b", .seconds(1), after: .seconds(3))
    #expect(rescan.due == start + .seconds(23))
  }

  @Test("a rescan after lost events does not wait for a scan that does not answer")
  mutating func leftScan() {
    _ = rescan.want(at: start + .seconds(1))
    finish("/a", .seconds(1), after: .seconds(2))
    rescan.leave("/c", at: start + .seconds(3))
    #expect(rescan.due == start + .seconds(60))
    rescan.leave("/b", at: start + .seconds(20))
    #expect(rescan.due == start + .seconds(20))
  }

  @Test("a rescan comes in time where a scan does not end, although events were lost")
  mutating func unendingScan() {
    finish("/a", .seconds(1), after: .seconds(2))
    _ = rescan.want(at: start + .seconds(3))
    #expect(rescan.due == start + .seconds(102))
  }

  @Test("a rescan waits ten times what the last one took when events are lost all the time")
  mutating func eventsLostAllTheTime() {
    finish("/a", .seconds(1), after: .seconds(2))
    finish("/b", .seconds(2), after: .seconds(4))
    _ = rescan.want(at: start + .seconds(5))
    #expect(rescan.due == start + .seconds(34))
    rescan.begin(["/a"], at: start + .seconds(34), delay: Self.delay)
    _ = rescan.want(at: start + .seconds(35))
    finish("/a", .seconds(1), after: .seconds(36))
    #expect(rescan.due == start + .seconds(46))
  }
}
