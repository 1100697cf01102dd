import Foundation
import InstarConfiguration
public import InstarSchema
public import InstarSupervisor
import InstarWire

/// One plan's way through the stores that are behind, wave after wave: who is next, and when to stop.
///
/// It does no I/O and reads no clock; `StoreQueue` tells it what becomes of each store, and asks it whose turn it is.
///
/// States:
///
/// ```text
/// counting ──▶ wave 1 open ──▶ soaking ──▶ wave 2 open ──▶ … ──▶ last wave open
/// ```
///
/// - counting: stores are still probed, so nobody knows how many there are. No store has its turn.
/// - open: stores have their turn, up to the size of the wave. In the last wave all have.
/// - soaking: all stores of the wave were migrated or failed. The next wave opens later.
///
/// In each state the rollout can be halted, and goes on where it was when it is resumed.
///
/// Invariants:
/// - A store that is not `admitted` gets no run.
/// - A wave ends only when each of its stores was found current after its run, failed, or is in use by others.
/// - More failures than the budget halt the rollout; runs in progress go on.
public struct Rollout: Sendable {
  /// A point in time, which the caller passes in.
  public typealias Instant = ContinuousClock.Instant

  /// What a reader of the journal hears of.
  public enum Change: Sendable, Hashable {
    case waveOpened
    case waveDone
    case finished
    case halted
    case resumed
    case approved
  }

  /// What a store of the plan is in the rollout.
  enum Member: Sendable, Hashable {
    /// Its turn has not come.
    case waiting
    /// It gets a run, has one, or is probed after it.
    case admitted
    /// Its run could not begin: others use the store, or the disk is full. It is tried again, and no wave waits for it.
    case deferred
    case migrated
    case failed
  }

  /// The order in which stores have their turn: by the wave of their watch, then in an order that mixes folders, and
  /// is the same after a restart.
  private struct Place: Comparable {
    var wave: Int
    var hash: UInt64
    var store: String

    init(_ store: String, wave: Int) {
      self.wave = wave
      self.store = store
      // FNV-1a.
      hash = store.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    static func < (one: Place, other: Place) -> Bool {
      (one.wave, one.hash, one.store) < (other.wave, other.hash, other.store)
    }
  }

  /// The name of the plan.
  public let plan: String
  /// Its last version.
  public let version: Schema.Version
  /// The version of the plugin's file that the rollout began with.
  public let plugin: RolloutRecord.PluginFile?
  let began: Instant
  private var settings: RolloutSettings

  /// The wave that is open or soaking, from 1; 0 while stores are counted.
  public private(set) var wave = 0
  private(set) var soakEnds: Instant?
  private(set) var halt: Manager.Pause?
  private var isFinished = false
  /// Failures that an operator knew of when they resumed the rollout.
  private var forgivenFailures = 0
  private var isApproved = false
  private var approvedStores: Set<String> = []

  private var members: [String: (member: Member, wave: Int)] = [:]
  private var counts: [Member: Int] = [:]
  /// Stores whose turn comes, the next one last if `isSorted`. A store that left is skipped.
  private var line: [Place] = []
  private var isSorted = true
  /// Stores that wait for an approval.
  private var unapproved: [String: Place] = [:]
  /// Stores whose last run failed. One that is tried again counts until it is migrated.
  private var failedStores: Set<String> = []
  private static let failuresInReport = 5

  /// A rollout that has not counted its stores.
  init(
    plan: String, version: Schema.Version, plugin: RolloutRecord.PluginFile?,
    settings: RolloutSettings,
    began: Instant
  ) {
    self.plan = plan
    self.version = version
    self.plugin = plugin
    self.settings = settings
    self.began = began
  }

  // MARK: Stores

  func count(_ member: Member) -> Int { counts[member] ?? 0 }
  /// The stores that the rollout knows.
  var total: Int { members.count }
  /// Those that have had their turn.
  private var admitted: Int { total - count(.waiting) }
  /// The wave in which a store had its turn.
  func wave(of store: String) -> Int? { members[store].flatMap { $0.wave > 0 ? $0.wave : nil } }

  /// Takes in a store that is behind.
  ///
  /// - Returns: whether it may run now, because it has had its turn. Otherwise it waits for `admitNext`.
  mutating func add(_ store: String, wave: Int, needsApproval: Bool) -> Bool {
    let isIn = members[store].map { $0.member != .waiting } ?? false
    if isIn, halt == nil {
      set(store, .admitted)
      return true
    }
    set(store, .waiting)
    isFinished = false
    let place = Place(store, wave: wave)
    if needsApproval, !isApproved, !approvedStores.contains(store) {
      unapproved[store] = place
    } else {
      line.append(place)
      isSorted = false
    }
    return false
  }

  /// Takes in how a store's turn ended.
  ///
  /// - Returns: whether the rollout is halted by that.
  mutating func end(_ store: String, as member: Member, on now: Double) -> Bool {
    guard members[store] != nil else { return false }
    set(store, member)
    guard member == .failed else {
      if member == .migrated { failedStores.remove(store) }
      return false
    }
    failedStores.insert(store)
    return haltIfOverBudget(now)
  }

  /// Takes in that a store was found current.
  ///
  /// - Parameter isMigrated: A run of instard did that.
  mutating func foundCurrent(_ store: String, isMigrated: Bool) {
    if isMigrated {
      _ = end(store, as: .migrated, on: 0)
    } else if members[store]?.member != .migrated {
      leave(store)
    }
  }

  /// Takes in that the run of an earlier daemon has migrated a store.
  mutating func recovered(_ store: String) { set(store, .migrated) }

  /// Takes out a store that is gone, or no longer behind by itself.
  mutating func leave(_ store: String) {
    guard let old = members.removeValue(forKey: store) else { return }
    counts[old.member, default: 0] -= 1
    unapproved[store] = nil
    failedStores.remove(store)
  }

  /// Whether the rollout knows a store.
  func has(_ store: String) -> Bool { members[store] != nil }

  /// Lets the next store have its turn; `nil` where none may.
  mutating func admitNext() -> String? {
    guard halt == nil, soakEnds == nil, wave > 0, admitted < size(of: wave) else { return nil }
    while let next = nextInLine() {
      guard next.wave <= wave else { return nil }
      line.removeLast()
      set(next.store, .admitted)
      return next.store
    }
    return nil
  }

  private mutating func nextInLine() -> Place? {
    if !isSorted {
      line.sort(by: >)
      isSorted = true
    }
    while let last = line.last, members[last.store]?.member != .waiting { line.removeLast() }
    return line.last
  }

  private mutating func set(_ store: String, _ member: Member) {
    if let old = members[store] { counts[old.member, default: 0] -= 1 }
    counts[member, default: 0] += 1
    let hadTurn = members[store]?.wave ?? 0
    members[store] = (member, member == .waiting || hadTurn > 0 ? hadTurn : wave)
  }

  // MARK: Waves

  /// How many waves there are.
  var waves: Int { settings.steps.count }

  /// How many stores have had their turn when a wave ends.
  private func size(of wave: Int) -> Int {
    wave >= waves ? .max : settings.steps[wave - 1].stores(of: total)
  }

  /// Opens or ends a wave, where it is time.
  ///
  /// - Parameter isSettled: Each known store is probed, so `total` is right.
  mutating func advance(at now: Instant, isSettled: Bool) -> Change? {
    guard halt == nil else { return nil }
    if let end = soakEnds {
      guard end <= now else { return nil }
      soakEnds = nil
      return openNextWave()
    }
    guard isSettled else { return nil }
    if wave == 0 { return count(.waiting) > 0 ? openNextWave() : nil }
    guard count(.admitted) == 0, isWaveFull() else { return nil }
    guard wave < waves else {
      guard !isFinished, count(.waiting) == 0 else { return nil }
      isFinished = true
      return .finished
    }
    // The size of a wave that is only a share grows with new stores; those wait for the next one.
    if count(.waiting) == 0 { return finishEarly() }
    soakEnds = now + settings.soak
    return .waveDone
  }

  /// With all stores migrated, the waves that are left have no stores.
  private mutating func finishEarly() -> Change? {
    wave = waves
    isFinished = true
    return .finished
  }

  private mutating func openNextWave() -> Change {
    repeat { wave += 1 } while wave < waves && size(of: wave) <= admitted
    return .waveOpened
  }

  private mutating func isWaveFull() -> Bool {
    if admitted >= size(of: wave) { return true }
    guard unapproved.isEmpty else { return false }
    return nextInLine().map { $0.wave > wave } ?? true
  }

  // MARK: Orders

  /// Takes in the sizes of the waves and the budget of a new configuration.
  mutating func update(_ settings: RolloutSettings) {
    self.settings = settings
    wave = min(wave, waves)
  }

  private mutating func haltIfOverBudget(_ now: Double) -> Bool {
    guard halt == nil, let budget = settings.budget else { return false }
    let allowed = budget.failures(of: total)
    let counted = failedStores.count - forgivenFailures
    guard counted > allowed else { return false }
    let more = forgivenFailures > 0 ? " more" : ""
    halt = Manager.Pause(
      by: Manager.Rollout.daemon, since: now,
      why: "\(counted)\(more) of \(total) stores failed, and the budget is \(budget)")
    return true
  }

  /// Stops, until `resume`.
  mutating func stop(_ order: Manager.Pause) { halt = order }

  /// Goes on. The failures until now count no longer.
  mutating func resume() {
    halt = nil
    forgivenFailures = failedStores.count
  }

  /// Lets stores have their turn that wait for an approval; all of them, also those to come, if none is named.
  mutating func approve(_ stores: [String]) {
    if stores.isEmpty { isApproved = true } else { approvedStores.formUnion(stores) }
    for store in stores.isEmpty ? Array(unapproved.keys) : stores {
      guard let place = unapproved.removeValue(forKey: store) else { continue }
      line.append(place)
      isSorted = false
    }
  }
}

extension Rollout {
  /// Both clocks at one moment.
  public struct Moment: Sendable {
    /// Of the queue.
    public var instant: Instant
    /// In seconds since 1970.
    public var seconds: Double

    /// - Returns: now.
    public static var now: Moment {
      Moment(instant: .now, seconds: Date().timeIntervalSince1970)
    }

    func seconds(of other: Instant) -> Double { seconds + (other - instant).inSeconds }
    func instant(of other: Double) -> Instant { instant + .seconds(other - seconds) }
  }

  /// What outlasts the daemon.
  func record(at now: Moment) -> RolloutRecord {
    RolloutRecord(
      plan: plan, version: version, plugin: plugin, began: now.seconds(of: began), wave: wave,
      soakEnds: soakEnds.map(now.seconds), halt: halt, forgivenFailures: forgivenFailures,
      isApproved: isApproved, approvedStores: approvedStores.sorted())
  }

  /// A rollout that an earlier daemon began.
  init(
    _ record: RolloutRecord, settings: RolloutSettings, migrated: Set<String>, failed: Set<String>,
    at now: Moment
  ) {
    self.init(
      plan: record.plan, version: record.version, plugin: record.plugin, settings: settings,
      began: now.instant(of: record.began))
    wave = min(record.wave, waves)
    soakEnds = record.soakEnds.map(now.instant)
    halt = record.halt
    forgivenFailures = record.forgivenFailures
    isApproved = record.isApproved
    approvedStores = Set(record.approvedStores)
    for store in migrated { set(store, .migrated) }
    for store in failed { set(store, .failed) }
    failedStores = failed
  }

  /// Why a store that is behind has no run; `nil` if its turn has come.
  func reasonToWait(_ store: String) -> String? {
    guard members[store]?.member == .waiting else { return nil }
    if let halt { return "the rollout of \(plan) is halted\(halt.why.map { ": \($0)" } ?? "")" }
    if unapproved[store] != nil { return "waits for an approval: instarctl approve" }
    return wave == 0 ? "waits until all stores are probed" : "waits for a later wave"
  }

  /// As operators see it.
  func status(at now: Instant) -> Manager.Rollout {
    Manager.Rollout(
      plan: plan, version: version, wave: wave, waves: waves, stores: total,
      waiting: count(.waiting), admitted: count(.admitted), deferred: count(.deferred),
      migrated: count(.migrated), failed: count(.failed), unapproved: unapproved.count,
      secondsToNextWave: soakEnds.map { max(0, ($0 - now).inSeconds) }, halt: halt,
      failures: Array(failedStores.sorted().prefix(Self.failuresInReport)))
  }
}
