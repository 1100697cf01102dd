import Synchronization

/// The latest saves through one connection, so that the contexts of a store see each other's saves.
///
/// Invariants: saves are numbered without gaps, and the newest are kept, up to `rowLimit` rows in all. A listener that
/// missed a removed save learns that anything may have changed. Nothing is kept while there is only one listener.
package final class SaveLog: Sendable {
  /// The rows of one or several saves, by table. New rows are not listed, because no other context has them in memory.
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

  /// The saves of others since a listener's last check.
  package enum News: Sendable {
    case nothing
    case rows(Rows)
    case anything
  }

  /// The most rows that are listed.
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

  /// - Returns: The number of the newest save, which the listener has seen.
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

  /// Whether anybody else listens.
  package var hasOthers: Bool { state.withLock { $0.listeners > 1 } }

  /// Records a committed save.
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

  /// Returns what other listeners saved after save `seen`, and sets `seen` to the newest save.
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
