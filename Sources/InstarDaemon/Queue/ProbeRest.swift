import InstarConfiguration
import InstarSchema

/// Whose stores are not probed for a while, because a batch of probes failed as a whole.
///
/// Such a failure may be that of one owner: no keeper can be started as that user. Then the stores of others are probed
/// meanwhile. If the next batch belongs to another owner and fails too, the failure concerns everybody.
struct ProbeRest: Sendable {
  typealias Instant = ContinuousClock.Instant

  private struct Rest {
    /// Batches that failed in a row.
    var failures = 0
    /// `nil` where the rest was ended.
    var until: Instant?

    mutating func begin(at now: Instant, _ retry: Configuration.Retry) -> Duration {
      failures += 1
      let delay = retry.delay(failures: failures)
      until = now + delay
      return delay
    }

    func holds(at now: Instant) -> Bool { until.map { $0 > now } ?? false }
  }

  private var owners: [UInt32: Rest] = [:]
  private var all = Rest()
  /// The owner of the last batch, if it failed.
  private var failed: UInt32?

  /// Records that a batch failed.
  ///
  /// - Parameters:
  ///   - wasAnswered: Some store of the batch had an answer, so earlier failures say nothing any more.
  ///   - retry: The length of a rest.
  /// - Returns: How long the stores of the batch wait.
  mutating func begin(
    _ error: InstarError, of owner: UInt32, wasAnswered: Bool, at now: Instant,
    retry: Configuration.Retry
  ) -> Duration {
    let isOthersToo = failed.map { $0 != owner } ?? false
    failed = owner
    if wasAnswered { end(of: owner) }
    guard isOthersToo || error.isAboutPlugin || error.code == .incompleteInstallation else {
      return owners[owner, default: Rest()].begin(at: now, retry)
    }
    return all.begin(at: now, retry)
  }

  /// Records that a batch did not fail.
  mutating func end(of owner: UInt32) {
    owners[owner] = nil
    all = Rest()
    failed = nil
  }

  /// Lets all be probed now. A further failure still makes the next rest longer.
  mutating func endAll() {
    all.until = nil
    for owner in owners.keys { owners[owner]?.until = nil }
  }

  func isForAll(at now: Instant) -> Bool { all.holds(at: now) }
  func isFor(_ owner: UInt32, at now: Instant) -> Bool { owners[owner]?.holds(at: now) ?? false }

  /// When the next rest ends; `nil` without one.
  func deadline(after now: Instant) -> Instant? {
    (owners.values.map(\.until) + [all.until]).compactMap(\.self).filter { $0 > now }.min()
  }
}

extension InstarError {
  /// One of the errors of the group "a plugin".
  var isAboutPlugin: Bool { code.rawValue.hasPrefix("I4") }
}
