import InstarSystemd

/// Notifies the service manager: readiness, status, watchdog, and longer time limits for a start or a stop.
///
/// Invariants:
/// - The status is sent at most once a second; the last one always arrives.
/// - While the daemon starts or stops, the manager's time limit is extended by this loop: a loop that hangs gets no
///   extension.
struct ManagerNotifications {
  typealias Instant = ContinuousClock.Instant

  /// How often the time limit is extended. Recovering runs of an earlier process, and ending runs in their cutover, may
  /// take longer than the manager waits for a start or a stop.
  private static let extensionInterval = Duration.seconds(10)
  private static let extendedTimeout = Duration.seconds(60)

  private let watchdogInterval = ServiceNotification.watchdogInterval
  private var watchdogDue: Instant?
  /// `nil` while the daemon neither starts nor stops.
  private var extensionDue: Instant?
  private var status = ""
  private var statusSentAt: Instant?
  /// `nil` where the manager has the last status.
  private var statusDue: Instant?

  init() {
    watchdogDue = watchdogInterval.map { .now + $0 / 2 }
    extensionDue = .now + Self.extensionInterval
  }

  var nextDeadline: Instant? { [watchdogDue, extensionDue, statusDue].compactMap { $0 }.min() }

  mutating func tick(at now: Instant) {
    if let due = watchdogDue, due <= now, let watchdogInterval {
      ServiceNotification.send(.watchdog)
      watchdogDue = now + watchdogInterval / 2
    }
    if let due = extensionDue, due <= now {
      ServiceNotification.send(.extendTimeout(Self.extendedTimeout))
      extensionDue = now + Self.extensionInterval
    }
  }

  /// The start, or a reload, is over.
  mutating func sendReady(status: String) {
    extensionDue = nil
    ServiceNotification.send(.ready, .status(status))
    noteSent(status)
  }

  /// A reload begins; `sendReady` ends it.
  func sendReloading() {
    ServiceNotification.send(.reloading)
  }

  mutating func sendStopping() {
    ServiceNotification.send(.stopping)
    extensionDue = .now + Self.extensionInterval
  }

  /// Sends the status where it has changed, now or a little later.
  mutating func update(status: String) {
    guard status != self.status else {
      statusDue = nil
      return
    }
    if let earliest = statusSentAt.map({ $0 + .seconds(1) }), earliest > .now {
      statusDue = earliest
      return
    }
    ServiceNotification.send(.status(status))
    noteSent(status)
  }

  private mutating func noteSent(_ status: String) {
    self.status = status
    statusSentAt = .now
    statusDue = nil
  }
}
