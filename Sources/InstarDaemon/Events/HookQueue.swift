import Foundation
import InstarConfiguration
import InstarHooks
import InstarLinux
import InstarSchema
import InstarWire
import Synchronization

/// The events that wait for their hooks.
///
/// States: idle (no event waits, no thread) → working (one thread hands one event after the other to the runner) →
/// idle, and the runner may end.
///
/// Invariants:
/// - `add` never waits for a hook.
/// - Hooks run one at a time: in turn on the oldest event of each kind. A user can cause many events of one kind, which
///   do not hold up those of another kind.
/// - At most `limit` events of each kind wait. Further ones are dropped and counted: the first is reported at once,
///   their number when no event of the kind waits. So a flood of one kind never displaces events of another kind.
/// - The reports of this queue start no hooks.
final class HookQueue: Sendable {
  /// How many events of a kind may wait.
  static let limit = 1_000

  private struct State {
    var settings: HookSettings
    var waiting = TurnQueue<EventKind, EventEntry>()
    /// The kind whose hooks run now; its event counts as waiting.
    var running: EventKind?
    /// By kind, how many were dropped since one was last without a place.
    var dropped: [EventKind: Int] = [:]
    var isWorking = false
    var isClosed = false

    func count(of kind: EventKind) -> Int {
      waiting.count(of: kind) + (running == kind ? 1 : 0)
    }
  }

  /// How long the runner is kept for the next event.
  private static let linger = 5.0

  private let state: Mutex<State>
  private let failures = Mutex(HookFailureLog())
  /// Signaled for each event, and at the end.
  private let available = DispatchSemaphore(value: 0)
  /// Left when the queue becomes idle.
  private let work = DispatchGroup()
  private let socket: String
  private let program: String
  private let configurationFile: String
  private let log: EventLog

  /// - Parameters:
  ///   - configurationFile: Where the runner reads which programs are hooks.
  ///   - log: Where hooks are reported.
  init(
    _ configuration: Configuration, configurationFile: String, program: String, log: EventLog
  ) {
    state = Mutex(State(settings: configuration.hooks))
    socket = Installation.hookSocket(ofStateFolder: configuration.stateFolder)
    self.program = program
    self.configurationFile = configurationFile
    self.log = log
  }

  /// Uses changed settings.
  func use(_ settings: HookSettings) {
    state.withLock { $0.settings = settings }
  }

  /// Queues an event for its hooks, if it has any. Returns at once.
  func add(_ entry: EventEntry) {
    let folder = state.withLock { $0.isClosed ? nil : $0.settings.folder }
    // Without the lock: a disk may be slow.
    guard let folder, HookFolder(folder).hasHooks(of: entry.kind.rawValue) else { return }
    let (isFirstDropped, starts) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      guard state.count(of: entry.kind) < Self.limit else {
        state.dropped[entry.kind, default: 0] += 1
        return (state.dropped[entry.kind] == 1, false)
      }
      state.waiting.append(entry, to: entry.kind)
      defer { state.isWorking = true }
      return (false, !state.isWorking)
    }
    if isFirstDropped { log.post(.hookEventsDropped(entry.kind, count: nil)) }
    if starts { startWorking() }
    available.signal()
  }

  /// Accepts no more events, and waits a moment for the events in the queue. Events that still wait then are dropped
  /// and reported.
  func close(patience: Duration = .seconds(5)) {
    state.withLock { $0.isClosed = true }
    available.signal()
    defer { for failure in failures.withLock({ $0.takeAll() }) { log.post(.hookFailed(failure)) } }
    guard work.wait(timeout: .now() + patience.inSeconds) == .timedOut else { return }
    let left = state.withLock { state in
      defer { state.waiting = TurnQueue() }
      var left = state.dropped
      for kind in state.waiting.turns { left[kind, default: 0] += state.waiting.count(of: kind) }
      return left
    }
    report(left)
  }

  private func startWorking() {
    work.enter()
    let thread = Thread { [self] in
      serve()
      work.leave()
    }
    thread.name = "instar-hooks"
    thread.stackSize = 512 << 10
    thread.start()
  }

  private func serve() {
    var connection: HookConnection?
    while let (entry, timeLimit) = next() {
      if connection?.hasEnded == true {
        connection?.close()
        connection = nil
      }
      do throws(InstarError) {
        if connection == nil {
          connection = try HookConnection(
            socket: socket, program: program, configuration: configurationFile)
        }
        try connection?.run(
          HookRequest(event: entry.kind.rawValue, fields: entry.journalFields), timeLimit: timeLimit
        ) { report in
          guard let error = report.error else { return log.post(.hookRan(report)) }
          note(error, hook: report)
        }
      } catch {
        connection?.close()
        connection = nil
        note(error, hook: nil)
      }
      report(finish(entry.kind))
    }
    connection?.close()
  }

  /// Waits a moment for the next event.
  ///
  /// - Returns: `nil` if there is none: then the queue is idle.
  private func next() -> (EventEntry, Duration)? {
    while true {
      let hasWaited = available.wait(timeout: .now() + Self.linger) == .timedOut
      let (next, isIdle) = state.withLock { state -> ((EventEntry, Duration)?, Bool) in
        guard let kind = state.waiting.turns.first, let entry = state.waiting.popFirst(of: kind)
        else {
          let isIdle = hasWaited || state.isClosed
          if isIdle { state.isWorking = false }
          return (nil, isIdle)
        }
        state.running = kind
        return ((entry, state.settings.timeLimit), false)
      }
      if let next { return next }
      if isIdle { return nil }
    }
  }

  /// - Returns: How many events of the kind were dropped, once none waits.
  private func finish(_ kind: EventKind) -> [EventKind: Int] {
    state.withLock { state in
      state.running = nil
      guard state.count(of: kind) == 0 else { return [:] }
      return state.dropped.removeValue(forKey: kind).map { [kind: $0] } ?? [:]
    }
  }

  private func report(_ dropped: [EventKind: Int]) {
    for (kind, count) in dropped.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      log.post(.hookEventsDropped(kind, count: count))
    }
  }

  private func note(_ error: InstarError, hook: HookReport?) {
    let due = failures.withLock { $0.note(error, report: hook, at: .now) }
    if let due { log.post(.hookFailed(due)) }
  }
}
