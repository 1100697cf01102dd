import Synchronization

/// Collects the most serious status of several stores, from any thread.
final class StatusCollector: Sendable {
  private let status = Mutex(ExitStatus.done)

  func note(_ next: ExitStatus) {
    status.withLock { $0 = .gravest($0, next) }
  }

  var gravest: ExitStatus { status.withLock { $0 } }
}
