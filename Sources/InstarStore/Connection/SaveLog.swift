import Synchronization

/// What was saved through one connection lately: how the contexts of a store learn of each other's saves.
///
/// Invariants: saves are numbered without gaps; the newest are kept, up to `rowLimit` rows in all. Who has not looked for so
/// long that a save he did not see is gone is told that anything may have changed. Nothing is kept while nobody else
/// listens.
package final class SaveLog: Sendable {
  /// The rows of one or several saves, by table. New rows are not among them: nobody has them in memory.
  package struct Rows: Sendable {
    package var changed: [String: Set<Int64>] = [:]
    package var deleted: [String: Set<Int64>] = [:]

    package init() {}

    var count: Int {
      (Array(changed.values) + Array(deleted.values)).reduce(0) { $0 + $1.count }
    }

    fileprivate mutating func add(_ other: Rows) {
      changed.merge(other.changed) { $0.union($1) }
      deleted.merge(other.deleted) { $0.union($1) }
    }
  }

  /// What others saved since somebody looked last.
  package enum News: Sendable {
    case nothing
    case rows(Rows)
    case anything
  }

  /// More rows than these are not listed.
  package static let rowLimit = 4096

  private struct Save {
    var number: Int
    var author: ObjectIdentifier?
    /// `nil` where anything may have changed.
    var rows: Rows?
  }

  private struct State {
    var saves: [Save] = []
    var rowCount = 0
    var listeners = 0
  }

  private let state = Mutex(State())
  private let lastNumber = Atomic<Int>(0)

  /// The number of the newest save.
  package var newest: Int { lastNumber.load(ordering: .acquiring) }

  /// - Returns: The number that the listener has seen.
  package func addListener() -> Int {
    state.withLock { $0.listeners += 1 }
    return newest
  }

  package func removeListener() {
    state.withLock { state in
      state.listeners -= 1
      if state.listeners < 2 {
        state.saves.removeAll()
        state.rowCount = 0
      }
    }
  }

  /// Whether a listener's save is of interest to anybody else.
  package var hasOthers: Bool { state.withLock { $0.listeners > 1 } }

  /// Notes a save that is in the store.
  ///
  /// - Parameters:
  ///   - rows: `nil` where they are too many to be listed, or are not known.
  ///   - author: The listener who saved; `nil` where it was none.
  package func note(_ rows: Rows?, by author: ObjectIdentifier?) {
    state.withLock { state in
      let number = newest + 1
      state.saves.append(Save(number: number, author: author, rows: rows))
      state.rowCount += rows?.count ?? 0
      var gone = 0
      while state.rowCount > Self.rowLimit || state.saves.count - gone > Self.rowLimit,
        gone < state.saves.count
      {
        state.rowCount -= state.saves[gone].rows?.count ?? 0
        gone += 1
      }
      state.saves.removeFirst(gone)
      lastNumber.store(number, ordering: .releasing)
    }
  }

  /// What others than `listener` saved after the save of number `seen`, which becomes the newest one's.
  package func news(since seen: inout Int, for listener: ObjectIdentifier) -> News {
    guard newest != seen else { return .nothing }
    return state.withLock { state in
      let last = newest
      defer { seen = last }
      let unseen = state.saves.drop { $0.number <= seen }
      guard unseen.count == last - seen else { return .anything }
      var rows = Rows()
      var isNothing = true
      for save in unseen where save.author != listener {
        guard let saved = save.rows else { return .anything }
        rows.add(saved)
        isNothing = false
      }
      return isNothing ? .nothing : .rows(rows)
    }
  }
}
