import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import Testing

@Suite("Time windows")
struct TimeWindowTests {
  /// Seconds since 1970 of a time in UTC, such as "2026-11-20T21:00:00Z".
  private func time(_ text: String) throws -> Double {
    try Date(text, strategy: .iso8601).timeIntervalSince1970
  }

  private func window(_ opens: String..., hours: Int) throws -> TimeWindow {
    TimeWindow(opens: try opens.map { try CalendarEvent($0) }, length: .seconds(hours * 3600))
  }

  @Test("a window is open from its event on for its length, also past midnight")
  func openAndClosed() throws {
    // 2026-11-20 is a Friday.
    let nights = try window("Mon..Fri 22:00 UTC", hours: 6)
    let opening = try time("2026-11-20T22:00:00Z")
    let end = try time("2026-11-21T04:00:00Z")
    #expect(try nights.state(at: opening - 1) == .init(isOpen: false, changesAt: opening))
    for inside in [opening, opening + 1, end - 1] {
      #expect(try nights.state(at: inside) == .init(isOpen: true, changesAt: end))
    }
    // The next one is on Monday.
    #expect(
      try nights.state(at: end)
        == .init(isOpen: false, changesAt: try time("2026-11-23T22:00:00Z")))
  }

  @Test("each of several events opens the window, and the last end counts")
  func severalEvents() throws {
    let window = try window("*-*-* 10:00 UTC", "*-*-* 12:00 UTC", hours: 3)
    #expect(
      try window.state(at: try time("2026-11-20T12:30:00Z"))
        == .init(isOpen: true, changesAt: try time("2026-11-20T15:00:00Z")))
  }

  @Test("an event in local time follows summer time")
  func summerTime() throws {
    let event = try CalendarEvent("*-*-* 22:00 Europe/Berlin")
    #expect(
      try event.next(after: try time("2026-07-01T00:00:00Z")) == time("2026-07-01T20:00:00Z"))
    #expect(
      try event.next(after: try time("2026-12-01T00:00:00Z")) == time("2026-12-01T21:00:00Z"))
  }

  @Test("a window whose events are over stays closed")
  func past() throws {
    let state = try window("2020-01-01 00:00", hours: 1).state(at: try time("2026-11-20T00:00:00Z"))
    #expect(state == .init(isOpen: false, changesAt: nil))
  }

  @Test("what is not a calendar event is refused", arguments: ["", "often", "25:00", "--help"])
  func wrongEvents(text: String) {
    let error = #expect(throws: InstarError.self) { try CalendarEvent(text) }
    #expect(error?.code == .invalidConfiguration)
  }
}
