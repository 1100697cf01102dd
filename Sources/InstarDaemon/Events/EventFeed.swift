import Dispatch
import InstarSchema
import InstarWire
import Synchronization

/// Passes events on to the clients that follow them (`Monitor` of the control socket).
///
/// Invariants:
/// - Whoever posts an event never waits for a client. A client that reads too slowly misses events, and is told how
///   many.
/// - A client gets the events in the order in which they were posted.
final class EventFeed: Sendable {
  /// One client's place in the feed. It ends with its last reference.
  final class Subscription: Sendable {
    private struct State {
      var replies: [Manager.EventReply] = []
      /// Events since the last of `replies`.
      var missed = 0
    }

    private static let limit = 1000
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)

    fileprivate func add(_ event: Manager.Event) {
      let isNew = state.withLock { state in
        guard state.replies.count < Self.limit else {
          state.missed += 1
          return false
        }
        state.replies.append(
          Manager.EventReply(event: event, missed: state.missed == 0 ? nil : state.missed))
        state.missed = 0
        return true
      }
      if isNew { available.signal() }
    }

    /// Returns the next event, and how many were missed before it; `nil` where there is none in time.
    func next(timeout: Duration) -> Manager.EventReply? {
      guard available.wait(timeout: .now() + timeout.inSeconds) == .success else { return nil }
      return state.withLock { $0.replies.isEmpty ? nil : $0.replies.removeFirst() }
    }
  }

  private struct Place {
    weak var subscription: Subscription?
  }

  private let places = Mutex<[Place]>([])

  /// Gets each event that is posted from now on.
  func subscribe() -> Subscription {
    let subscription = Subscription()
    places.withLock { places in
      places.removeAll { $0.subscription == nil }
      places.append(Place(subscription: subscription))
    }
    return subscription
  }

  /// - Parameter event: Made only if somebody follows.
  func publish(_ event: @autoclosure () -> Manager.Event) {
    let subscriptions = places.withLock { $0.compactMap(\.subscription) }
    guard !subscriptions.isEmpty else { return }
    let event = event()
    for subscription in subscriptions { subscription.add(event) }
  }
}
