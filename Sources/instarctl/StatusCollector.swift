import Synchronization

/// The gravest status of several stores whose reports come from other threads.
final class StatusCollector: Sendable {
  private let status = Mutex(ExitStatus.done)

  func note(_ next: ExitStatus) {
    status.withLock { $0 = .gravest($0, next) }
  }

  var gravest: ExitStatus { status.withLock { $0 } }
}
