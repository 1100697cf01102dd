import HashTreeCollections
import InstarSchema
import InstarWire

/// The stores of a rollout: the turn of each, the counts of all, and the queue of those whose turn comes.
///
/// Each change of a store also changes the counts. They are kept because budgets and metrics ask for them often, and a
/// rollout may have 100,000 stores.
struct RolloutTable: Sendable {
  /// What a rollout knows of one store.
  struct Entry {
    var turn: Manager.Turn
    /// The wave in which the store had its turn; 0 before.
    var wave = 0
    /// The store's place in the queue while it is `waiting`.
    var place: Place?
    /// Whether the store's run succeeded, and the probe that proves it has not ended. After a restart, that is the
    /// first probe.
    var awaitsProof = false
    /// The path of the store's watch, once the store was probed.
    var watch: String?
  }

  /// The order in which stores have their turn: by the wave of their watch, then in an order that mixes folders, and
  /// is the same after a restart.
  struct Place: Comparable {
    var wave: Int
    var hash: UInt64
    var store: String
    var needsApproval: Bool

    init(_ store: String, wave: Int, needsApproval: Bool) {
      self.wave = wave
      self.store = store
      self.needsApproval = needsApproval
      hash = store.stableHash
    }

    static func < (one: Place, other: Place) -> Bool {
      (one.wave, one.hash, one.store) < (other.wave, other.hash, other.store)
    }
  }

  /// How many stores of one watch have which turn.
  struct WatchCount {
    var total = 0
    var waiting = 0
    var admitted = 0
    var failed = 0
  }

  private var entries: TreeDictionary<String, Entry> = [:]
  private var counts: [Manager.Turn: Int] = [:]
  private(set) var failed: TreeSet<String> = []
  private(set) var watchCounts: [String: WatchCount] = [:]
  /// The number of stores that wait for an approval.
  private(set) var unapprovedCount = 0
  /// Stores whose turn comes, the next one last if `isSorted`. A store with another `place` by now is skipped.
  private var queue: [Place] = []
  private var isSorted = true

  /// What is known of a store; `nil` for a store that the rollout does not know.
  subscript(store: String) -> Entry? { entries[store] }

  var paths: [String] { Array(entries.keys) }
  var total: Int { entries.count }
  func count(_ turn: Manager.Turn) -> Int { counts[turn] ?? 0 }

  /// Whether a store that satisfies the condition waits for an approval.
  func hasUnapproved(where condition: (Place) -> Bool) -> Bool {
    unapprovedCount > 0
      && entries.values.contains { $0.place.map { $0.needsApproval && condition($0) } == true }
  }

  // MARK: Changes

  /// Gives a store a turn, and adds a store that is not known. A store other than a `waiting` one loses its place in
  /// the queue.
  ///
  /// - Parameter wave: The wave that is open. The store had its first turn in it, unless it is `waiting`.
  mutating func set(_ store: String, _ turn: Manager.Turn, in wave: Int) {
    if turn != .waiting { setPlace(nil, of: store) }
    var entry = entries[store] ?? Entry(turn: turn)
    if entries[store] != nil { adjustCounts(of: store, entry, by: -1) }
    entry.turn = turn
    adjustCounts(of: store, entry, by: 1)
    entry.awaitsProof = false
    if turn != .waiting, entry.wave == 0 { entry.wave = wave }
    entries[store] = entry
  }

  mutating func setAwaitsProof(_ awaitsProof: Bool, of store: String) {
    entries[store]?.awaitsProof = awaitsProof
  }

  mutating func setWave(_ wave: Int, of store: String) { entries[store]?.wave = wave }

  mutating func setWatch(_ path: String?, of store: String) {
    guard var entry = entries[store], entry.watch != path else { return }
    adjustCounts(of: store, entry, by: -1)
    entry.watch = path
    adjustCounts(of: store, entry, by: 1)
    entries[store] = entry
  }

  mutating func remove(_ store: String) {
    setPlace(nil, of: store)
    guard let old = entries.removeValue(forKey: store) else { return }
    adjustCounts(of: store, old, by: -1)
  }

  /// Adds a store that was removed. It was `migrated` or `failed`, so it has no place in the queue.
  mutating func bringBack(_ store: String, _ entry: Entry) {
    remove(store)
    entries[store] = entry
    adjustCounts(of: store, entry, by: 1)
  }

  private mutating func adjustCounts(of store: String, _ entry: Entry, by change: Int) {
    counts[entry.turn, default: 0] += change
    if entry.turn == .failed {
      if change > 0 { failed.insert(store) } else { failed.remove(store) }
    }
    guard let watch = entry.watch else { return }
    var ofWatch = watchCounts[watch] ?? WatchCount()
    ofWatch.total += change
    switch entry.turn {
    case .waiting: ofWatch.waiting += change
    case .admitted: ofWatch.admitted += change
    case .failed: ofWatch.failed += change
    case .deferred, .migrated: break
    }
    watchCounts[watch] = ofWatch
  }

  // MARK: The queue

  /// The next store that needs no approval. It stays in the queue.
  mutating func nextInQueue() -> Place? {
    if !isSorted {
      queue.sort(by: >)
      isSorted = true
    }
    while let last = queue.last, last.needsApproval || entries[last.store]?.place != last {
      queue.removeLast()
    }
    return queue.last
  }

  /// Removes from the queue what `nextInQueue` returned.
  mutating func removeNext() {
    let next = queue.removeLast()
    setPlace(nil, of: next.store)
  }

  /// Gives a known store a place in the queue. An earlier place of the store no longer counts.
  mutating func enqueue(_ place: Place) {
    setPlace(place, of: place.store)
    queue.append(place)
    isSorted = false
  }

  private mutating func setPlace(_ place: Place?, of store: String) {
    if entries[store]?.place?.needsApproval == true { unapprovedCount -= 1 }
    if place?.needsApproval == true { unapprovedCount += 1 }
    entries[store]?.place = place
  }
}
