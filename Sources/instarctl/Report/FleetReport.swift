import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire

/// The state of all stores and what the ledger says of their runs: for a terminal, as JSON, or as a page.
struct FleetReport: Encodable {
  /// The daemon, if it answers.
  struct Daemon: Encodable {
    var version: String
    var startedAt: Double
    var phase: Manager.Status.Phase
    var pause: Manager.Pause?
    var folders: [Manager.Folder]
    var activities: [String: Int]
  }

  /// Stores with the same plan and state.
  struct StoreGroup: Encodable {
    var plan: String?
    /// `nil` before the first probe; unreadable where no probe succeeds.
    var state: StoreState?
    var stores: Int
  }

  /// What the ledger knows of one plan, and its rollout.
  struct Plan: Encodable {
    var plan: String
    /// The runs of the plan in the ledger.
    var runs: Int
    /// Stores whose last run migrated them.
    var migrated: Int
    /// Stores whose last run failed or was refused.
    var failed: Int
    /// The rollout, as the state folder records it.
    var rollout: RecordedRollout?
    /// The rollout, as the daemon counts it.
    var progress: Manager.Rollout?
  }

  struct RecordedRollout: Encodable {
    var version: Schema.Version
    var began: Double
    var wave: Int
    /// When each wave opened, from the first one, in seconds since 1970. Waves without stores of their own open and end
    /// at one time.
    var openings: [Double]
    var isFinished: Bool
    var halt: Manager.Pause?
  }

  /// All runs.
  struct Totals: Encodable {
    var runs: Int
    var firstAt: Double?
    var lastAt: Double?
    var results: [String: Int]
    /// In migrated stores, after the runs.
    var rows: Int
    /// Of migrated stores, before the runs.
    var bytes: Int64
  }

  /// How values are distributed: half of them are at most `median`.
  struct Spread: Encodable {
    var median: Double
    var ninetyPercent: Double
    var ninetyNinePercent: Double
    var most: Double

    /// - Returns: `nil` without values.
    init?(_ values: [Double]) {
      let sorted = values.sorted()
      guard let last = sorted.last else { return nil }
      func quantile(_ share: Double) -> Double {
        sorted[min(sorted.count - 1, Int((share * Double(sorted.count)).rounded(.up)) - 1)]
      }
      (median, ninetyPercent, ninetyNinePercent) = (quantile(0.5), quantile(0.9), quantile(0.99))
      most = last
    }
  }

  /// Runs, rehearsals and probes that failed in the same way.
  struct Failure: Encodable {
    var plan: String?
    /// In the ledger; `nil` where only rehearsals and probes failed, which are not in it.
    var runs: Int?
    /// How many stores failed so, and how many of them have had no better run since.
    var stores: Int
    var unsolved: Int
    /// Of the last of these runs.
    var lastAt: Double?
    /// The last of the errors.
    var error: InstarError
    /// How many different causes the errors have. They differ in numbers and paths, which belong to single stores.
    var causes: Int
    /// The first of the stores, by path; those without a better run come first.
    var examples: [String]

    /// The cause, marked as that of one store where those of the others differ.
    var causeText: String { causes > 1 ? "such as: \(error.cause)" : error.cause }
  }

  /// When the report was made, in seconds since 1970.
  var madeAt: Double
  /// Where the ledger is; `nil` where the runs are those that the daemon returned.
  var stateFolder: String?
  /// What the report does not show, and why: one sentence each.
  var missing: [String]
  var daemon: Daemon?
  var stores: [StoreGroup]
  var plans: [Plan]
  var totals: Totals
  /// Of migrations, in seconds.
  var durations: Spread?
  /// Of migrated stores, in bytes.
  var sizes: Spread?
  /// Those with the most unsolved stores first.
  var failures: [Failure]
  /// The runs of the ledger, oldest first.
  let runs: [RunReport]
  /// What each proposed command needs to reach the same daemon.
  let option: String

  private enum CodingKeys: String, CodingKey {
    case madeAt, stateFolder, missing, daemon, stores, plans, totals, durations, sizes, failures
  }

  private static let examplesInFailure = 5

  /// - Parameters:
  ///   - runs: The ledger, oldest first.
  ///   - rollouts: As the state folder records them.
  ///   - status: What the daemon says; `nil` if it cannot be reached.
  ///   - stores: The stores that it knows.
  ///   - option: What each proposed command needs to reach the same daemon, such as " --socket 'PATH'".
  init(
    runs: [RunReport], rollouts: [RolloutRecord], status: Manager.Status?,
    stores: [Manager.Store], stateFolder: String?, missing: [String], option: String,
    madeAt: Double
  ) {
    self.runs = runs
    self.madeAt = madeAt
    self.stateFolder = stateFolder
    self.missing = missing
    self.option = option
    daemon = status.map {
      Daemon(
        version: $0.version, startedAt: $0.startedAt, phase: $0.phase, pause: $0.pause,
        folders: $0.folders, activities: $0.activities)
    }
    self.stores = Self.groups(of: stores)
    let lastRuns = Self.lastRuns(runs)
    plans = Self.plans(runs, lastRuns, rollouts, status?.rollouts ?? [])
    totals = Self.totals(runs)
    let migrated = runs.filter { $0.result == .migrated }
    durations = Spread(migrated.map { $0.seconds })
    sizes = Spread(migrated.compactMap { $0.bytes.map(Double.init) })
    failures = Self.failures(runs, lastRuns, stores)
  }

  private static func groups(of stores: [Manager.Store]) -> [StoreGroup] {
    func state(_ store: Manager.Store) -> StoreState? {
      store.state ?? (store.error == nil ? nil : .unreadable)
    }
    let groups = Dictionary(grouping: stores) { [$0.plan, state($0)?.rawValue] }
    return groups.values.compactMap { group in
      group.first.map { StoreGroup(plan: $0.plan, state: state($0), stores: group.count) }
    }
    .sorted {
      ($0.plan ?? "", $0.state?.rawValue ?? "") < ($1.plan ?? "", $1.state?.rawValue ?? "")
    }
  }

  /// The last run of each store.
  private static func lastRuns(_ runs: [RunReport]) -> [String: RunReport] {
    Dictionary(runs.map { ($0.store, $0) }, uniquingKeysWith: { $1 })
  }

  private static func plans(
    _ runs: [RunReport], _ lastRuns: [String: RunReport], _ records: [RolloutRecord],
    _ progress: [Manager.Rollout]
  ) -> [Plan] {
    let counts = Dictionary(grouping: runs.compactMap(\.plan), by: \.self).mapValues(\.count)
    let last = Dictionary(grouping: lastRuns.values) { $0.plan ?? "" }
    let names = Set(counts.keys).union(records.map(\.plan)).union(progress.map(\.plan))
    return names.map { name in
      Plan(
        plan: name, runs: counts[name] ?? 0,
        migrated: last[name]?.count { $0.result == .migrated } ?? 0,
        failed: last[name]?.count { [.failed, .refused].contains($0.result) } ?? 0,
        rollout: records.first { $0.plan == name }.map {
          RecordedRollout(
            version: $0.version, began: $0.began, wave: $0.wave, openings: $0.openings,
            isFinished: $0.isFinished, halt: $0.halt)
        }, progress: progress.first { $0.plan == name })
    }
    .sorted { ($1.runs, $0.plan) < ($0.runs, $1.plan) }
  }

  private static func totals(_ runs: [RunReport]) -> Totals {
    let migrated = runs.filter { $0.result == .migrated }
    return Totals(
      runs: runs.count, firstAt: runs.map(\.startedAt).min(), lastAt: runs.map(\.startedAt).max(),
      results: Dictionary(grouping: runs, by: \.result.rawValue).mapValues(\.count),
      rows: migrated.flatMap { $0.entities.compactMap(\.rowsAfter) }.saturatingSum,
      bytes: migrated.compactMap(\.bytes).saturatingSum)
  }

  /// A run that failed, or a rehearsal or probe.
  private struct Attempt {
    var kind: FailureKind
    var store: String
    var error: InstarError
    /// `nil` for a rehearsal or probe.
    var run: RunReport?
  }

  private static func failures(
    _ runs: [RunReport], _ lastRuns: [String: RunReport], _ stores: [Manager.Store]
  ) -> [Failure] {
    var attempts = runs.compactMap { run -> Attempt? in
      guard let kind = FailureKind(run), let error = run.error else { return nil }
      return Attempt(kind: kind, store: run.store, error: error, run: run)
    }
    // The ledger has no rehearsals and no probes: only the daemon knows which of them failed.
    attempts += stores.compactMap { store -> Attempt? in
      guard store.activity == .quarantined, let error = store.error,
        lastRuns[store.store].flatMap(FailureKind.init) == nil
      else { return nil }
      return Attempt(
        kind: FailureKind(error, store: store.store, plan: store.plan), store: store.store,
        error: error)
    }
    return Dictionary(grouping: attempts, by: \.kind).compactMap { kind, failed -> Failure? in
      guard let last = failed.last else { return nil }
      let runs = failed.compactMap(\.run)
      let stores = Dictionary(grouping: failed, by: \.store)
      // What the daemon still reports has had no better attempt since.
      let unsolved = Set(
        stores.filter {
          guard let run = $0.value.last?.run else { return true }
          return lastRuns[$0.key]?.run == run.run
        }.keys)
      let others = Set(stores.keys).subtracting(unsolved)
      return Failure(
        plan: kind.plan, runs: runs.isEmpty ? nil : runs.count, stores: stores.count,
        unsolved: unsolved.count, lastAt: runs.last?.startedAt, error: last.error,
        causes: Set(failed.map(\.error.cause)).count,
        examples: Array((unsolved.sorted() + others.sorted()).prefix(examplesInFailure)))
    }
    .sorted {
      ($1.unsolved, $1.runs ?? 0, $0.lastAt ?? 0) < ($0.unsolved, $0.runs ?? 0, $1.lastAt ?? 0)
    }
  }
}

extension RunReport {
  /// How long it took.
  var seconds: Double { Double(durationMicroseconds) / 1e6 }
}
