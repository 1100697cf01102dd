/// When a host tries etcd again: after a longer time with each failure, and each host at another moment.
///
/// When etcd is back, all hosts of a fleet connect to it. If they did so at once and again each second, etcd would
/// spend its time with TLS handshakes that nobody waits for any more.
struct Backoff {
  private var failures = 0
  private var next: ContinuousClock.Instant?

  /// Whether to try now.
  func isDue(_ now: ContinuousClock.Instant) -> Bool { next.map { $0 <= now } ?? true }

  /// Doubles the time until the next attempt, up to the longest.
  mutating func fail(_ now: ContinuousClock.Instant, longest: Duration) {
    failures = min(failures + 1, 10)
    let delay = min(Duration.seconds(1 << failures), longest)
    next = now + delay * Double.random(in: 0.5...1)
  }

  /// Begins again with the shortest time.
  mutating func succeed() { self = Backoff() }
}
