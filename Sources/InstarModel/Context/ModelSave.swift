import Foundation
import InstarSchema
import InstarStore

/// Writes the changes of a context to one store, in one transaction.
///
/// Order: deletions, which free unique values; keys for the new rows; changed rows, which may exchange unique values
/// with new rows; new rows; data outside a model's own row (join tables, keys of relationships without inverse); the
/// order of links. If the transaction fails, the models get their temporary keys again.
///
/// The transactions of several stores are nested: each begins and writes inside the one before, so that none commits
/// before all are written. The innermost commits first.
struct ModelSave {
  let stores: ModelStores
  let store: ModelStore
  private let inserted: [Change]
  private let changed: [Change]
  private let deleted: [Change]
  /// The author of the context, for the store's history.
  private let author: String?

  struct Change {
    let model: any PersistentModel
    let entity: ModelEntity
    var storage: ModelStorage { model._modelStorage }
  }

  /// Returns a save for each store with changes, in the order in which the stores are written.
  ///
  /// - Throws: `modelNotInSchema` for a model that is not in any store.
  static func saves(of context: ModelContext) throws -> [ModelSave] {
    func changes(_ models: [any PersistentModel]) throws -> [Change] {
      try models.map {
        Change(
          model: $0,
          entity: try context.entity(for: type(of: $0), to: "save"))
      }
    }
    // A class of another version changes `context.stores`, whose entities all changes must have.
    if context.phase != nil { _ = try changes(context.inserted.all) }
    let inserted = try changes(context.inserted.all)
    let changed = try changes(context.changedModelsArray)
    let deleted = try changes(context.deleted.all)
    return context.stores.all.compactMap { store in
      func own(_ changes: [Change]) -> [Change] { changes.filter { $0.entity.store === store } }
      let save = ModelSave(
        stores: context.stores, store: store, inserted: own(inserted), changed: own(changed),
        deleted: own(deleted), author: context.author)
      return save.isEmpty ? nil : save
    }
  }

  private init(
    stores: ModelStores, store: ModelStore, inserted: [Change], changed: [Change],
    deleted: [Change], author: String?
  ) {
    self.author = author
    self.stores = stores
    self.store = store
    self.inserted = store.layout.enforcesForeignKeys ? Self.referredFirst(inserted) : inserted
    self.changed = changed
    self.deleted = deleted
  }

  /// The models of the save for notifications. Read it before the save runs.
  var notice: SaveNotice {
    SaveNotice(
      store: store, inserted: inserted.map(\.model), updated: changed.map(\.model),
      deleted: deleted.map(\.model.persistentModelID))
  }

  private var isEmpty: Bool { inserted.isEmpty && changed.isEmpty && deleted.isEmpty }

  /// Returns new models in an order in which each follows those that it references, as an app inserts them. The app's
  /// triggers may rely on that order.
  private static func referredFirst(_ changes: [Change]) -> [Change] {
    let changesByModel = Dictionary(
      changes.map { (ObjectIdentifier($0.model), $0) }, uniquingKeysWith: { first, _ in first })
    var ordered: [Change] = []
    var seen: Set<ObjectIdentifier> = []
    // Iterative, because a list of models can be long enough to overflow the stack.
    for change in changes {
      var waiting = [(change, false)]
      while let (change, isReady) = waiting.popLast() {
        if isReady {
          ordered.append(change)
          continue
        }
        guard seen.insert(ObjectIdentifier(change.model)).inserted else { continue }
        waiting.append((change, true))
        for case .model(let other) in change.storage.slots {
          if let other = changesByModel[ObjectIdentifier(other)] { waiting.append((other, false)) }
        }
      }
    }
    return ordered
  }

  // MARK: Running

  /// Writes all saves, or none if one fails before the first commit.
  ///
  /// - Parameter onCommit: Called after each commit with the rows that were updated or deleted; `nil` if they are too
  ///   many to list.
  static func run(
    _ saves: ArraySlice<ModelSave>, onCommit: (ModelSave, SaveLog.Rows?) -> Void
  ) throws {
    guard let first = saves.first else { return }
    let rows = try first.run(with: saves.dropFirst(), onCommit: onCommit)
    onCommit(first, rows)
  }

  /// Checks the changes before anything is written.
  ///
  /// - Throws: `modelValidationFailure`; `unreadableStore` if the store's configuration does not allow saving.
  func validate() throws {
    guard store.allowsSave else {
      let names = Set((inserted + changed + deleted).map(\.entity.layout.name)).sorted()
      throw InstarError(
        .unreadableStore, "cannot save \(names.joined(separator: ", "))",
        cause: "the configuration of \(store.place) does not allow saving", state: "unchanged",
        next: "call rollback(), or open the store with allowsSave: true")
    }
    for change in inserted + changed { try validate(change) }
  }

  /// - Parameter others: The saves to write and commit before this one commits.
  private func run(
    with others: ArraySlice<ModelSave>, onCommit: (ModelSave, SaveLog.Rows?) -> Void
  ) throws -> SaveLog.Rows? {
    var replaced: [Bool] = []
    var files: Set<String> = []
    let before = inserted.map { ($0.storage.key, $0.entity.keySlot.map($0.storage.value(inSlot:))) }
    do {
      try store.connection.perform { session in
        try session.transaction {
          try store.requireSameStructure(session)
          // Rows may reference each other in a circle, so SQLite checks foreign keys only at the commit.
          if store.layout.enforcesForeignKeys { try session.run("PRAGMA defer_foreign_keys = ON") }
          files = try filesReleased(by: deleted, changed, session)
          var history = try SaveHistory(of: store, author: author, session)
          for change in deleted {
            try history?.noteDeletion(of: change.storage.key, change.entity)
            try delete(change, session)
          }
          replaced = try assignKeys(session)
          for change in changed {
            try update(
              change,
              slots: change.entity.columnSlots.filter { change.storage.changedSlots.contains($0) },
              session)
          }
          for (change, isReplacement) in zip(inserted, replaced) {
            if isReplacement {
              try update(
                change, slots: change.entity.columnSlots, takesRow: true, session)
            } else {
              try insert(change, session)
            }
          }
          for change in inserted + changed { try writeMembers(change, session) }
          // Links without a position of their own get the order of their rows.
          let ordered = (inserted + changed).filter(\.entity.hasOrderedLinks)
            .sorted { $0.storage.key < $1.storage.key }
          for change in ordered { try placeAmongMembers(change, session) }
          for change in ordered { try writeOrder(change, session) }
          for change in ordered { try placeAmongLinks(change, session) }
          if history != nil { try noteChanges(replaced: replaced, in: &history) }
          if !others.isEmpty {
            // Finds violations that would fail the commit before other stores commit.
            try session.requireResolvedForeignKeys()
            try Self.run(others, onCommit: onCommit)
          }
        }
      }
    } catch {
      for (change, (key, value)) in zip(inserted, before) {
        change.storage.key = key
        if let slot = change.entity.keySlot, let value { change.storage.slots[slot] = value }
      }
      throw error
    }
    store.connection.externalValues.remove(files)
    return rows(replaced: replaced)
  }

  private func noteChanges(replaced: [Bool], in history: inout SaveHistory?) throws {
    for change in changed {
      try history?.noteUpdate(
        of: change.storage.key, change.entity, slots: change.storage.changedSlots.contains)
    }
    for (change, isReplacement) in zip(inserted, replaced) {
      if isReplacement {
        try history?.noteUpdate(of: change.storage.key, change.entity) { _ in true }
      } else {
        try history?.noteInsertion(of: change.storage.key, change.entity)
      }
    }
    try history?.finish()
  }

  private func rows(replaced: [Bool]) -> SaveLog.Rows? {
    guard changed.count + deleted.count <= SaveLog.rowLimit,
      store.connection.saves.hasOthers
    else { return nil }
    var rows = SaveLog.Rows()
    for change in changed {
      rows.changed[change.entity.layout.table, default: []].insert(change.storage.key)
    }
    for (change, isReplacement) in zip(inserted, replaced) where isReplacement {
      rows.changed[change.entity.layout.table, default: []].insert(change.storage.key)
    }
    for change in deleted {
      rows.deleted[change.entity.layout.table, default: []].insert(change.storage.key)
    }
    return rows
  }

  private func validate(_ change: Change) throws {
    if !stores.replacements.isEmpty { try change.requireColumns(store.schema) }
    for (slot, place) in change.entity.slots.enumerated() {
      guard case .toOne(_, let destination, let isOptional, _) = place else { continue }
      let property = change.entity.descriptor.properties[slot].name
      let what = "cannot save \(change.entity.layout.name) \(change.storage.key)"
      switch change.storage.slots[slot] {
      case .null where !isOptional:
        throw SwiftDataError.validation(
          what, "required relationship '\(property)' has no value",
          next: "set '\(property)', or make it optional")
      case .model(let model):
        guard !isInstance(model, of: destination) else { continue }
        // An inherited relationship accepts a model of any class that has it.
        let name = model._modelStorage.descriptor.name
        throw SwiftDataError.validation(
          what,
          "relationship '\(property)' references a model of \(name); it accepts \(destination) only",
          next:
            "remove the model from the relationship of \(name) that is the inverse of '\(property)'"
        )
      default: continue
      }
    }
    guard change.storage.state == .loaded else { return }
    let keySlots = change.entity.keySlot.map { [$0] } ?? change.entity.keySlots
    if let slot = keySlots.first(where: { change.storage.changedSlots.contains($0) }) {
      throw SwiftDataError.validation(
        "cannot save \(change.entity.layout.name) \(change.storage.key)",
        "'\(change.entity.descriptor.properties[slot].name)' was changed, which is part of the row's primary key",
        next: "insert a new model with the new key, and delete this one")
    }
  }

  private func isInstance(_ model: any PersistentModel, of name: String) -> Bool {
    let descriptor = model._modelStorage.descriptor
    return descriptor.name == name
      || stores.entity(named: name).map { descriptor.inherits(from: $0.descriptor) } ?? true
  }

  // MARK: Rows

  private func delete(_ change: Change, _ session: SQLSession) throws {
    try run(change.entity.deleteStatement, [change.storage.key], session)
    for case .toMany(let relationship) in change.entity.slots {
      switch relationship.location {
      case .joinTable(let name, let own, let other):
        try run(
          "DELETE FROM \(name) AS j WHERE \(own.condition("j", equals: "?1"))"
            + (relationship.keepsBothDirections
              ? " OR \(other.condition("j", equals: "?1"))" : ""),
          [change.storage.key], session)
      case .foreignKey(let reference) where relationship.relationship.inverseName == nil:
        try run(
          "UPDATE \(relationship.destinationTable) AS t0 SET \(cleared(reference)) "
            + "WHERE \(reference.condition("t0", equals: "?1"))", [change.storage.key], session)
      case .foreignKey, .column: break
      }
    }
  }

  private func insert(_ change: Change, _ session: SQLSession) throws {
    let statement = try session.statement(change.entity.insertStatement)
    var index: Int32 = 1
    if change.entity.insertsKey {
      statement.bind(change.storage.key, at: 1)
      index += 1
    }
    for slot in change.entity.columnSlots {
      try bind(slot, of: change, to: statement, at: &index, session)
    }
    try statement.run()
  }

  /// - Parameter takesRow: Whether the row is that of another model, which may be of another class.
  private func update(
    _ change: Change, slots: [Int], takesRow: Bool = false, _ session: SQLSession
  ) throws {
    guard slots.contains(where: { !change.entity.columnsBySlot[$0].isEmpty }) else { return }
    let layout = change.entity.layout
    // Z_OPT counts the updates of a row (Core Data layout, section 2.3).
    var assignments = layout.lockColumn.map { ["\($0) = IFNULL(\($0), 0) + 1"] } ?? []
    if takesRow, change.entity.sharesTable, let column = layout.entityColumn {
      assignments.append("\(column) = \(layout.number)")
    }
    for slot in slots {
      for column in change.entity.columnsBySlot[slot] {
        assignments.append("\(column.name) = \(column.parameter)")
      }
    }
    let count = slots.reduce(1) { $0 + change.entity.columnsBySlot[$1].count }
    let statement = try session.statement(
      "UPDATE \(layout.table) AS t0 SET \(assignments.joined(separator: ", ")) "
        + "WHERE \(layout.key.condition("t0", equals: "?\(count)"))")
    var index: Int32 = 1
    for slot in slots {
      try bind(slot, of: change, to: statement, at: &index, session)
    }
    statement.bind(change.storage.key, at: Int32(count))
    try statement.run()
    guard session.changedRowCount > 0 else {
      throw InstarError(
        .storeChanged, "cannot save \(change.entity.layout.name) \(change.storage.key)",
        cause: "another context or process deleted the row", state: "unchanged",
        next: "call rollback(), or delete the model here too")
    }
  }

  /// Binds the values of a slot's columns, and moves the index after them.
  private func bind(
    _ slot: Int, of change: Change, to statement: SQLStatement, at index: inout Int32,
    _ session: SQLSession
  ) throws {
    let value = try collection(slot, of: change, session) ?? change.storage.slots[slot]
    if case .toOne(let reference, let destination, _, _) = change.entity.slots[slot],
      let columns = reference.referredColumns
    {
      for value in try referredValues(value, columns, of: destination, session) {
        bind(value, to: statement, at: index)
        index += 1
      }
      return
    }
    for column in change.entity.columnsBySlot[slot].indices {
      if case .composite(let leaves) = value, leaves.indices.contains(column) {
        bind(leaves[column], to: statement, at: index)
      } else if change.entity.slots[slot].hasNumberColumn,
        column == change.entity.columnsBySlot[slot].count - 1
      {
        bindEntityNumber(value, to: statement, at: index)
      } else {
        bind(value, to: statement, at: index)
      }
      index += 1
    }
  }

  /// Returns a collection in the form that the column has; `nil` if that is the form in memory.
  private func collection(
    _ slot: Int, of change: Change, _ session: SQLSession
  ) throws -> Slot? {
    guard change.entity.collectionSlots.contains(slot),
      let type = change.entity.descriptor.properties[slot].collectionType,
      case .blob(let data) = change.storage.slots[slot], !ArchivedCollection.isArchive(data),
      let column = change.entity.columnsBySlot[slot].first,
      try store.keepsArchives(in: column, of: change.entity.layout.table, session)
    else { return nil }
    do {
      let value = try JSONDecoder().decode(type, from: data)
      return try ArchivedCollection.archive(of: value).map { .blob($0) }
    } catch {
      // The error itself may quote the value.
      throw SwiftDataError.validation(
        "cannot save \(change.entity.layout.name) \(change.storage.key)",
        "'\(change.entity.descriptor.properties[slot].name)' cannot be archived, as the store keeps it: "
          + "its \(type) threw a \(Swift.type(of: error))")
    }
  }

  /// The number of the concrete entity beside the key of a row (section 4.2).
  private func bindEntityNumber(_ slot: Slot, to statement: SQLStatement, at index: Int32) {
    if case .model(let model) = slot, !model._modelStorage.isDeleted,
      model._modelStorage.key.isRowKey,
      let entity = stores.entity(named: model._modelStorage.descriptor.name)
    {
      statement.bind(Int64(entity.layout.number), at: index)
    } else {
      statement.bindNull(at: index)
    }
  }

  /// Returns the values of a foreign key that references columns other than the key, in their stored form.
  private func referredValues(
    _ value: Slot, _ columns: [String], of destination: String, _ session: SQLSession
  ) throws -> [Slot] {
    let none = columns.map { _ in Slot.null }
    guard let entity = stores.entity(named: destination) else { return none }
    let key: Int64
    switch value {
    case .key(let known): key = known
    case .model(let model):
      let storage = model._modelStorage
      if storage.isDeleted { return none }
      if storage.state == .inserted {
        // Its row may not be written yet.
        return try columns.map { try storedValue(of: storage, entity, $0, session) }
      }
      key = storage.key
    default: return none
    }
    let list = columns.map { "t0.\($0)" }.joined(separator: ", ")
    let statement = try session.statement(
      "SELECT \(list) FROM \(entity.layout.table) AS t0 "
        + "WHERE \(entity.layout.key.condition("t0", equals: "?1"))")
    statement.bind(key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return none }
    return columns.indices.map { statement.slot(at: Int32($0)) }
  }

  private func storedValue(
    of storage: ModelStorage, _ entity: ModelEntity, _ column: String, _ session: SQLSession
  ) throws -> Slot {
    guard let place = entity.place(ofColumn: column) else { return .null }
    let value = storage.slots[place.slot]
    if case .toOne(let reference, let destination, _, _) = entity.slots[place.slot] {
      if let columns = reference.referredColumns {
        return try referredValues(value, columns, of: destination, session)[place.index]
      }
      if case .model(let model) = value { return .key(model._modelStorage.key) }
      return value
    }
    guard let encoding = entity.columnsBySlot[place.slot][place.index].encoding else {
      return value
    }
    return value.attributeValue.map { Slot(encoding.written($0)) } ?? value
  }

  private func bind(_ slot: Slot, to statement: SQLStatement, at index: Int32) {
    guard case .model(let model) = slot else { return statement.bind(slot, at: index) }
    let storage = model._modelStorage
    statement.bind(
      storage.isDeleted || !storage.key.isRowKey ? .null : .key(storage.key), at: index)
  }

  // MARK: Keys

  /// Assigns keys to the inserted models. New keys follow the highest one ever assigned. Keys of tables without rowid
  /// consist of values, which may be keys of other new models, so they come last.
  ///
  /// - Returns: For each inserted model, whether it updates an existing row.
  private func assignKeys(_ session: SQLSession) throws -> [Bool] {
    var replaced = Array(repeating: false, count: inserted.count)
    var highest: [String: Int64] = [:]
    // Models of this save with the same unique value share a row. The last one determines its values.
    var keysOfValues: [UniqueValue: Int64] = [:]
    for change in changed {
      for value in uniqueValues(of: change) { keysOfValues[value] = change.storage.key }
    }
    let rowIDs = inserted.indices.filter { inserted[$0].entity.layout.key.isRowID }
    let others = inserted.indices.filter { !inserted[$0].entity.layout.key.isRowID }
    for position in rowIDs + others {
      let change = inserted[position]
      if let slot = change.entity.keySlot, case .integer(0) = change.storage.slots[slot] {
        change.storage.slots[slot] = .null
      }
      let values = uniqueValues(of: change)
      defer { for value in values { keysOfValues[value] = change.storage.key } }
      if let key = try values.lazy.compactMap({ keysOfValues[$0] }).first
        ?? keyOfReplacedRow(change, session)
      {
        setKey(key, of: change)
        replaced[position] = true
        continue
      }
      setKey(try newKey(of: change, &highest, session), of: change)
    }
    for (root, key) in highest {
      guard let recording = stores.entity(named: root)?.layout.recordKeyStatement else { continue }
      try run(recording, [key], session)
    }
    return replaced
  }

  private func setKey(_ key: Int64, of change: Change) {
    change.storage.key = key
    if let slot = change.entity.keySlot { change.storage.slots[slot] = .integer(key) }
  }

  private func newKey(
    of change: Change, _ highest: inout [String: Int64], _ session: SQLSession
  ) throws -> Int64 {
    let layout = change.entity.layout
    let parameters = change.entity.keySlots.flatMap { change.entity.columnsBySlot[$0] }
      .map(\.parameter)
    if let sql = layout.key.statement(ofKeyOf: parameters) {
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
    let last = try highest[layout.root] ?? session.integer(layout.highestKeyStatement) ?? 0
    if let slot = change.entity.keySlot, case .integer(let key) = change.storage.slots[slot] {
      highest[layout.root] = max(last, key)
      return key
    }
    highest[layout.root] = last + 1
    return last + 1
  }

  private struct UniqueValue: Hashable {
    let table: String
    let columns: [String]
    let values: [AttributeValue]
  }

  /// Returns the unique values of a model. SQLite does not compare a group with a missing value.
  private func uniqueValues(of change: Change) -> [UniqueValue] {
    change.entity.uniqueSlots.compactMap { group in
      let values = group.compactMap { change.storage.slots[$0].attributeValue }
      guard values.count == group.count else { return nil }
      return UniqueValue(
        table: change.entity.layout.table,
        columns: change.entity.columns(ofGroup: group).map(\.name),
        values: values)
    }
  }

  /// Returns the key of the row that already has a unique value of an inserted model.
  private func keyOfReplacedRow(_ change: Change, _ session: SQLSession) throws -> Int64? {
    for group in change.entity.uniqueSlots {
      let values = group.map { change.storage.slots[$0] }
      if values.contains(where: { if case .null = $0 { true } else { false } }) { continue }
      let conditions = change.entity.columns(ofGroup: group).map {
        "t0.\($0.name) = \($0.parameter)"
      }
      let layout = change.entity.layout
      let statement = try session.statement(
        "SELECT \(layout.key.reading.sql("t0")) FROM \(layout.table) AS t0 "
          + "WHERE \(conditions.joined(separator: " AND "))")
      var index: Int32 = 1
      for slot in group { try bind(slot, of: change, to: statement, at: &index, session) }
      guard try statement.step() else { continue }
      let key = statement.integer(at: 0)
      statement.reset()
      // A changed model frees its old value in this save. If it keeps the value, `keysOfValues` has it.
      let isFreed = changed.contains {
        $0.storage.key == key && $0.entity.layout.table == change.entity.layout.table
      }
      if !isFreed { return key }
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
          .filter(\.isRowKey))
      let added = current.subtracting(saved).sorted()
      let removed = saved.subtracting(current).sorted()
      switch relationship.location {
      case .column: continue
      case .foreignKey(let reference):
        // With an inverse, the foreign key is a slot of the member and was written with its row.
        guard relationship.relationship.inverseName == nil,
          let target = stores.entity(named: relationship.relationship.destination)?.layout
        else { continue }
        let update = "UPDATE \(relationship.destinationTable) AS t0 SET"
        let isMember = target.key.condition("t0", equals: "?2")
        for member in added {
          try run(
            "\(update) \(reference.assignment(of: "?1")) WHERE \(isMember)",
            [storage.key, member], session)
        }
        for member in removed {
          // The member may have another owner by now, which was written before.
          try run(
            "\(update) \(cleared(reference)) WHERE \(isMember) "
              + "AND \(reference.condition("t0", equals: "?1"))", [storage.key, member], session)
        }
      case .joinTable(let name, let own, let other):
        // A relationship that is its own inverse has a row for each direction.
        let directions =
          relationship.keepsBothDirections
          ? [(own, other), (other, own)] : [(own, other)]
        // Both sides may insert the same link.
        for member in added {
          for (own, other) in directions {
            let columns = (own.columns + other.columns).joined(separator: ", ")
            let values = (own.values(of: "?1") + other.values(of: "?2")).joined(separator: ", ")
            try run(
              "INSERT OR IGNORE INTO \(name) (\(columns)) VALUES (\(values))",
              [storage.key, member], session)
          }
        }
        for member in removed {
          for (own, other) in directions {
            try run(
              "DELETE FROM \(name) AS j WHERE \(own.condition("j", equals: "?1")) "
                + "AND \(other.condition("j", equals: "?2"))", [storage.key, member], session)
          }
        }
      }
    }
  }

  private func cleared(_ reference: ForeignKey) -> String {
    reference.columns.map { "\($0) = NULL" }.joined(separator: ", ")
  }

  func run(_ sql: String, _ keys: [Int64], _ session: SQLSession) throws {
    let statement = try session.statement(sql)
    for (offset, key) in keys.enumerated() { statement.bind(key, at: Int32(offset + 1)) }
    try statement.run()
  }
}
