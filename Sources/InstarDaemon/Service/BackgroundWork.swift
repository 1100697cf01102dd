import Synchronization

/// Work that no store waits for, one piece after the other: copying the backups of many stores at a time would take the
/// disks and processors from their runs.
final class BackgroundWork: Sendable {
  private let last = Mutex<Task<Void, Never>?>(nil)

  /// Begins the work when all that was added before has ended. Returns at once.
  func add(_ work: @escaping @Sendable () async -> Void) {
    last.withLock { last in
      let earlier = last
      last = Task(executorPreference: BlockingExecutor.shared) {
        await earlier?.value
        await work()
      }
    }
  }
}
