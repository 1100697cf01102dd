import Foundation
import HashTreeCollections
import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// One plan's way through the stores that are behind, wave after wave: who is next, and when to stop.
///
/// It does no I/O, and reads the clock only to date a halt. `StoreQueue` reports the result of each store to it, and
/// asks it which store is next.
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

  /// The stores of one watch.
  private struct WatchCount {
    var total = 0
    var waiting = 0
    var admitted = 0
    var failed = 0
  }

  /// The name of the plan.
  let plan: String
  /// Its last version.
  let version: Schema.Version
  let key: Key
  /// The version of the plugin's file that the rollout began with.
  let plugin: RolloutRecord.PluginFile?
  /// In seconds since 1970; `nil` until it is first recorded.
  private var began: Double?
  /// When each wave opened, in seconds since 1970, as far as that is recorded.
  private var openings: [Double] = []
  private var budget: RolloutSettings.Share?
  private var watchBudgets: [String: RolloutSettings.Share] = [:]
  private var soak = Duration.zero
  /// How many stores have had their turn when each wave ends.
  private var steps: [RolloutSettings.Share] = []

  /// The wave that is open or soaking, from 1; 0 while stores are counted for the first time.
  private(set) var wave = 0
  private var hasCounted = false
  private var soakEnds: Instant?
  /// The soak is over, and only events open the next wave.
  private var isSoaked = false
  private(set) var halt: Manager.Pause?
  private var isFinished = false
  /// Stores that had failed when an operator resumed the rollout. They do not count.
  private var forgiven: Set<String> = []
  private var isApproved = false
  private var approvedStores: Set<String> = []

  private var members: TreeDictionary<String, Status> = [:]
  private var counts: [Member: Int] = [:]
  /// Kept, because budgets and metrics ask for it often, and `members` may have 100,000 stores.
  private var failedStores: TreeSet<String> = []
  private var watchCounts: [String: WatchCount] = [:]
  /// Stores that wait for an approval.
  private var unapprovedCount = 0
  /// Stores whose turn comes, the next one last if `isSorted`. A store with another `place` by now is skipped.
  private var queue: [Place] = []
  private var isSorted = true
  /// Stores that have had their turn and want a run that a halt prevents.
  private var waitingForHaltToEnd: Set<String> = []
  private static let failuresInReport = 5

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

  func count(_ member: Member) -> Int { counts[member] ?? 0 }
  /// The number of stores that the rollout knows.
  var total: Int { members.count }
  /// The stores that fill the waves until now.
  private var inTurn: Int { count(.admitted) + ended }
  private var ended: Int { count(.migrated) + count(.failed) }
  /// The wave in which a store had its turn.
  func wave(of store: String) -> Int? { members[store].flatMap { $0.wave > 0 ? $0.wave : nil } }
  /// Whether the rollout knows a store.
  func has(_ store: String) -> Bool { members[store] != nil }
  /// The turn of a store; `nil` for a store that the rollout does not know.
  func turn(of store: String) -> Member? { members[store]?.member }

  /// Adds a store that is behind.
  ///
  /// - Returns: Whether the store may run now, because it has had its turn. Otherwise it waits for `admitNext`.
  mutating func add(_ store: String, wave: Int, needsApproval: Bool) -> Bool {
    let isUnapproved = needsApproval && !isApproved && !approvedStores.contains(store)
    switch members[store]?.member {
    case .waiting?, .deferred?, nil: break
    // The policy is new, and nobody has approved another run.
    case _ where isUnapproved: break
    // A halt came before its first run: its turn comes again, first of all.
    case .admitted? where halt != nil: break
    case .admitted?, .migrated?, .failed?:
      if halt != nil { waitingForHaltToEnd.insert(store) }
      return halt == nil
    }
    let place = Place(store, wave: wave, needsApproval: isUnapproved)
    guard members[store]?.place != place else { return false }
    set(store, .waiting)
    enqueue(place)
    return false
  }

  /// Records how a run ended.
  ///
  /// - Parameter isQuarantined: Nothing is tried again before a change.
  /// - Returns: Whether this result halts the rollout.
  mutating func note(_ report: RunReport, isQuarantined: Bool) -> Bool {
    guard has(report.store) else { return false }
    let member = Self.member(
      after: report.result, report.error?.code, isQuarantined: isQuarantined)
    switch member {
    case .migrated?: members[report.store]?.awaitsProof = true
    case .failed?:
      set(report.store, .failed)
      return haltIfOverBudget(at: report.startedAt + Double(report.durationMicroseconds) / 1e6)
    case let member?: set(report.store, member)
    case nil: leave(report.store)
    }
    return false
  }

  /// The result of a store after its run; `nil` for a hold, which removes the store from the rollout.
  private static func member(
    after result: RunReport.Result, _ code: InstarError.Code?, isQuarantined: Bool
  ) -> Member? {
    switch result {
    case .migrated: return .migrated
    case .restored: return nil
    case .busy: return isQuarantined ? .failed : .deferred
    case .current, .rehearsed: return .admitted
    case .failed, .refused:
      if code == .heldStore { return nil }
      let isHopeless = RetryPolicy(for: code) == .never
      return (isQuarantined || isHopeless) && !isAboutPlugin(code) ? .failed : .deferred
    }
  }

  /// Whether an error is not about the store: its plugin is being replaced, or is no longer trusted.
  private static func isAboutPlugin(_ code: InstarError.Code?) -> Bool {
    [.notAPlugin, .wrongABI, .untrustedPlugin, .unsignedPlugin, .missingPlugin].contains(code)
  }

  /// Records that a store cannot be probed, so that no wave waits for it.
  ///
  /// A quarantined store that has had no turn leaves the rollout: its owner must not halt the rollout, nor take the
  /// place of the canary.
  ///
  /// - Parameter code: Why the store cannot be probed.
  /// - Returns: Whether that halted the rollout.
  mutating func putOff(_ store: String, isQuarantined: Bool, by code: InstarError.Code?) -> Bool {
    guard let status = members[store] else { return false }
    switch status.member {
    // Of a run of an earlier daemon: the ledger has the run, and not what the probe after it found.
    case .migrated where status.awaitsProof && code == .keeperDied: break
    case .migrated, .failed: return false
    case .deferred where !isQuarantined: return false
    case .waiting, .admitted, .deferred: break
    }
    let hadTurn = status.wave > 0
    guard isQuarantined else {
      set(store, .deferred)
      members[store]?.awaitsProof = status.awaitsProof
      if !hadTurn { members[store]?.wave = 0 }
      return false
    }
    if status.awaitsProof, code != .keeperDied {
      // The ledger has its run, and the plan has not failed because the file is locked or has other rights. But a
      // migrated store may be what ends its keeper.
      set(store, .migrated)
      return false
    }
    guard hadTurn else {
      leave(store)
      return false
    }
    set(store, .failed)
    return haltIfOverBudget(at: Date().timeIntervalSince1970)
  }

  /// Records that a store was found current.
  mutating func foundCurrent(_ store: String) {
    guard let status = members[store] else { return }
    if status.awaitsProof {
      set(store, .migrated)
    } else if status.member != .migrated {
      leave(store)
    }
  }

  /// Records that a run of an earlier daemon migrated a store.
  mutating func recovered(_ store: String) { set(store, .migrated) }

  /// Removes a store that is gone, or no longer behind without a run.
  mutating func leave(_ store: String) {
    setPlace(nil, of: store)
    guard let old = members.removeValue(forKey: store) else { return }
    adjustCounts(of: store, old, by: -1)
  }

  /// Records the path of the watch that a store belongs to.
  mutating func noteWatch(_ path: String?, of store: String) {
    guard let status = members[store], status.watch != path else { return }
    adjustCounts(of: store, status, by: -1)
    members[store]?.watch = path
    if let status = members[store] { adjustCounts(of: store, status, by: 1) }
  }

  var hasWatchBudgets: Bool { !watchBudgets.isEmpty }

  private mutating func adjustCounts(of store: String, _ status: Status, by change: Int) {
    counts[status.member, default: 0] += change
    if status.member == .failed {
      if change > 0 { failedStores.insert(store) } else { failedStores.remove(store) }
    }
    guard let watch = status.watch else { return }
    var ofWatch = watchCounts[watch] ?? WatchCount()
    ofWatch.total += change
    switch status.member {
    case .waiting: ofWatch.waiting += change
    case .admitted: ofWatch.admitted += change
    case .failed: ofWatch.failed += change
    case .deferred, .migrated: break
    }
    watchCounts[watch] = ofWatch
  }

  /// The first watch, by path, whose closed window keeps the runs of all stores from starting whose turn has come, or
  /// comes next; `nil` where one of these runs may start.
  func closedWatch(_ isClosed: (String) -> Bool) -> String? {
    let isAdmitting = count(.admitted) > 0
    let stores = watchCounts.compactMapValues { count in
      let stores = isAdmitting ? count.admitted : count.waiting
      return stores > 0 ? stores : nil
    }
    let closed = stores.filter { isClosed($0.key) }
    // A store whose watch is not known has no window.
    guard closed.values.reduce(0, +) == count(isAdmitting ? .admitted : .waiting) else {
      return nil
    }
    return closed.keys.min()
  }

  /// A store that had its turn, and the wave of that.
  struct EndedMember: Sendable {
    fileprivate var status: Status
    fileprivate var isForgiven: Bool
  }

  /// The result of a store that was migrated or failed; `nil` for others.
  func ended(_ store: String) -> EndedMember? {
    guard let status = members[store], [.migrated, .failed].contains(status.member) else {
      return nil
    }
    return EndedMember(status: status, isForgiven: forgiven.contains(store))
  }

  /// Adds a store again that left the rollout after its turn.
  mutating func bringBack(_ store: String, _ ended: EndedMember) {
    leave(store)
    members[store] = ended.status
    adjustCounts(of: store, ended.status, by: 1)
    if ended.isForgiven { forgiven.insert(store) }
  }

  /// Forgets what operators and owners ordered for a store that is gone: its owner may make and approve others without
  /// end.
  mutating func forgetOrders(for store: String) {
    guard !has(store) else { return }
    approvedStores.remove(store)
    forgiven.remove(store)
  }

  /// Lets the next store have its turn; `nil` where none may.
  ///
  /// - Parameter isPending: Whether a store is ready. One that is not comes back by `add`.
  mutating func admitNext(_ isPending: (String) -> Bool) -> String? {
    guard halt == nil else { return nil }
    while let store = waitingForHaltToEnd.popFirst() {
      // It may have left and come back since.
      if has(store), members[store]?.member != .waiting, isPending(store) { return store }
    }
    guard soakEnds == nil, hasCounted, wave > 0 else { return nil }
    while inTurn < size(of: wave), let next = nextInQueue(), isInWave(next) {
      queue.removeLast()
      setPlace(nil, of: next.store)
      guard isPending(next.store) else { continue }
      set(next.store, .admitted)
      return next.store
    }
    return nil
  }

  /// The next store that needs no approval.
  private mutating func nextInQueue() -> Place? {
    if !isSorted {
      queue.sort(by: >)
      isSorted = true
    }
    while let last = queue.last, last.needsApproval || members[last.store]?.place != last {
      queue.removeLast()
    }
    return queue.last
  }

  private mutating func enqueue(_ place: Place) {
    setPlace(place, of: place.store)
    queue.append(place)
    isSorted = false
  }

  private mutating func setPlace(_ place: Place?, of store: String) {
    if members[store]?.place?.needsApproval == true { unapprovedCount -= 1 }
    if place?.needsApproval == true { unapprovedCount += 1 }
    members[store]?.place = place
  }

  private mutating func set(_ store: String, _ member: Member) {
    if member != .waiting { setPlace(nil, of: store) }
    var status = members[store] ?? Status(member: member)
    if members[store] != nil { adjustCounts(of: store, status, by: -1) }
    status.member = member
    adjustCounts(of: store, status, by: 1)
    status.awaitsProof = false
    if member != .waiting, status.wave == 0 { status.wave = wave }
    members[store] = status
    if member == .waiting, wave < steps.count { isFinished = false }
  }

  // MARK: Waves

  /// How many stores have had their turn when a wave ends.
  private func size(of wave: Int) -> Int {
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
      for store in members.keys.filter({ !isKnown($0) }) { leave(store) }
      if haltIfOverBudget(at: Date().timeIntervalSince1970) { return .halted }
    }
    isSoaked = soakEnds.map { $0 <= now } ?? false
    // All stores have left: no plugin knows them for now, or their file system is gone. It waits where it is.
    guard total > 0 else { return nil }
    if let end = soakEnds {
      // Stores that have just been found count too, once they are probed: a share of a few would open the last wave.
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

  /// How long waves still wait for the next one, all together; `nil` where an operator decides when.
  func soakLeft(at now: Instant) -> Duration? {
    guard halt == nil, unapprovedCount == 0 else { return nil }
    guard count(.waiting) > 0 else { return .zero }
    let first = max(wave, 1) + (soakEnds == nil ? 0 : 1)
    // A wave without stores of its own is skipped, and after the one with the last store there is none.
    let ends = Set((first..<max(first, steps.count)).map(size)).filter { $0 < total }
    return (soakEnds.map { max(.zero, $0 - now) } ?? .zero) + soak * ends.count
  }

  /// Skips waves that have no store of their own.
  private mutating func openNextWave() -> Change {
    repeat { wave += 1 } while wave < steps.count && size(of: wave) <= inTurn
    return .waveOpened
  }

  private mutating func isWaveFull() -> Bool {
    if inTurn >= size(of: wave) { return true }
    let next = nextInQueue()
    if let next, isInWave(next) { return false }
    let waitsForApproval =
      unapprovedCount > 0
      && members.values.contains { $0.place.map { $0.needsApproval && isInWave($0) } == true }
    if waitsForApproval { return false }
    return count(.deferred) == 0 || next != nil && ended > 0
  }

  /// Whether the wave that is open, or an earlier one, is for a store. A watch's wave beyond the last one is the last.
  private func isInWave(_ place: Place) -> Bool { min(place.wave, steps.count) <= wave }

  // MARK: Settings and orders

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
    // The wave that as many stores fill as have had their turn: the sizes of the earlier configuration say nothing.
    let sizes = steps.dropLast().map { $0.stores(of: total) }
    wave =
      soakEnds == nil
      ? sizes.count { $0 < inTurn } + 1 : sizes.count { $0 <= inTurn }
  }

  /// How many stores may fail before the rollout is halted; `nil` without a budget of its own.
  var allowedFailures: Int? { budget?.failures(of: total) }

  /// The stores that failed and count.
  var countedFailures: Int { failedStores.count { !forgiven.contains($0) } }

  /// Halts if more stores failed than a budget allows: that of the rollout, or of a watch.
  private mutating func haltIfOverBudget(at now: Double) -> Bool {
    guard halt == nil, hasCounted, count(.failed) > 0 else { return false }
    if let budget, let excess = excess(count(.failed), of: total, budget, in: nil) {
      haltForFailures(excess, at: now)
      return true
    }
    for (watch, budget) in watchBudgets.sorted(by: { $0.key < $1.key }) {
      guard let count = watchCounts[watch],
        let excess = excess(count.failed, of: count.total, budget, in: watch)
      else { continue }
      haltForFailures(excess, at: now)
      return true
    }
    return false
  }

  /// Why failures are more than a budget allows; `nil` where they are not. Stores that an operator has forgiven do not
  /// count.
  private func excess(
    _ failed: Int, of total: Int, _ budget: RolloutSettings.Share, in watch: String?
  ) -> String? {
    let allowed = budget.failures(of: total)
    guard failed > allowed else { return nil }
    let counted = failedStores.count { store in
      !forgiven.contains(store) && (watch == nil || members[store]?.watch == watch)
    }
    guard counted > allowed else { return nil }
    let more = forgiven.isEmpty ? "" : " more"
    let place = watch.map { " of '\($0)'" } ?? ""
    return "\(counted)\(more) of \(total) stores\(place) failed, and the budget is \(budget)"
  }

  private mutating func haltForFailures(_ why: String, at now: Double) {
    halt = Manager.Pause(by: Manager.Rollout.daemon, since: now, why: why)
  }

  /// Halts for an operator, until `resume`.
  mutating func halt(by order: Manager.Pause) { halt = order }

  /// Resumes the rollout. The stores that failed until now no longer count, even if they fail again.
  mutating func resume() {
    halt = nil
    forgiven = Set(failedStores)
  }

  /// Approves stores that wait for an approval. Without names, all of them, also stores that are found later.
  mutating func approve(_ stores: [String]) {
    if stores.isEmpty { isApproved = true } else { approvedStores.formUnion(stores) }
    for store in stores.isEmpty ? Array(members.keys) : stores {
      guard var place = members[store]?.place, place.needsApproval else { continue }
      place.needsApproval = false
      enqueue(place)
    }
  }

  /// Whether `approve` changes nothing.
  func hasApproved(_ stores: [String]) -> Bool {
    if stores.isEmpty { return isApproved && unapprovedCount == 0 }
    return stores.allSatisfy {
      (isApproved || approvedStores.contains($0)) && members[$0]?.place?.needsApproval != true
    }
  }

  /// Whether the rollout holds no state that must outlive a new configuration or plugin.
  var isForgettable: Bool {
    halt == nil && !isApproved && approvedStores.isEmpty && count(.waiting) == 0
  }
}

extension Rollout {
  /// Both clocks at one moment.
  struct Moment: Sendable {
    /// Of `StoreQueue`.
    var instant: Instant
    /// In seconds since 1970.
    var seconds: Double

    static var now: Moment {
      Moment(instant: .now, seconds: Date().timeIntervalSince1970)
    }

    func seconds(of other: Instant) -> Double { seconds + (other - instant).inSeconds }
    /// Limits a time that is many years away, as a damaged file may have it, so that the conversion does not overflow.
    func instant(of other: Double) -> Instant {
      instant + .seconds(max(-1e9, min(1e9, other - seconds)))
    }
  }

  /// The record that outlives the daemon.
  mutating func record(at now: Moment) -> RolloutRecord {
    let began = began ?? now.seconds
    self.began = began
    // It is recorded when a wave opens, before the first run of the wave. A wave that is skipped has no run.
    while openings.count < wave { openings.append(now.seconds) }
    return RolloutRecord(
      plan: plan, version: version, plugin: plugin, began: began, wave: wave, openings: openings,
      soakEnds: soakEnds.map(now.seconds), isFinished: isFinished, halt: halt,
      forgiven: forgiven.sorted(), isApproved: isApproved, approvedStores: approvedStores.sorted())
  }

  /// A rollout that an earlier daemon began.
  ///
  /// - Parameters:
  ///   - runs: The results of its runs, from the ledger.
  ///   - isQuarantined: Whether nothing is tried again on a store before a change.
  init(
    _ record: RolloutRecord, settings: RolloutSettings, runs: [RolloutRun], at now: Moment,
    isQuarantined: (String) -> Bool
  ) {
    self.init(
      plan: record.plan, version: record.version, plugin: record.plugin, settings: settings)
    began = record.began
    wave = max(0, min(record.wave, steps.count))
    if wave < steps.count { soakEnds = record.soakEnds.map(now.instant) }
    halt = record.halt
    isFinished = record.isFinished
    forgiven = Set(record.forgiven)
    isApproved = record.isApproved
    approvedStores = Set(record.approvedStores)
    openings = Array(record.openings.prefix(wave))
    for run in runs {
      let isQuarantined = isQuarantined(run.store)
      guard let member = Self.member(after: run.result, run.code, isQuarantined: isQuarantined)
      else { continue }
      set(run.store, member)
      // A rollout finishes only after the first probes of its migrated stores.
      members[run.store]?.awaitsProof = member == .migrated && !isFinished
      let past = openings.lastIndex { $0 <= run.firstStartedAt }
      if let past, wave > 0 { members[run.store]?.wave = past + 1 }
    }
  }

  /// Records that a store is quarantined, for a failure that the ledger does not have: of a rehearsal, or of a store
  /// that was busy at each attempt.
  mutating func restoreQuarantine(of store: String, _ code: InstarError.Code?) {
    guard let member = Self.member(after: .failed, code, isQuarantined: true) else { return }
    set(store, member)
  }

  /// Why no store has a run; `nil` if the rollout is not halted.
  ///
  /// - Parameter isAdmin: Whether the reader may resume it.
  func reasonOfHalt(isAdmin: Bool) -> String? {
    halt.map { halt in
      let why = halt.why.map { ": \($0)" } ?? ""
      let advice = CommandText.ofAdministrator(
        "instarctl resume --plan \(plan)", isAdmin: isAdmin)
      return "the rollout of \(plan) is halted\(why); \(advice)"
    }
  }

  /// Why a store that is behind has no run; `nil` if its turn has come.
  ///
  /// - Parameter isAdmin: Whether the reader may resume the rollout and approve all stores. Others approve their own.
  func reasonToWait(_ store: String, isAdmin: Bool) -> String? {
    if let reason = reasonOfHalt(isAdmin: isAdmin) { return reason }
    guard let place = members[store]?.place else { return nil }
    if place.needsApproval {
      return "waits for an approval; run: instarctl approve \(isAdmin ? "--plan \(plan)" : "STORE")"
    }
    return wave == 0 ? "waits until all stores are probed" : "waits for a later wave"
  }

  /// As operators see it.
  func status(at now: Instant) -> Manager.Rollout {
    Manager.Rollout(
      plan: plan, version: version, wave: wave, waves: steps.count, stores: total,
      waiting: count(.waiting), admitted: count(.admitted), deferred: count(.deferred),
      migrated: count(.migrated), failed: count(.failed),
      unapproved: unapprovedCount,
      secondsToNextWave: halt == nil ? soakEnds.map { max(0, ($0 - now).inSeconds) } : nil,
      halt: halt,
      failures: Array(failedStores.sorted().prefix(Self.failuresInReport)))
  }
}
