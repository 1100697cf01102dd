import Foundation
import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// One plan's way through the stores that are behind, wave after wave: who is next, and when to stop.
///
/// It does no I/O, and reads the clock only to date a halt. `StoreQueue` reports the result of each store to it, and
/// asks it which store is next.
///
/// The files `Rollout+….swift` have the other parts: what becomes of stores, the failure budget, orders, the record.
/// No other file changes the properties.
///
/// States:
///
/// ```text
/// counting ──▶ wave 1 open ──▶ soaking ──▶ wave 2 open ──▶ … ──▶ last wave open
/// ```
///
/// - counting: stores are still probed, so their number is not known. No store has its turn. After a restart, the
///   rollout counts again, in the wave in which it was.
/// - open: stores have their turn, up to the size of the wave. In the last wave all stores have their turn.
/// - soaking: all stores of the wave were migrated or failed. The next wave opens later.
///
/// In each state the rollout can be halted. When it is resumed, it continues from where it was.
///
/// Invariants:
/// - A store that is `waiting`, and any store during a halt, gets no run.
/// - A wave ends when each of its stores is migrated or failed. A `deferred` store, such as one that other processes
///   use, gives its place to another store. If no store is left to take the place, the wave ends only if a store waits
///   for a later wave and some store is migrated or failed.
/// - More failures than the budget halt the rollout; runs in progress go on.
/// - A store that was migrated or failed, and is retried, keeps its result until that run has ended. If its watch asks
///   first by now, the store waits instead, and its failure no longer counts.
struct Rollout: Sendable {
  /// A point in time, which the caller passes in.
  typealias Instant = ContinuousClock.Instant

  /// What the journal reports.
  enum Change: Sendable, Hashable {
    case waveOpened
    case waveDone
    case finished
    case halted
    case resumed
    case approved
  }

  /// The name of the plan.
  let plan: String
  /// Its last version.
  let version: Schema.Version
  let key: Key
  /// The version of the plugin's file that the rollout began with.
  let plugin: RolloutRecord.PluginFile?
  /// In seconds since 1970; `nil` until it is first recorded.
  var began: Double?
  /// When each wave opened, in seconds since 1970, as far as that is recorded.
  var openings: [Double] = []
  var budget: RolloutSettings.Share?
  var watchBudgets: [String: RolloutSettings.Share] = [:]
  var soak = Duration.zero
  /// How many stores have had their turn when each wave ends.
  var steps: [RolloutSettings.Share] = []

  /// The wave that is open or soaking, from 1; 0 while stores are counted for the first time.
  var wave = 0
  var hasCounted = false
  var soakEnds: Instant?
  /// The soak is over, and only events open the next wave.
  private var isSoaked = false
  var halt: Manager.Pause?
  var isFinished = false
  /// Stores that had failed when an operator resumed the rollout. They do not count.
  var forgiven: Set<String> = []
  var isApproved = false
  var approvedStores: Set<String> = []

  var stores = RolloutTable()
  /// Stores that have had their turn and want a run that a halt prevents.
  var waitingForHaltToEnd: Set<String> = []

  /// A rollout that has not counted its stores.
  init(
    plan: String, version: Schema.Version, plugin: RolloutRecord.PluginFile?,
    settings: RolloutSettings
  ) {
    self.plan = plan
    self.version = version
    key = Key(plan: plan, version: version)
    self.plugin = plugin
    update(settings)
  }

  // MARK: Stores

  func count(_ turn: Manager.Turn) -> Int { stores.count(turn) }
  /// The number of stores that the rollout knows.
  var total: Int { stores.total }
  /// The number of stores that have had their turn and keep their place in a wave.
  private var inTurn: Int { count(.admitted) + ended }
  var ended: Int { count(.migrated) + count(.failed) }
  /// The wave in which a store had its turn.
  func wave(of store: String) -> Int? { stores[store].flatMap { $0.wave > 0 ? $0.wave : nil } }
  /// Whether the rollout knows a store.
  func has(_ store: String) -> Bool { stores[store] != nil }
  /// The turn of a store; `nil` for a store that the rollout does not know.
  func turn(of store: String) -> Manager.Turn? { stores[store]?.turn }

  // MARK: Turns and waves

  /// Lets the next store have its turn; `nil` where none may.
  ///
  /// - Parameter isPending: Whether a store is ready. One that is not comes back by `add`.
  mutating func admitNext(_ isPending: (String) -> Bool) -> String? {
    guard halt == nil else { return nil }
    while let store = waitingForHaltToEnd.popFirst() {
      // It may have left and come back since.
      if has(store), stores[store]?.turn != .waiting, isPending(store) { return store }
    }
    guard soakEnds == nil, hasCounted, wave > 0 else { return nil }
    while inTurn < size(of: wave), let next = stores.nextInQueue(), isInWave(next) {
      stores.removeNext()
      guard isPending(next.store) else { continue }
      set(next.store, .admitted)
      return next.store
    }
    return nil
  }

  /// How many stores have had their turn when a wave ends.
  func size(of wave: Int) -> Int {
    wave >= steps.count ? .max : steps[wave - 1].stores(of: total)
  }

  /// The time of the next change; `nil` if only events change the rollout.
  var deadline: Instant? { halt == nil && hasCounted && !isSoaked ? soakEnds : nil }

  /// Opens or ends a wave, where it is time.
  ///
  /// - Parameters:
  ///   - areAllProbed: Each store that `StoreQueue` knows is probed, so `total` is right.
  ///   - isKnown: Whether `StoreQueue` knows a store. Others are forgotten.
  mutating func advance(
    at now: Instant, areAllProbed: Bool, isKnown: (String) -> Bool
  ) -> Change? {
    guard halt == nil else { return nil }
    if !hasCounted {
      guard areAllProbed else { return nil }
      hasCounted = true
      for store in stores.paths where !isKnown(store) { leave(store) }
      if haltIfOverBudget(at: Date().timeIntervalSince1970) { return .halted }
    }
    isSoaked = soakEnds.map { $0 <= now } ?? false
    // All stores have left: no plugin knows them for now, or their file system is gone. It waits where it is.
    guard total > 0 else { return nil }
    if let end = soakEnds {
      // Stores that were just found count too, so their probes come first. Else a share of only a few stores could open
      // the last wave.
      guard end <= now, areAllProbed else { return nil }
      soakEnds = nil
      return openNextWave()
    }
    if wave == 0 { return count(.waiting) > 0 ? openNextWave() : nil }
    guard !isFinished, count(.admitted) == 0, isWaveFull() else { return nil }
    // Without other stores, the remaining waves are empty.
    let others = count(.waiting) + count(.deferred)
    guard wave < steps.count, others > 0 else {
      guard others == 0 else { return nil }
      // The wave stays: stores that come later, or come back, have their turn in the next ones.
      isFinished = true
      return .finished
    }
    soakEnds = now + soak
    return .waveDone
  }

  /// Skips waves that have no store of their own.
  private mutating func openNextWave() -> Change {
    repeat { wave += 1 } while wave < steps.count && size(of: wave) <= inTurn
    return .waveOpened
  }

  private mutating func isWaveFull() -> Bool {
    if inTurn >= size(of: wave) { return true }
    let next = stores.nextInQueue()
    if let next, isInWave(next) { return false }
    if stores.hasUnapproved(where: isInWave) { return false }
    return count(.deferred) == 0 || next != nil && ended > 0
  }

  /// Whether a store belongs to the wave that is open, or to an earlier one. If the wave of its watch is beyond the
  /// last one, the store belongs to the last one.
  private func isInWave(_ place: RolloutTable.Place) -> Bool {
    min(place.wave, steps.count) <= wave
  }

  // MARK: Settings

  /// Applies the sizes of the waves and the budget of a new configuration.
  mutating func update(_ settings: RolloutSettings) {
    let wasLast = wave >= steps.count
    let isChanged = steps != settings.steps
    steps = settings.steps
    soak = settings.soak
    budget = settings.budget
    watchBudgets = settings.watchBudgets
    if soak == .zero { soakEnds = nil }
    guard wave > 0, isChanged else { return }
    guard hasCounted, !wasLast else {
      // A wave follows each soak, also where the new configuration has fewer waves.
      wave = min(wasLast ? steps.count : wave, soakEnds == nil ? steps.count : steps.count - 1)
      return
    }
    // The number of the old wave says nothing under the new sizes. The new wave is the one that is filled by the stores
    // that have had their turn.
    let sizes = steps.dropLast().map { $0.stores(of: total) }
    wave =
      soakEnds == nil
      ? sizes.count { $0 < inTurn } + 1 : sizes.count { $0 <= inTurn }
  }

  /// Whether the rollout holds no state that must outlive a new configuration or plugin.
  var isForgettable: Bool {
    halt == nil && !isApproved && approvedStores.isEmpty && count(.waiting) == 0
  }
}
