extension Daemon {
  /// The loop's only timer: puts a tick into the mailbox when the next thing is due.
  ///
  /// Invariants:
  /// - At most one tick is on its way, and it comes no later than the last deadline that was set.
  /// - Ticks are at least `shortestTick` apart: under a burst of changes one tick serves many stores.
  struct Alarm {
    private static let shortestTick = Duration.milliseconds(20)

    let mailbox: DaemonMessage.Mailbox
    private var timer: Task<Void, Never>?
    private var due: ContinuousClock.Instant?

    init(mailbox: DaemonMessage.Mailbox) {
      self.mailbox = mailbox
    }

    mutating func set(for deadline: ContinuousClock.Instant?) {
      guard let deadline else { return }
      let at = max(deadline, .now + Self.shortestTick)
      if let due, due <= at { return }
      due = at
      timer?.cancel()
      timer = Task { [mailbox] in
        do {
          try await Task.sleep(until: at, clock: .continuous)
          mailbox.yield(.tick)
        } catch {
          // Cancelled: an earlier deadline was set.
        }
      }
    }

    /// The tick has come.
    mutating func clear() {
      due = nil
    }

    func cancel() {
      timer?.cancel()
    }
  }
}
