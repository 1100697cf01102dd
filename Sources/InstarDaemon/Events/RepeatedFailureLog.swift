import InstarSchema
import InstarWire

/// Joins failures with the same cause: a plan that throws on each of a thousand stores is one problem, and one alarm.
/// So is a disk that has damaged a thousand.
///
/// The first failure of a kind is an entry of its own, and so is each further failure of the same store. Other stores
/// that fail in the same way are counted once each, and become one entry a little later. A kind is forgotten when
/// nothing has failed in this way for `memory`.
struct RepeatedFailureLog<Report: FailureReport> {
  typealias Instant = ContinuousClock.Instant

  private struct Counted {
    let first: Report
    /// The stores that failed in this way, without the first one: some thousands. Further ones count each time.
    var others: Set<String> = []
    /// How many of them are in no entry yet, and the first of these.
    var count = 0
    var named: [String] = []
    /// When the others become an entry; `nil` without any.
    var due: Instant?
    var entries = 0
    var forgottenAt: Instant

    func isKept(at now: Instant) -> Bool { due != nil || forgottenAt > now }
  }

  private static var patience: Duration { .seconds(10) }
  private static var interval: Duration { .seconds(60) }
  private static var memory: Duration { .seconds(600) }
  /// Further kinds of failures are not joined.
  private static var kindLimit: Int { 200 }
  private static var storeLimit: Int { 10_000 }

  private var kinds: [Report.Kind: Counted] = [:]

  /// - Returns: Whether the failure is an entry of its own. A report that is not a failure always is.
  mutating func note(_ report: Report, at now: Instant) -> Bool {
    guard let kind = report.failureKind else { return true }
    // Taken out, so that its set is changed and not copied.
    guard var counted = kinds.removeValue(forKey: kind), counted.isKept(at: now) else {
      kinds = kinds.filter { $0.value.isKept(at: now) }
      if kinds.count < Self.kindLimit {
        kinds[kind] = Counted(first: report, forgottenAt: now + Self.memory)
      }
      return true
    }
    counted.forgottenAt = now + Self.memory
    defer { kinds[kind] = counted }
    if counted.first.store == report.store { return true }
    if counted.others.count < Self.storeLimit {
      guard counted.others.insert(report.store).inserted else { return false }
    }
    counted.count += 1
    if counted.named.count < EntryLimit.namedStores { counted.named.append(report.store) }
    counted.due = counted.due ?? now + (counted.entries == 0 ? Self.patience : Self.interval)
    return false
  }

  /// Returns the entries that are due, by plan and store.
  mutating func takeDue(at now: Instant) -> [RepeatedFailure<Report>] {
    take { $0 <= now }
  }

  /// Returns all that was counted since the last entries.
  mutating func takeAll() -> [RepeatedFailure<Report>] {
    take { _ in true }
  }

  private mutating func take(where isDue: (Instant) -> Bool) -> [RepeatedFailure<Report>] {
    var taken: [RepeatedFailure<Report>] = []
    for (kind, counted) in kinds {
      guard let due = counted.due, isDue(due) else { continue }
      taken.append(
        RepeatedFailure(first: counted.first, count: counted.count, stores: counted.named))
      kinds[kind]?.count = 0
      kinds[kind]?.named = []
      kinds[kind]?.due = nil
      kinds[kind]?.entries += 1
    }
    return taken.sorted {
      ($0.first.plan ?? "", $0.first.store) < ($1.first.plan ?? "", $1.first.store)
    }
  }

  /// When the next entry is due.
  var nextDeadline: Instant? { kinds.values.compactMap(\.due).min() }
}
