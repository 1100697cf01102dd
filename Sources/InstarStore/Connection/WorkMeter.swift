package import InstarSchema

/// Measures the long pieces of work of one stage, and reports how far they are.
///
/// States: idle ──begin──▶ measuring ──end──▶ idle. A piece that begins while another one is measured is a part of that
/// one and is not reported, unless a closure of the plan names it: then it takes the other one's place.
///
/// A piece is reported first when it took `patience`, then at most once in each `interval`: short work costs nothing.
/// Belongs to the thread that works on the clone.
package final class WorkMeter {
  /// One piece of work, for `advance` and `end`.
  package struct Piece: Hashable {
    fileprivate let number: Int
  }

  private struct Measured {
    let piece: Piece
    let what: String
    let countAll: () -> Int?
    let start: ContinuousClock.Instant
    var done = 0
    var nextReport: ContinuousClock.Instant
    /// Known with the first report.
    var total: Int??
  }

  private static let patience = Duration.seconds(1)
  private static let interval = Duration.milliseconds(500)

  private let now: () -> ContinuousClock.Instant
  private let hasBeenCanceled: () -> Bool
  private let report: (WorkProgress) -> Void
  private var measured: Measured?
  private var pieceCount = 0
  /// What a closure of the plan has begun.
  private var named: Piece?

  /// - Parameters:
  ///   - now: The clock.
  ///   - isCanceled: Whether the run is to end.
  ///   - report: Called within `advance`.
  package init(
    now: @escaping () -> ContinuousClock.Instant = { .now },
    isCanceled: @escaping () -> Bool = { false },
    report: @escaping (WorkProgress) -> Void
  ) {
    self.now = now
    hasBeenCanceled = isCanceled
    self.report = report
  }

  /// Whether the run is to end: its clone will be thrown away.
  package var isCanceled: Bool { hasBeenCanceled() }

  /// Begins a piece of work.
  ///
  /// - Parameters:
  ///   - what: What is counted, such as "rows of Note".
  ///   - replacing: Whether it takes the place of work in progress.
  ///   - total: Counts how many there are, within the first `advance` that reports.
  /// - Returns: `nil` if it is a part of work in progress.
  package func begin(
    _ what: String, replacing: Bool = false, total: @escaping () -> Int?
  ) -> Piece? {
    guard measured == nil || replacing else { return nil }
    pieceCount += 1
    let piece = Piece(number: pieceCount)
    let start = now()
    measured = Measured(
      piece: piece, what: what, countAll: total, start: start, nextReport: start + Self.patience)
    return piece
  }

  /// Sets how many are done. Nothing happens for a piece whose place another one took.
  package func advance(_ piece: Piece, to done: Int) {
    guard measured?.piece == piece else { return }
    measured?.done = done
    reportIfDue()
  }

  /// Adds to how many are done.
  package func advance(_ piece: Piece, by count: Int) {
    guard let measured, measured.piece == piece else { return }
    // A plan may count anything.
    let (done, isTooMany) = measured.done.addingReportingOverflow(count)
    if !isTooMany { advance(piece, to: done) }
  }

  /// Ends a piece, if it is still measured. Work that was reported is reported once more, so that nobody is shown what
  /// was left before.
  package func end(_ piece: Piece) {
    guard let ended = measured, ended.piece == piece else { return }
    if ended.total != nil { send(ended, at: now()) }
    measured = nil
  }

  /// Ends a piece of which all is done, if it is still measured. The last report of others is older than their end.
  package func finish(_ piece: Piece, at total: Int) {
    guard measured?.piece == piece else { return }
    measured?.done = total
    end(piece)
  }

  // MARK: Work that a closure names

  /// Begins what a closure of the plan names, in place of any other work.
  package func beginNamed(_ what: String, total: Int?) {
    named = begin(what, replacing: true, total: { total })
  }

  package func advanceNamed(by count: Int) {
    if let named { advance(named, by: count) }
  }

  /// Ends what a closure has begun, if it has not ended it itself.
  package func endNamed() {
    if let named { end(named) }
    named = nil
  }

  private func reportIfDue() {
    let time = now()
    guard var current = measured, current.nextReport <= time else { return }
    if current.total == nil { current.total = .some(current.countAll()) }
    current.nextReport = time + Self.interval
    measured = current
    send(current, at: time)
  }

  private func send(_ work: Measured, at time: ContinuousClock.Instant) {
    report(
      WorkProgress(
        what: work.what, done: work.done, total: work.total ?? nil,
        seconds: (time - work.start) / .seconds(1)))
  }
}
