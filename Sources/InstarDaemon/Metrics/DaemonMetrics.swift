import CoreMetrics
import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// What the daemon measures about itself and its stores.
///
/// Counters and histograms are changed where something happens, from any thread. Gauges show what the loop has in
/// memory when somebody reads them (`show`): no store is visited for that.
final class DaemonMetrics: Sendable {
  /// What the loop knows.
  struct Snapshot {
    var queue: StoreQueue
    var isPaused: Bool
    var watches: Int
    var unreadableWatches: Int
    var plugins: Int
    var keeperRestarts: Int
  }

  private let registry = MetricsRegistry()
  /// The plans that are labels of their own.
  private let plans = Mutex<Set<String>>([])
  /// Gauges whose labels may disappear, as of the last `show`.
  private let shown = Mutex<[Metric: [[String]: Meter]]>([:])
  private let keeperRestarts = Mutex(0)
  /// The backups of each watch that were counted, and their size, by the path of the watch.
  private let backups = Mutex<[String: (count: Int, bytes: Int64)]>([:])

  /// Plans beyond this number share one label: each new plugin may have another one.
  private static let planLimit = 50
  private static let otherPlans = "other"

  init(version: String, startedAt: Double) {
    meter(.buildInfo, [version]).set(1)
    meter(.startTime, []).set(startedAt)
    for metric in [Metric.probes, .keeperRestarts, .workerRestarts] {
      counter(metric, []).increment(by: 0)
    }
  }

  /// All metrics in Prometheus' text format.
  var text: String { registry.text }

  // MARK: What happens

  /// Records how a run ended.
  func note(_ report: RunReport) {
    let plan = label(ofPlan: report.plan)
    counter(.runs, [report.result.rawValue, plan]).increment()
    timer(.runDuration, [report.result.rawValue, plan]).recordMicroseconds(
      report.durationMicroseconds)
    if let code = report.error?.code, Self.endsWorkers.contains(code) {
      counter(.workerRestarts, []).increment()
    }
    guard report.result == .migrated else { return }
    counter(.rowsMigrated, [plan]).increment(
      by: report.entities.compactMap(\.rowsAfter).saturatingSum)
    counter(.bytesMigrated, [plan]).increment(by: report.bytes ?? 0)
  }

  private static let endsWorkers: Set<InstarError.Code> = [
    .workerDied, .workerExited, .workerLimit, .outputLimit, .timeLimit,
  ]

  func noteProbe() { counter(.probes, []).increment() }

  func noteScan(_ duration: Duration) {
    timer(.scanDuration, []).recordNanoseconds(duration.inMicroseconds * 1000)
  }

  /// Records that an entry at priority `err` or above was written to the journal.
  func noteError(_ event: String) {
    counter(.errors, [event]).increment()
    meter(.lastError, []).set(Date().timeIntervalSince1970)
  }

  // MARK: Backups

  /// Records the backups of a watch's stores.
  func setBackups(_ all: [ListedBackup], of watch: String) {
    changeBackups {
      $0[watch] = (all.count { !$0.isMissing }, all.map(\.occupiedBytes).saturatingSum)
    }
  }

  /// Records that a backup was made, or removed (`sign` -1). Without effect until those of the watch were counted.
  func noteBackup(_ bytes: Int64, sign: Int = 1, of watch: String) {
    changeBackups { backups in
      guard let known = backups[watch] else { return }
      backups[watch] = (known.count + sign, known.bytes.saturatingAdd(Int64(sign) * bytes))
    }
  }

  /// Forgets the backups of all other watches.
  func forgetBackups(exceptOfWatches paths: Set<String>) {
    changeBackups { $0 = $0.filter { paths.contains($0.key) } }
  }

  private func changeBackups(_ change: (inout [String: (count: Int, bytes: Int64)]) -> Void) {
    backups.withLock { backups in
      let wereCounted = !backups.isEmpty
      change(&backups)
      guard wereCounted || !backups.isEmpty else { return }
      meter(.backups, []).set(backups.values.map(\.count).reduce(0, +))
      meter(.backupBytes, []).set(backups.values.map(\.bytes).saturatingSum)
    }
  }

  // MARK: What the loop knows

  /// Brings the gauges to what the loop knows.
  func show(_ snapshot: Snapshot, at now: ContinuousClock.Instant) {
    let queue = snapshot.queue
    meter(.paused, []).set(snapshot.isPaused ? 1 : 0)
    meter(.watches, ["watched"]).set(snapshot.watches - snapshot.unreadableWatches)
    meter(.watches, ["unreadable"]).set(snapshot.unreadableWatches)
    meter(.plugins, []).set(snapshot.plugins)
    meter(.queueLength, ["probe"]).set(queue.probeQueueLength)
    meter(.queueLength, ["run"]).set(queue.queuedCount - queue.probeQueueLength)
    meter(.runsInProgress, []).set(queue.runningCount)
    let restarts = keeperRestarts.withLock { known in
      defer { known = snapshot.keeperRestarts }
      return snapshot.keeperRestarts - known
    }
    counter(.keeperRestarts, []).increment(by: restarts)
    for activity in Manager.Activity.allCases {
      meter(.storesByActivity, [activity.rawValue]).set(queue.activityCounts[activity] ?? 0)
    }
    replace(.stores, by: stores(of: queue))
    showRollouts(of: queue, at: now)
  }

  private func stores(of queue: StoreQueue) -> [[String]: Double] {
    var stores: [[String]: Double] = [:]
    for (group, count) in queue.groupCounts {
      let plan = label(ofPlan: group.plan)
      if !plan.isEmpty {
        // A store that is the first one to fail must be an increase.
        for result in RunReport.Result.allCases {
          counter(.runs, [result.rawValue, plan]).increment(by: 0)
        }
        // So that the series of a plan do not come and go with its stores.
        for state in [StoreState.current, .behind] {
          stores[[state.rawValue, plan], default: 0] += 0
        }
      }
      stores[[group.state?.rawValue ?? "unprobed", plan], default: 0] += Double(count)
    }
    return stores
  }

  /// Two plugins may have a plan of the same name, with a rollout each: their stores are added up. Together they count
  /// as waiting if each one that is not done waits.
  private func showRollouts(of queue: StoreQueue, at now: ContinuousClock.Instant) {
    var values: [Metric: [[String]: Double]] = [:]
    func add(_ metric: Metric, _ labels: [String], _ value: Int) {
      values[metric, default: [:]][labels, default: 0] += Double(value)
    }
    func raise(_ metric: Metric, _ labels: [String], to value: Int) {
      let known = values[metric]?[labels] ?? 0
      values[metric, default: [:]][labels] = max(known, Double(value))
    }
    func lower(_ metric: Metric, _ labels: [String], to value: Int) {
      let known = values[metric]?[labels] ?? .infinity
      values[metric, default: [:]][labels] = min(known, Double(value))
    }
    var plansOfDone: Set<String> = []
    for rollout in queue.rolloutStatuses(at: now) {
      let plan = label(ofPlan: rollout.plan)
      raise(.rolloutWave, [plan], to: rollout.wave)
      raise(.rolloutWaves, [plan], to: rollout.waves)
      for (turn, count) in [
        ("waiting", rollout.waiting), ("admitted", rollout.admitted),
        ("deferred", rollout.deferred), ("migrated", rollout.migrated), ("failed", rollout.failed),
      ] { add(.rolloutStores, [plan, turn], count) }
      add(.rolloutUnapproved, [plan], rollout.unapproved)
      let isByOperator = rollout.halt != nil && !rollout.isHaltedByFailures
      raise(.rolloutHalted, [plan, "failures"], to: rollout.isHaltedByFailures ? 1 : 0)
      raise(.rolloutHalted, [plan, "operator"], to: isByOperator ? 1 : 0)
      guard rollout.waiting + rollout.admitted + rollout.deferred > 0 else {
        // A host whose stores are done gets no permission any more.
        plansOfDone.insert(plan)
        continue
      }
      let key = Rollout.Key(plan: rollout.plan, version: rollout.version)
      lower(.rolloutWaits, [plan, "window"], to: rollout.closedWindow == nil ? 0 : 1)
      lower(.rolloutWaits, [plan, "permission"], to: queue.isPermitted(key, now) ? 0 : 1)
    }
    for plan in plansOfDone {
      for reason in ["window", "permission"] { add(.rolloutWaits, [plan, reason], 0) }
    }
    for budget in queue.rolloutBudgets {
      let plan = label(ofPlan: budget.plan)
      if let allowed = budget.allowed { add(.rolloutBudget, [plan], allowed) }
      add(.rolloutFailures, [plan], budget.counted)
    }
    for metric in [
      Metric.rolloutWave, .rolloutWaves, .rolloutStores, .rolloutUnapproved, .rolloutHalted,
      .rolloutWaits, .rolloutBudget, .rolloutFailures,
    ] { replace(metric, by: values[metric] ?? [:]) }
  }

  /// Sets a gauge, and removes the series that have no value any more.
  private func replace(_ metric: Metric, by values: [[String]: Double]) {
    shown.withLock { shown in
      for (labels, meter) in shown[metric] ?? [:] where values[labels] == nil {
        meter.destroy()
        shown[metric]?[labels] = nil
      }
      for (labels, value) in values {
        let meter = shown[metric]?[labels] ?? meter(metric, labels)
        shown[metric, default: [:]][labels] = meter
        meter.set(value)
      }
    }
  }

  // MARK: Series

  /// - Returns: An empty text for no plan.
  private func label(ofPlan plan: String?) -> String {
    guard let plan else { return "" }
    return plans.withLock { plans in
      if plans.contains(plan) { return plan }
      guard plans.count < Self.planLimit else { return Self.otherPlans }
      plans.insert(plan)
      return plan
    }
  }

  private func counter(_ metric: Metric, _ labels: [String]) -> Counter {
    Counter(label: metric.rawValue, dimensions: dimensions(metric, labels), factory: registry)
  }

  private func meter(_ metric: Metric, _ labels: [String]) -> Meter {
    Meter(label: metric.rawValue, dimensions: dimensions(metric, labels), factory: registry)
  }

  private func timer(_ metric: Metric, _ labels: [String]) -> CoreMetrics.Timer {
    CoreMetrics.Timer(
      label: metric.rawValue, dimensions: dimensions(metric, labels), factory: registry)
  }

  private func dimensions(_ metric: Metric, _ labels: [String]) -> [(String, String)] {
    Array(zip(metric.labels, labels))
  }
}
