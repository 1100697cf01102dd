import Foundation
import InstarSchema
import InstarStore

// The keys of new rows, and the rows that new models take.

extension ModelSave {
  /// Assigns keys to the inserted models. New keys follow the highest one ever assigned, and the highest one that a
  /// model of this save sets itself. Keys of tables without rowid consist of values, which may be keys of other new
  /// models, so they come last.
  ///
  /// - Parameter deleted: Rows that are deleted later.
  /// - Returns: The rows of the inserted models, in the order in which they are written.
  /// - Throws: `RowsToMerge` if several rows have the unique values of a model.
  func assignKeys(besides deleted: [Change], _ session: SQLSession) throws -> [NewRow] {
    if inserted.isEmpty { return [] }
    var isTaken = Array(repeating: false, count: inserted.count)
    var isShared = false
    var highest = try highestKeys(session)
    // Models of this save with the same unique value share a row. The last one determines its values.
    var rows = TakenRows(changed: changed, deleted: deleted, session)
    var waiting = noteChanged(in: &rows)
    var merged: [RowsToMerge.Row] = []
    // The positions of the new models by their rows; `nil` until one has unique values of several rows.
    var sharing: [Row: [Int]]?
    for position in keyOrder() {
      let change = inserted[position]
      clearUnsetKey(of: change)
      if !waiting.isEmpty, !change.entity.uniqueReferences.isEmpty {
        for change in waiting { rows.note(uniqueValues(of: change), of: change) }
        waiting.removeAll()
      }
      let values = uniqueValues(of: change)
      let found = try rows.find(values, of: change, self)
      isShared = isShared || found.isShared
      let key = try rowToTake(of: found, change, &highest, session)
      setKey(try key ?? newKey(of: change, &highest, session), of: change)
      isTaken[position] = key != nil
      for other in found.new where other != key {
        let row = Row(change.entity.layout.table, other)
        rows.forget(row)
        moveModels(of: row, to: change, &sharing, &isTaken)
      }
      sharing?[Row(change), default: []].append(position)
      for other in found.stored where other != key {
        rows.noteMerged(Row(change.entity.layout.table, other))
        merged.append(RowsToMerge.Row(of: change, key: other))
      }
      // The row keeps its key, which may not be the one that the model had.
      let hasNewKey = key != nil && change.entity.keySlot != nil
      rows.note(hasNewKey ? uniqueValues(of: change) : values, of: change, isTaken: key != nil)
    }
    if !merged.isEmpty { throw RowsToMerge(rows: merged) }
    try record(highest, session)
    let new = zip(inserted, isTaken).map { NewRow(change: $0, isTaken: $1) }
    return isShared ? lastInsertedLast(new) : new
  }

  /// Notes the unique values of the changed models.
  ///
  /// - Returns: The models that were left out, because their unique values contain new models, which have no keys yet.
  private func noteChanged(in rows: inout TakenRows) -> [Change] {
    let waiting = changed.filter(hasUniqueReferenceToNewModel)
    for change in changed where waiting.isEmpty || !hasUniqueReferenceToNewModel(change) {
      rows.note(uniqueValues(of: change), of: change)
    }
    return waiting
  }

  private func hasUniqueReferenceToNewModel(_ change: Change) -> Bool {
    change.entity.uniqueReferences.contains { slot in
      if case .model(let other) = change.storage.slots[slot] {
        other._modelStorage.state == .inserted
      } else {
        false
      }
    }
  }

  /// Returns which of the rows with its unique values a new model takes; `nil` if it gets a row of its own. The key of
  /// a table without rowid consists of the model's values, so there it takes the row with this key only.
  private func rowToTake(
    of found: TakenRows.Found, _ change: Change, _ highest: inout [Int: Int64],
    _ session: SQLSession
  ) throws -> Int64? {
    let rows = found.stored + found.new
    guard !rows.isEmpty, !change.entity.keySlots.isEmpty else { return rows.first }
    let own = try newKey(of: change, &highest, session)
    return rows.contains(own) ? own : nil
  }

  /// Moves the new models of a row to the row of a model that has unique values of both.
  ///
  /// - Parameter sharing: The positions of the new models by their rows; `nil` before the first such model.
  private func moveModels(
    of row: Row, to change: Change, _ sharing: inout [Row: [Int]]?, _ isTaken: inout [Bool]
  ) {
    sharing = sharing ?? positionsByRow(without: change)
    let positions = sharing?.removeValue(forKey: row) ?? []
    for position in positions {
      setKey(change.storage.key, of: inserted[position])
      isTaken[position] = true
    }
    sharing?[Row(change), default: []] += positions
  }

  /// The positions of the inserted models that have keys, except one model.
  private func positionsByRow(without change: Change) -> [Row: [Int]] {
    let positions = inserted.indices.filter {
      inserted[$0].storage.hasRow && inserted[$0].storage !== change.storage
    }
    return Dictionary(grouping: positions) { Row(inserted[$0]) }
  }

  /// The positions of the inserted models in the order in which they get keys: each after those that its unique values
  /// contain, because their keys decide whether it shares a row.
  private func keyOrder() -> [Int] {
    let rowIDs = inserted.indices.filter { inserted[$0].entity.layout.key.isRowID }
    let others =
      rowIDs.count == inserted.count
      ? [] : inserted.indices.filter { !inserted[$0].entity.layout.key.isRowID }
    guard inserted.contains(where: { !$0.entity.uniqueReferences.isEmpty }) else {
      return rowIDs + others
    }
    // Two models that unique values of others contain may become one row, so they come first.
    let all =
      rowIDs.filter { inserted[$0].entity.uniqueReferences.isEmpty }
      + rowIDs.filter { !inserted[$0].entity.uniqueReferences.isEmpty } + others
    let positions = inserted.indices.keyed { ObjectIdentifier(inserted[$0].model) }
    var ordered: [Int] = []
    var seen: Set<Int> = []
    // Iterative, because a list of models can be long enough to overflow the stack.
    for position in all {
      var waiting = [(position, false)]
      while let (position, isReady) = waiting.popLast() {
        if isReady {
          ordered.append(position)
          continue
        }
        guard seen.insert(position).inserted else { continue }
        waiting.append((position, true))
        let change = inserted[position]
        for slot in change.entity.uniqueReferences {
          guard case .model(let other) = change.storage.slots[slot],
            let position = positions[ObjectIdentifier(other)]
          else { continue }
          waiting.append((position, false))
        }
      }
    }
    return ordered
  }

  /// Returns the highest keys of the tables for which models of this save set a key themselves, with these keys; by the
  /// position of the root entity.
  private func highestKeys(_ session: SQLSession) throws -> [Int: Int64] {
    var highest: [Int: Int64] = [:]
    for change in inserted {
      guard let key = change.ownKey else { continue }
      let root = stores.rootPositions[change.entity.position]
      let last = try highest[root] ?? session.integer(change.entity.layout.highestKeyStatement)
      highest[root] = max(last ?? 0, key)
    }
    return highest
  }

  /// Records the highest keys in the tables that keep them for deleted rows; by the position of the root entity.
  private func record(_ highest: [Int: Int64], _ session: SQLSession) throws {
    for (root, key) in highest {
      guard let recording = stores.entities[root].layout.recordKeyStatement else { continue }
      try run(recording, [key], session)
    }
  }

  /// Clears a key of 0, which stands for the next one.
  private func clearUnsetKey(of change: Change) {
    guard let slot = change.entity.keySlot, case .integer(0) = change.storage.slots[slot] else {
      return
    }
    change.storage.slots[slot] = .null
  }

  private func setKey(_ key: Int64, of change: Change) {
    change.storage.setRow(key)
    if let slot = change.entity.keySlot { change.storage.slots[slot] = .integer(key) }
  }

  private func newKey(
    of change: Change, _ highest: inout [Int: Int64], _ session: SQLSession
  ) throws -> Int64 {
    let layout = change.entity.layout
    if let sql = change.entity.keyStatement {
      let statement = try session.statement(sql)
      var index: Int32 = 1
      for slot in change.entity.keySlots {
        try bind(slot, of: change, to: statement, at: &index, session)
      }
      defer { statement.reset() }
      guard try statement.step(), statement.storageClass(at: 0) == .integer else {
        throw SwiftDataError.validation(
          "cannot save a new \(layout.name)", "its primary key has no value",
          next: "set all properties of the primary key")
      }
      return statement.integer(at: 0)
    }
    let root = stores.rootPositions[change.entity.position]
    if let key = change.ownKey { return key }
    let last = try highest[root] ?? session.integer(layout.highestKeyStatement) ?? 0
    guard last < .max else { throw noKeyLeft(for: layout) }
    highest[root] = last + 1
    return last + 1
  }

  private func noKeyLeft(for layout: EntityLayout) -> SwiftDataError {
    SwiftDataError.validation(
      "cannot save a new \(layout.name)",
      "new keys follow the highest one in \(layout.table), and that is \(Int64.max), the highest possible key",
      next: "give the row with this key a lower one in the store, or set the key of the new model")
  }
}
