/// What a rescan of all folders has read so far, and when the next one is due.
///
/// The time counts from the end of the last rescan. Only the first scan of each watch since the rescan began counts for
/// its end and for what it took: a watch is scanned more often while its folder changes, and must not put off the
/// rescan of the others.
struct RescanProgress {
  typealias Instant = ContinuousClock.Instant

  /// `nil` before the first rescan.
  private(set) var due: Instant?
  /// The watches whose scans the rescan waits for, by path.
  private var remaining: Set<String> = []
  /// The processor time of the scans that have ended.
  private var processorTime = Duration.zero
  /// Whether the next one follows lost events.
  private var isWanted = false
  /// A rescan after lost events begins no earlier: whoever changes many files all the time must not have all folders
  /// read all the time.
  private var restEnds: Instant?
  private static let restShare = 10

  /// Notes that a rescan of these watches begins.
  ///
  /// - Parameter delay: The time from one rescan to the next, by the processor time that the last one took.
  mutating func begin(_ watches: [String], at now: Instant, delay: (Duration) -> Duration) {
    remaining = Set(watches)
    processorTime = .zero
    isWanted = false
    due = now + delay(processorTime)
  }

  /// Notes the end of a scan of a whole watch.
  mutating func finish(
    _ watch: String, _ time: Duration, at now: Instant, delay: (Duration) -> Duration
  ) {
    guard remaining.remove(watch) != nil else { return }
    processorTime += time
    restEnds = now + processorTime * Self.restShare
    if isWanted {
      if remaining.isEmpty { hasten(at: now) }
      return
    }
    // A rescan that is due already is not put off.
    guard let due, due > now else { return }
    self.due = max(due, now + delay(processorTime))
  }

  /// Stops waiting for a watch whose file system does not answer.
  mutating func leave(_ watch: String, at now: Instant) {
    guard remaining.remove(watch) != nil, isWanted, remaining.isEmpty else { return }
    hasten(at: now)
  }

  /// Makes a rescan due after lost events: at once, or after a rest of ten times what the last one took. Events that
  /// are lost during a rescan begin the next one only after its end: else constant losses would restart it for ever.
  ///
  /// - Returns: `false` if one is wanted already.
  mutating func want(at now: Instant) -> Bool {
    guard !isWanted else { return false }
    isWanted = true
    if remaining.isEmpty { hasten(at: now) }
    return true
  }

  private mutating func hasten(at now: Instant) {
    let earliest = max(now, restEnds ?? now)
    due = min(due ?? earliest, earliest)
  }
}
