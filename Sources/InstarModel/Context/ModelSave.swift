import InstarSchema
import InstarStore

/// One `save()`: the rows of a context's changes, written in one transaction.
///
/// Order: deletions first, so that a deleted row's unique value is free; then keys for the new rows; then the changed rows,
/// which may give a unique value free, or take one, that a new row has; then the new rows; then
/// what is stored outside a model's own row (join tables, keys of relationships without inverse); then the high-water
/// marks of the keys. When the transaction fails, the models get their temporary keys back.
struct ModelSave {
  private let context: ModelContext
  private let store: ModelStore
  private let inserted: [Change]
  private let changed: [Change]
  private let deleted: [Change]

  private struct Change {
    let model: any PersistentModel
    let entity: ModelEntity
    var storage: ModelStorage { model._modelStorage }
  }

  init(
    context: ModelContext, inserted: [any PersistentModel], changed: [any PersistentModel],
    deleted: [any PersistentModel]
  ) throws {
    self.context = context
    store = context.store
    func changes(_ models: [any PersistentModel]) throws -> [Change] {
      try models.map {
        Change(
          model: $0,
          entity: try context.store.entity(for: type(of: $0), action: "saved", phase: context.phase)
        )
      }
    }
    self.inserted = try changes(inserted)
    self.changed = try changes(changed)
    self.deleted = try changes(deleted)
  }

  func run() throws {
    for change in inserted + changed { try validate(change) }
    let temporaryKeys = inserted.map(\.storage.key)
    do {
      try store.connection.perform { session in
        try session.transaction {
          for change in deleted { try delete(change, session) }
          var replaced: [Bool] = []
          try assignKeys(session, replaced: &replaced)
          for change in changed {
            try update(
              change,
              slots: change.entity.columnSlots.filter { change.storage.changedSlots.contains($0) },
              session)
          }
          for (change, isReplacement) in zip(inserted, replaced) {
            if isReplacement {
              try update(change, slots: change.entity.columnSlots, session)
            } else {
              try insert(change, session)
            }
          }
          for change in inserted + changed { try writeMembers(change, session) }
        }
      }
    } catch {
      for (change, key) in zip(inserted, temporaryKeys) { change.storage.key = key }
      throw error
    }
  }

  private func validate(_ change: Change) throws {
    for (slot, place) in change.entity.slots.enumerated() {
      guard case .toOne(_, _, let isOptional) = place, !isOptional,
        case .null = change.storage.slots[slot]
      else { continue }
      let property = change.entity.descriptor.properties[slot].name
      throw SwiftDataError.validation(
        "cannot save \(change.entity.layout.name) \(change.storage.key)",
        "required relationship '\(property)' has no value",
        next: "set '\(property)', or make it optional")
    }
  }

  // MARK: Rows

  private func delete(_ change: Change, _ session: SQLSession) throws {
    let statement = try session.statement(change.entity.deleteStatement)
    statement.bind(change.storage.key, at: 1)
    try statement.run()
    for case .toMany(let relationship) in change.entity.slots {
      switch relationship.place {
      case .joinTable(let name, let own, _):
        let statement = try session.statement("DELETE FROM \(name) WHERE \(own) = ?")
        statement.bind(change.storage.key, at: 1)
        try statement.run()
      case .foreignKey(let column) where relationship.relationship.inverseName == nil:
        let statement = try session.statement(
          "UPDATE \(relationship.destinationTable) SET \(column) = NULL WHERE \(column) = ?")
        statement.bind(change.storage.key, at: 1)
        try statement.run()
      case .foreignKey, .column: break
      }
    }
  }

  private func insert(_ change: Change, _ session: SQLSession) throws {
    let statement = try session.statement(change.entity.insertStatement)
    statement.bind(change.storage.key, at: 1)
    var index: Int32 = 2
    for slot in change.entity.columnSlots {
      bind(slot, of: change, to: statement, at: &index)
    }
    try statement.run()
  }

  private func update(_ change: Change, slots: [Int], _ session: SQLSession) throws {
    guard !slots.isEmpty else { return }
    var assignments = ""
    for slot in slots {
      for column in change.entity.columnsBySlot[slot] { assignments += ", \(column) = ?" }
    }
    // Z_OPT counts the updates of a row (section 2.3).
    let statement = try session.statement(
      "UPDATE \(change.entity.layout.table) SET Z_OPT = IFNULL(Z_OPT, 0) + 1\(assignments) WHERE Z_PK = ?"
    )
    var index: Int32 = 1
    for slot in slots {
      bind(slot, of: change, to: statement, at: &index)
    }
    statement.bind(change.storage.key, at: index)
    try statement.run()
  }

  /// Binds the values of a slot's columns, and goes on to the index behind them.
  private func bind(
    _ slot: Int, of change: Change, to statement: SQLStatement, at index: inout Int32
  ) {
    let value = change.storage.slots[slot]
    for column in change.entity.columnsBySlot[slot].indices {
      if case .composite(let leaves) = value, leaves.indices.contains(column) {
        bind(leaves[column], to: statement, at: index)
      } else {
        bind(value, to: statement, at: index)
      }
      index += 1
    }
  }

  private func bind(_ slot: Slot, to statement: SQLStatement, at index: Int32) {
    switch slot {
    case .null, .unloaded, .models, .composite: statement.bindNull(at: index)
    case .integer(let integer): statement.bind(integer, at: index)
    case .real(let real): statement.bind(real, at: index)
    case .text(let text): statement.bind(text, at: index)
    case .blob(let data): statement.bind(data, at: index)
    case .key(let key): statement.bind(key, at: index)
    case .model(let model):
      let storage = model._modelStorage
      if storage.isDeleted || storage.key <= 0 {
        statement.bindNull(at: index)
      } else {
        statement.bind(storage.key, at: index)
      }
    }
  }

  // MARK: Keys (section 2.1)

  /// New keys follow the highest one ever handed out, which is kept in the root entity's row of Z_PRIMARYKEY. Some stores
  /// have a mark below their highest key, so that one counts too.
  private func assignKeys(_ session: SQLSession, replaced: inout [Bool]) throws {
    var highest: [String: Int64] = [:]
    // Models of this save that have one unique value are one row too: the later one takes the earlier one's place.
    var keysOfValues: [UniqueValue: Int64] = [:]
    for change in changed {
      for value in uniqueValues(of: change) { keysOfValues[value] = change.storage.key }
    }
    for change in inserted {
      let values = uniqueValues(of: change)
      defer { for value in values { keysOfValues[value] = change.storage.key } }
      if let key = try values.lazy.compactMap({ keysOfValues[$0] }).first
        ?? keyOfReplacedRow(change, session)
      {
        change.storage.key = key
        replaced.append(true)
        continue
      }
      let root = change.entity.layout.root
      let last = try highest[root] ?? highestKey(root, change.entity.layout.table, session)
      change.storage.key = last + 1
      highest[root] = last + 1
      replaced.append(false)
    }
    for (root, key) in highest {
      guard let number = store.layout.entity(named: root)?.number else { continue }
      let statement = try session.statement("UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?")
      statement.bind(key, at: 1)
      statement.bind(Int64(number), at: 2)
      try statement.run()
    }
  }

  private func highestKey(_ root: String, _ table: String, _ session: SQLSession) throws -> Int64 {
    let number = store.layout.entity(named: root)?.number ?? 0
    let mark = try session.integer("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(number)") ?? 0
    let key = try session.integer("SELECT MAX(Z_PK) FROM \(table)") ?? 0
    return max(mark, key)
  }

  private struct UniqueValue: Hashable {
    let table: String
    let slots: [Int]
    let values: [AttributeValue]
  }

  /// What of an inserted model may stand in one row only. A group with a value that is missing is none.
  private func uniqueValues(of change: Change) -> [UniqueValue] {
    change.entity.uniqueSlots.compactMap { group in
      let values = group.compactMap { change.storage.slots[$0].attributeValue }
      guard values.count == group.count else { return nil }
      return UniqueValue(table: change.entity.layout.table, slots: group, values: values)
    }
  }

  /// The row that has one of an inserted model's unique values already: the model takes its place.
  private func keyOfReplacedRow(_ change: Change, _ session: SQLSession) throws -> Int64? {
    for group in change.entity.uniqueSlots {
      let values = group.map { change.storage.slots[$0] }
      if values.contains(where: { if case .null = $0 { true } else { false } }) { continue }
      let conditions = group.map { slot in
        // What can be unique has one column: a schema in which it has not is refused.
        change.entity.columnsBySlot[slot].map { "\($0) = ?" }.joined(separator: " AND ")
      }
      let statement = try session.statement(
        "SELECT Z_PK FROM \(change.entity.layout.table) WHERE \(conditions.joined(separator: " AND "))"
      )
      for (offset, value) in values.enumerated() {
        bind(value, to: statement, at: Int32(offset + 1))
      }
      guard try statement.step() else { continue }
      let key = statement.integer(at: 0)
      statement.reset()
      // A changed model gives the value free with this save; one that keeps it is among `keysOfValues`.
      let isGivenUp = changed.contains {
        $0.storage.key == key && $0.entity.layout.table == change.entity.layout.table
      }
      if !isGivenUp { return key }
    }
    return nil
  }

  // MARK: Relationships stored outside the row

  private func writeMembers(_ change: Change, _ session: SQLSession) throws {
    let storage = change.storage
    for (slot, place) in change.entity.slots.enumerated() {
      guard case .toMany(let relationship) = place, case .models(let models) = storage.slots[slot]
      else { continue }
      let saved = storage.savedMembers[slot] ?? []
      let current = Set(
        models.filter { !$0._modelStorage.isDeleted }.map { $0._modelStorage.key }
          .filter { $0 > 0 })
      let added = current.subtracting(saved).sorted()
      let removed = saved.subtracting(current).sorted()
      switch relationship.place {
      case .column: continue
      case .foreignKey(let column):
        // With an inverse the foreign key is a slot of the member, and is written with its row.
        guard relationship.relationship.inverseName == nil else { continue }
        let update = "UPDATE \(relationship.destinationTable) SET \(column)"
        for member in added {
          try run("\(update) = ? WHERE Z_PK = ?", [storage.key, member], session)
        }
        for member in removed {
          // It may have another owner by now, which was written before.
          try run(
            "\(update) = NULL WHERE Z_PK = ? AND \(column) = ?", [member, storage.key], session)
        }
      case .joinTable(let name, let own, let other):
        // Both sides may write the same link.
        for member in added {
          try run(
            "INSERT OR IGNORE INTO \(name) (\(own), \(other)) VALUES (?, ?)",
            [storage.key, member],
            session)
        }
        for member in removed {
          try run(
            "DELETE FROM \(name) WHERE \(own) = ? AND \(other) = ?", [storage.key, member], session)
        }
      }
    }
  }

  private func run(_ sql: String, _ keys: [Int64], _ session: SQLSession) throws {
    let statement = try session.statement(sql)
    for (offset, key) in keys.enumerated() { statement.bind(key, at: Int32(offset + 1)) }
    try statement.run()
  }
}
