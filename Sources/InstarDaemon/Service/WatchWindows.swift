import Dispatch
import Foundation
import InstarConfiguration
import InstarSchema

/// The time windows of the watches: checks whether they are open, and reports changes.
///
/// Invariants:
/// - A window counts as closed until it was checked, so that nothing runs too early.
/// - At most one check is in progress. A check that began under an earlier configuration is ignored.
/// - Windows are always checked again after `interval`, because somebody may have set the clock.
struct WatchWindows {
  /// The windows of all watches at one time, by the watch's path.
  struct Check: Sendable {
    var states: [String: TimeWindow.State] = [:]
    var errors: [InstarError] = []
    fileprivate var generation: Int
    fileprivate var seconds: Double
  }

  private static let queue = DispatchQueue(label: "instard.windows")
  private static let interval = Duration.seconds(300)

  private let log: EventLog
  private let mailbox: DaemonMessage.Mailbox
  private var generation = 0
  private var windows: [String: TimeWindow] = [:]
  private(set) var states: [String: TimeWindow.State] = [:]
  private var errors: Set<InstarError> = []
  /// When to check again; `nil` while a check is in progress, or if no watch has a window.
  private(set) var due: ContinuousClock.Instant?

  init(log: EventLog, mailbox: DaemonMessage.Mailbox) {
    self.log = log
    self.mailbox = mailbox
  }

  /// Uses the windows of a configuration, and checks them.
  mutating func use(_ configuration: Configuration) {
    generation += 1
    windows = [:]
    for watch in configuration.watches { windows[watch.path] = watch.window }
    states = [:]
    check()
  }

  /// Starts a check of the windows. Its result comes as a message.
  mutating func check() {
    due = nil
    guard !windows.isEmpty else { return }
    Self.queue.async { [windows, generation, mailbox] in
      var check = Check(generation: generation, seconds: Date().timeIntervalSince1970)
      for (path, window) in windows.sorted(by: { $0.key < $1.key }) {
        do throws(InstarError) {
          check.states[path] = try window.state(at: check.seconds)
        } catch {
          check.errors.append(error)
        }
      }
      mailbox.yield(.windows(check))
    }
  }

  /// Applies the result of a check.
  mutating func finish(_ check: Check) -> [StoreQueue.Event] {
    guard check.generation == generation else { return [] }
    for error in check.errors where !errors.contains(error) { log.post(.problem(error)) }
    errors = Set(check.errors)
    for (path, state) in check.states.sorted(by: { $0.key < $1.key })
    where states[path]?.isOpen != state.isOpen {
      log.post(.windowChanged(watch: path, state))
    }
    states = check.states
    let next = states.values.compactMap(\.changesAt).min().map {
      Duration.seconds($0 - check.seconds)
    }
    due = .now + max(.seconds(1), min(next ?? Self.interval, Self.interval))
    return [.windowsKnown(states)]
  }
}
