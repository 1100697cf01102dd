import InstarSchema
import InstarWire
import Synchronization

/// Limits how many steps of runs, verdicts on stores, and problems of folders and probes are logged.
///
/// The journal drops all entries of a service beyond a number in 30 s: 10,000 by default (journald.conf(5),
/// `RateLimitBurst=`), 100,000 with the packaged unit. A fleet of small stores has nine entries for each store, and
/// hundreds of stores a second. So beyond `entries`, the steps of short runs are left out. The summary of each run,
/// which has the whole report, is never left out. The limit also applies to stores that are found behind and,
/// separately, to stores in other states, and to each kind of problem: any user may make a million symbolic links with
/// the names of stores. Entries that are left out are counted, and become one entry at the end of the window.
final class EntryLimit: Sendable {
  typealias Instant = ContinuousClock.Instant

  static let window = Duration.seconds(30)
  /// The limit for steps and stores that are behind, for stores in other states, and for each kind of problem.
  static let entries = 2000
  /// A run that lasts longer is followed step by step, however many runs there are.
  static let patience = Duration.seconds(5)
  /// How many stores an entry about several names.
  static let namedStores = 5
  /// Its steps are logged together or not at all: room for those of one run.
  private static let stepsOfRun = 12

  private struct Run {
    var startedAt: Instant
    var isFollowed: Bool
    var hasLeftOut = false
  }

  private struct State {
    var windowEnd: Instant?
    var logged = 0
    /// Of stores in other states.
    var loggedStores = 0
    var loggedProblems: [EventKind: Int] = [:]
    var runs: [String: Run] = [:]
    var leftOut = LeftOutEntries()
  }
  private let state = Mutex(State())

  /// Counts a step of a run.
  ///
  /// - Returns: Whether it may be logged.
  func countStep(ofRun run: String, at now: Instant) -> Bool {
    state.withLock { state in
      Self.beginWindow(&state, at: now)
      let isFollowed = state.logged + Self.stepsOfRun <= Self.entries
      var known = state.runs[run] ?? Run(startedAt: now, isFollowed: isFollowed)
      defer { state.runs[run] = known }
      if known.isFollowed || known.startedAt + Self.patience <= now {
        state.logged += 1
        return true
      }
      state.leftOut.steps += 1
      if !known.hasLeftOut { state.leftOut.runs += 1 }
      known.hasLeftOut = true
      return false
    }
  }

  /// Forgets a run that has ended.
  func end(run: String) { state.withLock { $0.runs[run] = nil } }

  /// Counts a verdict on a store.
  ///
  /// - Returns: Whether it may be logged.
  func count(_ report: ProbeReport, at now: Instant) -> Bool {
    state.withLock { state in
      Self.beginWindow(&state, at: now)
      let isBehind = report.state == .behind
      guard (isBehind ? state.logged : state.loggedStores) >= Self.entries else {
        if isBehind { state.logged += 1 } else { state.loggedStores += 1 }
        return true
      }
      state.leftOut.stores[report.state, default: .init()].count += 1
      if state.leftOut.stores[report.state]?.named.count ?? 0 < Self.namedStores {
        state.leftOut.stores[report.state]?.named.append(report.store)
      }
      return false
    }
  }

  /// Counts a problem.
  ///
  /// - Returns: Whether it may be logged.
  func count(problem kind: EventKind, at now: Instant) -> Bool {
    state.withLock { state in
      Self.beginWindow(&state, at: now)
      guard state.loggedProblems[kind, default: 0] >= Self.entries else {
        state.loggedProblems[kind, default: 0] += 1
        return true
      }
      state.leftOut.problems[kind, default: 0] += 1
      return false
    }
  }

  private static func beginWindow(_ state: inout State, at now: Instant) {
    // What was left out is taken first: it belongs to the time that has ended.
    guard state.leftOut.isEmpty, state.windowEnd.map({ $0 <= now }) != false else { return }
    state.windowEnd = now + window
    state.logged = 0
    state.loggedStores = 0
    state.loggedProblems = [:]
  }

  /// When `takeLeftOut` returns something; `nil` if nothing was left out.
  var nextDeadline: Instant? {
    state.withLock { $0.leftOut.isEmpty ? nil : $0.windowEnd }
  }

  /// Returns what was left out until now, once the time is over.
  ///
  /// - Parameter isLast: Nothing follows.
  func takeLeftOut(at now: Instant, isLast: Bool) -> LeftOutEntries? {
    state.withLock { state in
      guard !state.leftOut.isEmpty, isLast || state.windowEnd.map({ $0 <= now }) == true else {
        return nil
      }
      defer { state.leftOut = LeftOutEntries() }
      return state.leftOut
    }
  }
}

/// Steps of runs, verdicts on stores, and problems that the journal did not get.
struct LeftOutEntries: Sendable, Hashable {
  /// Stores in one state.
  struct Stores: Sendable, Hashable {
    /// How many there are.
    var count = 0
    /// The first of them.
    var named: [String] = []
  }

  /// How many steps.
  var steps = 0
  /// How many runs have these steps.
  var runs = 0
  /// The stores by their states.
  var stores: [StoreState: Stores] = [:]

  /// The number of problems of each kind.
  var problems: [EventKind: Int] = [:]

  /// All entries.
  var count: Int {
    steps + stores.values.reduce(0) { $0 + $1.count } + problems.values.reduce(0, +)
  }
  var isEmpty: Bool { steps == 0 && stores.isEmpty && problems.isEmpty }
}
