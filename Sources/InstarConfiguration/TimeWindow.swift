public import InstarLinux
public import InstarSchema

/// When runs on the stores of a watch may start. A run in progress continues after the window closes.
public struct TimeWindow: Sendable, Hashable {
  /// Each opens the window.
  public var opens: [CalendarEvent]
  /// How long it stays open each time.
  public var length: Duration

  /// A window that opens at each of these events.
  public init(opens: [CalendarEvent], length: Duration) {
    self.opens = opens
    self.length = length
  }

  /// A window at one time.
  public struct State: Sendable, Hashable {
    /// Whether runs may start.
    public var isOpen: Bool
    /// When to check again: the window changes then, unless it is open and opens once more before. In seconds since
    /// 1970; `nil` for a window that stays closed.
    public var changesAt: Double?

    /// A state that lasts until that time.
    public init(isOpen: Bool, changesAt: Double? = nil) {
      self.isOpen = isOpen
      self.changesAt = changesAt
    }
  }

  /// Returns whether the window is open at a time, in seconds since 1970.
  ///
  /// Runs a program for each event, which takes some milliseconds.
  ///
  /// - Throws: as `CalendarEvent.next`.
  public func state(at seconds: Double) throws(InstarError) -> State {
    var openings: [Double] = []
    for event in opens {
      // Of the events that keep it open now, the first. Without one, the next event.
      if let opening = try event.next(after: seconds - length.inSeconds) {
        openings.append(opening)
      }
    }
    let ends = openings.filter { $0 <= seconds }.map { $0 + length.inSeconds }
    if let end = ends.max() { return State(isOpen: true, changesAt: end) }
    return State(isOpen: false, changesAt: openings.min())
  }
}
