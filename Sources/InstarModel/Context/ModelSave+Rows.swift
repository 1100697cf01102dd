import Foundation
import InstarSchema
import InstarStore

// The statements that delete, insert and update rows.

extension ModelSave {
  /// Returns the tables whose deleted rows changed references may leave: those that they reference, and all that the
  /// rows of these reference in turn. SQLite deletes the rows that reference a deleted one by a foreign key with that
  /// action at once, also where it checks the keys at the commit.
  func tablesLeft() -> (referenced: Set<String>, reached: Set<String>) {
    var left: (referenced: Set<String>, reached: Set<String>) = ([], [])
    guard store.layout.enforcesForeignKeys, !deleted.isEmpty else { return left }
    let destinations = Set(
      changed.flatMap { change in
        changedReferences(change).compactMap { table(of: $0) }
      })
    if destinations.isEmpty { return left }
    let emptied = Set(deleted.map(\.entity.layout.table))
    let references = referencedTables()
    for table in destinations {
      let reached = Self.tables(reachedFrom: table, references)
      if reached.isDisjoint(with: emptied) { continue }
      left.referenced.insert(table)
      left.reached.formUnion(reached)
    }
    return left
  }

  private func changedReferences(_ change: Change) -> [ModelEntity.Reference] {
    change.entity.references.filter { change.storage.changedSlots.contains($0.slot) }
  }

  private func table(of reference: ModelEntity.Reference) -> String? {
    stores.entity(named: reference.destination)?.layout.table
  }

  /// The tables that the rows of each table of the store reference.
  private func referencedTables() -> [String: Set<String>] {
    var tables: [String: Set<String>] = [:]
    for entity in stores.entities where entity.store === store {
      tables[entity.layout.table, default: []].formUnion(
        entity.references.compactMap { table(of: $0) })
    }
    return tables
  }

  /// Returns a table and those that its rows reference, directly or over others.
  private static func tables(
    reachedFrom table: String, _ references: [String: Set<String>]
  ) -> Set<String> {
    var reached: Set<String> = [table]
    var waiting = [table]
    while let table = waiting.popLast() {
      for next in references[table] ?? [] where reached.insert(next).inserted {
        waiting.append(next)
      }
    }
    return reached
  }

  /// The slots of the changed references to some tables, and the changed slots that are unique together with them.
  func slotsOfReferences(to tables: Set<String>, _ change: Change) -> SlotSet {
    let references = changedReferences(change).filter { reference in
      table(of: reference).map(tables.contains) ?? false
    }
    let slots = Set(references.map(\.slot))
    let groups = change.entity.uniqueGroups.map(\.slots).filter { !slots.isDisjoint(with: $0) }
    let written = slots.union(groups.joined())
    return SlotSet(written.filter { change.storage.changedSlots.contains($0) }.sorted())
  }

  func delete(
    _ changes: [Change], _ session: SQLSession, _ history: inout SaveHistory?
  ) throws {
    for change in changes {
      try beforeWrite?()
      try history?.noteDeletion(of: change.storage.key, change.entity)
      try delete(change, session)
    }
  }

  private func delete(_ change: Change, _ session: SQLSession) throws {
    try run(change.entity.deleteStatement, [change.storage.key], session)
    for case .toMany(let relationship) in change.entity.slots where relationship.isSavedFromHere {
      try endLinks(of: change.storage.key, relationship, session)
    }
  }

  /// Ends all links of a row in a to-many relationship.
  func endLinks(
    of key: Int64, _ relationship: EntityLayout.RelationshipStorage, _ session: SQLSession
  ) throws {
    switch relationship.location {
    case .joinTable(let name, let own, let other):
      try run(
        "DELETE FROM \(name) AS j WHERE \(own.condition("j", equals: "?1"))"
          + (relationship.keepsBothDirections
            ? " OR \(other.condition("j", equals: "?1"))" : ""),
        [key], session)
    case .foreignKey(let reference):
      try run(
        "UPDATE \(relationship.destinationTable) AS t0 SET \(cleared(reference)) "
          + "WHERE \(reference.condition("t0", equals: "?1"))", [key], session)
    case .column: break
    }
  }

  func insert(_ change: Change, _ statements: SaveStatements) throws {
    let statement = try statements.insertion(change.entity)
    var index: Int32 = 1
    if change.entity.insertsKey {
      statement.bind(change.storage.key, at: 1)
      index += 1
    }
    for slot in change.entity.columnSlots {
      try bind(slot, of: change, to: statement, at: &index, statements.session)
    }
    try statement.run()
  }

  /// Writes the columns of changed slots of a row. If they have none, and links of the row change, the row must exist:
  /// else the links would reference a missing one.
  func update(
    _ change: Change, _ slots: SlotSet, _ statements: SaveStatements
  ) throws {
    if let update = try statements.update(change.entity, slots) {
      return try run(update, change, statements.session)
    }
    guard change.entity.toManySlots.contains(where: slots.contains) else { return }
    let found = try integers(
      change.entity.existenceStatement, [change.storage.key], statements.session)
    if found.isEmpty { throw lostRow(of: change) }
  }

  /// Writes all columns of the row of another model, which may be of another class.
  func takeRow(_ change: Change, _ statements: SaveStatements) throws {
    if let update = try statements.takingRow(change.entity) {
      try run(update, change, statements.session)
    }
  }

  private func run(
    _ update: SaveStatements.Update, _ change: Change, _ session: SQLSession
  ) throws {
    var index: Int32 = 1
    for slot in update.slots {
      try bind(slot, of: change, to: update.statement, at: &index, session)
    }
    update.statement.bind(change.storage.key, at: index)
    try update.statement.run()
    if session.changedRowCount == 0 { throw lostRow(of: change) }
  }

  func lostRow(of change: Change) -> InstarError {
    InstarError(
      .storeChanged, "cannot save \(change.storage.title)",
      cause: "another context or process deleted the row", state: "unchanged",
      next: "call rollback(), or delete the model here too")
  }

  /// Binds the values of a slot's columns, and moves the index after them.
  func bind(
    _ slot: Int, of change: Change, to statement: SQLStatement, at index: inout Int32,
    _ session: SQLSession
  ) throws {
    if change.entity.boundDirectly[slot] {
      bind(change.storage.slots[slot], to: statement, at: index)
      index += 1
      return
    }
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
        "cannot save \(change.storage.title)",
        "'\(change.entity.descriptor.properties[slot].name)' cannot be archived, as the store keeps it: "
          + "its \(type) threw a \(Swift.type(of: error))")
    }
  }

  /// The number of the concrete entity beside the key of a row (section 4.2).
  private func bindEntityNumber(_ slot: Slot, to statement: SQLStatement, at index: Int32) {
    if case .model(let model) = slot, model._modelStorage.referenceKey != nil,
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
      if case .model(let model) = value {
        return model._modelStorage.referenceKey.map { .key($0) } ?? .null
      }
      return value
    }
    guard let encoding = entity.columnsBySlot[place.slot][place.index].encoding else {
      return value
    }
    return value.attributeValue.map { Slot(encoding.written($0)) } ?? value
  }

  private func bind(_ slot: Slot, to statement: SQLStatement, at index: Int32) {
    guard case .model(let model) = slot else { return statement.bind(slot, at: index) }
    statement.bind(model._modelStorage.referenceKey.map { .key($0) } ?? .null, at: index)
  }
}
