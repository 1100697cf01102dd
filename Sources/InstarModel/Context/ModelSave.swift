import Foundation
import InstarSchema
import InstarStore

/// Writes the changes of a context to one store, in one transaction.
///
/// The order: deletions, which free unique values; keys for the new rows; changed rows, then new ones (`RowWrites`,
/// which puts a row that frees a unique value before the one that takes it); data outside a model's own row (join
/// tables, keys of relationships without inverse); the order of links. In ordinary tables, changed references that may
/// leave a deleted row are written before it is deleted, as their foreign key may delete their row with it. If the
/// transaction fails, the models get their temporary keys again.
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
  /// The save that `enumerate` has begun. It is committed with this one.
  private let open: OpenSave?
  /// Called before each row that is written.
  let beforeWrite: (() throws -> Void)?

  struct Change {
    let model: any PersistentModel
    let storage: ModelStorage
    let entity: ModelEntity

    /// The key that a new model sets itself; `nil` if it takes the next one, which 0 stands for.
    var ownKey: Int64? {
      guard let slot = entity.keySlot, case .integer(let key) = storage.slots[slot], key != 0
      else { return nil }
      return key
    }
  }

  /// What a save has written.
  struct Written {
    /// The rows that were updated or deleted; `nil` if they are too many to list.
    var rows: SaveLog.Rows?
    /// The new models that took the rows of others.
    var taken: [ModelStorage] = []
  }

  /// Returns a save for each store with changes, in the order in which the stores are written.
  ///
  /// - Throws: `modelNotInSchema` for a model that is not in any store.
  static func saves(of context: ModelContext) throws -> [ModelSave] {
    // A class of another version changes `context.stores`, whose entities all changes must have.
    if context.phase != nil { _ = try changes(context.inserted.all, context) }
    let inserted = try changes(context.inserted.all, context)
    let changed = try changes(context.changedModelsArray, context)
    let deleted = try changes(context.deleted.all, context)
    let isOnly = context.stores.all.count == 1
    return context.stores.all.compactMap { store in
      func own(_ changes: [Change]) -> [Change] {
        isOnly ? changes : changes.filter { $0.entity.store === store }
      }
      let save = ModelSave(
        stores: context.stores, store: store, inserted: own(inserted), changed: own(changed),
        deleted: own(deleted), author: context.author,
        open: context.openSave?.store === store ? context.openSave : nil,
        beforeWrite: context.beforeWrite)
      return save.isEmpty ? nil : save
    }
  }

  /// The changes of some models, all in one store.
  init(of changed: [any PersistentModel], _ context: ModelContext, _ store: ModelStore) throws {
    self.init(
      stores: context.stores, store: store, inserted: [],
      changed: try Self.changes(changed, context), deleted: [], author: context.author, open: nil,
      beforeWrite: context.beforeWrite)
  }

  private static func changes(
    _ models: [any PersistentModel], _ context: ModelContext
  ) throws -> [Change] {
    try models.map { model in
      let storage = model._modelStorage
      let entity =
        try storage.entity
        ?? context.entity(for: type(of: model), to: "save")
      return Change(model: model, storage: storage, entity: entity)
    }
  }

  private init(
    stores: ModelStores, store: ModelStore, inserted: [Change], changed: [Change],
    deleted: [Change], author: String?, open: OpenSave?, beforeWrite: (() throws -> Void)?
  ) {
    self.beforeWrite = beforeWrite
    self.author = author
    self.open = open
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
    if areInOrder(changes) { return changes }
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

  /// Whether each new model already follows those that it references.
  private static func areInOrder(_ changes: [Change]) -> Bool {
    changes.allSatisfy { change in
      change.entity.references.allSatisfy { reference in
        guard case .model(let other) = change.storage.slots[reference.slot] else { return true }
        let storage = other._modelStorage
        return storage.state != .inserted || storage.position < change.storage.position
      }
    }
  }

  // MARK: Running

  /// Writes all saves, or none if one fails before the first commit.
  ///
  /// - Parameter onCommit: Called after each commit.
  static func run(
    _ saves: ArraySlice<ModelSave>, onCommit: (ModelSave, Written) -> Void
  ) throws {
    guard let first = saves.first else { return }
    let written = try first.run(with: saves.dropFirst(), onCommit: onCommit)
    onCommit(first, written)
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

  /// - Parameter otherSaves: The saves to write and commit before this one commits.
  private func run(
    with otherSaves: ArraySlice<ModelSave>, onCommit: (ModelSave, Written) -> Void
  ) throws -> Written {
    var new: [NewRow] = []
    var ended = SaveLog.Rows()
    var files: Set<String> = []
    let before = inserted.map { $0.entity.keySlot.map($0.storage.value(inSlot:)) }
    let left = tablesLeft()
    let formerOwners = deleted.filter { left.reached.contains($0.entity.layout.table) }
    let others = deleted.filter { !left.reached.contains($0.entity.layout.table) }
    do {
      try store.connection.perform { session in
        try session.transaction {
          try store.requireSameStructure(session)
          // Rows may reference each other in a circle, so SQLite checks foreign keys only at the commit.
          if store.layout.enforcesForeignKeys { try session.run("PRAGMA defer_foreign_keys = ON") }
          files = try filesReleased(by: deleted, changed, session)
          var history = try SaveHistory(
            of: store, author: author, continuing: open?.historyTransaction, session)
          try delete(others, session, &history)
          new = try assignKeys(besides: formerOwners, session)
          var writes = RowWrites(of: self, changed, new, session)
          try writes.writeReferences(to: left.referenced)
          try delete(formerOwners, session, &history)
          try writes.writeAll()
          files.formUnion(writes.releasedFiles)
          for row in lastOfTakenRows(new) {
            try endFormerLinks(row.change, session, &history, &ended)
          }
          // New models come last, because they may have taken the rows of changed ones.
          for change in changed { try writeMembers(change, session) }
          for row in new { try writeMembers(row.change, session) }
          try writeOrders(of: new, changed, session)
          if history != nil { try writes.note(in: &history) }
          // Finds violations that would fail the commit: before other stores commit, or with all batches.
          if !otherSaves.isEmpty || open != nil { try session.requireResolvedForeignKeys() }
          if !otherSaves.isEmpty { try Self.run(otherSaves, onCommit: onCommit) }
        }
        if open != nil { try session.commitLong() }
      }
    } catch {
      for (change, value) in zip(inserted, before) {
        change.storage.removeRow()
        if let slot = change.entity.keySlot, let value { change.storage.slots[slot] = value }
      }
      throw error
    }
    store.connection.externalValues.remove(files.union(open?.releasedFiles ?? []))
    return Written(
      rows: open == nil ? rows(new, ended) : nil,
      taken: new.filter(\.isTaken).map(\.change.storage))
  }

  /// Writes changed rows into an open save. If it throws, they are not written, and the save is as before.
  func write(into open: inout OpenSave) throws {
    try validate()
    var written = open
    try store.connection.perform { session in
      try session.transaction {
        try store.requireSameStructure(session)
        if store.layout.enforcesForeignKeys { try session.run("PRAGMA defer_foreign_keys = ON") }
        written.releasedFiles.formUnion(try filesReleased(by: [], changed, session))
        var history = try SaveHistory(
          of: store, author: author, continuing: open.historyTransaction, session)
        written.historyTransaction = history?.transaction
        var writes = RowWrites(of: self, changed, [], session)
        try writes.writeAll()
        if history != nil { try writes.note(in: &history) }
        try session.requireResolvedForeignKeys()
      }
    }
    open = written
  }

  /// - Parameter ended: Rows of other models whose links were ended.
  private func rows(_ new: [NewRow], _ ended: SaveLog.Rows) -> SaveLog.Rows? {
    guard changed.count + deleted.count <= SaveLog.rowLimit,
      store.connection.saves.hasOthers
    else { return nil }
    var rows = ended
    for change in changed {
      rows.changed[change.entity.layout.table, default: []].insert(change.storage.key)
    }
    for row in new where row.isTaken {
      rows.changed[row.change.entity.layout.table, default: []].insert(row.change.storage.key)
    }
    for change in deleted {
      rows.deleted[change.entity.layout.table, default: []].insert(change.storage.key)
    }
    return rows
  }

  private func validate(_ change: Change) throws {
    if !stores.replacements.isEmpty { try change.requireColumns(store.schema) }
    for reference in change.entity.references { try validate(reference, of: change) }
    guard change.storage.state == .loaded else { return }
    let keySlots = change.entity.keySlot.map { [$0] } ?? change.entity.keySlots
    if let slot = keySlots.first(where: { change.storage.changedSlots.contains($0) }) {
      throw SwiftDataError.validation(
        "cannot save \(change.storage.title)",
        "'\(change.entity.descriptor.properties[slot].name)' was changed, which is part of the row's primary key",
        next: "insert a new model with the new key, and delete this one")
    }
  }

  private func validate(_ reference: ModelEntity.Reference, of change: Change) throws {
    func what() -> String { "cannot save \(change.storage.title)" }
    func property() -> String { change.entity.descriptor.properties[reference.slot].name }
    switch change.storage.slots[reference.slot] {
    case .null where !reference.isOptional:
      throw SwiftDataError.validation(
        what(), "required relationship '\(property())' has no value",
        next: "set '\(property())', or make it optional")
    case .model(let model)
    where model._modelStorage.isDeleted && !reference.isOptional && writes(reference.slot, change):
      throw SwiftDataError.validation(
        what(), "required relationship '\(property())' references a deleted model",
        next: "set '\(property())' to another model, or delete this one too")
    case .model(let model):
      let destination = reference.destination
      guard !isInstance(model, of: destination) else { return }
      // An inherited relationship accepts a model of any class that has it.
      let name = model._modelStorage.descriptor.name
      throw SwiftDataError.validation(
        what(),
        "relationship '\(property())' references a model of \(name); it accepts \(destination) only",
        next:
          "remove the model from the relationship of \(name) that is the inverse of '\(property())'"
      )
    default: return
    }
  }

  private func writes(_ slot: Int, _ change: Change) -> Bool {
    change.storage.state == .inserted || change.storage.changedSlots.contains(slot)
  }

  private func isInstance(_ model: any PersistentModel, of name: String) -> Bool {
    let descriptor = model._modelStorage.descriptor
    return descriptor.name == name
      || stores.entity(named: name).map { descriptor.inherits(from: $0.descriptor) } ?? true
  }

  // MARK: Rows

  /// Returns the tables whose deleted rows changed references may leave: those that they reference, and all that the
  /// rows of these reference in turn. SQLite deletes the rows that reference a deleted one by a foreign key with that
  /// action at once, also where it checks the keys at the commit.
  private func tablesLeft() -> (referenced: Set<String>, reached: Set<String>) {
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

  private func delete(
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

  /// Writes the columns of changed slots of a row.
  func update(
    _ change: Change, _ slots: SlotSet, _ statements: SaveStatements
  ) throws {
    if let update = try statements.update(change.entity, slots) {
      try run(update, change, statements.session)
    }
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
    guard session.changedRowCount > 0 else {
      throw InstarError(
        .storeChanged, "cannot save \(change.storage.title)",
        cause: "another context or process deleted the row", state: "unchanged",
        next: "call rollback(), or delete the model here too")
    }
  }

  /// Binds the values of a slot's columns, and moves the index after them.
  func bind(
    _ slot: Int, of change: Change, to statement: SQLStatement, at index: inout Int32,
    _ session: SQLSession
  ) throws {
    if change.entity.isBoundDirectly[slot] {
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

  // MARK: Keys

  /// Assigns keys to the inserted models. New keys follow the highest one ever assigned, and the highest one that a
  /// model of this save sets itself. Keys of tables without rowid consist of values, which may be keys of other new
  /// models, so they come last.
  ///
  /// - Parameter deleted: Rows that are deleted later.
  /// - Returns: The rows of the inserted models, in the order in which they are written.
  /// - Throws: `RowsToMerge` if several rows have the unique values of a model.
  private func assignKeys(besides deleted: [Change], _ session: SQLSession) throws -> [NewRow] {
    if inserted.isEmpty { return [] }
    var isTaken = Array(repeating: false, count: inserted.count)
    var isShared = false
    var highest = try highestKeys(session)
    // Models of this save with the same unique value share a row. The last one determines its values.
    var rows = TakenRows(changed: changed, deleted: deleted, session)
    // Unique values with a new model have none before its key.
    var waiting = changed.filter(hasUniqueReferenceToNewModel)
    if waiting.isEmpty {
      for change in changed { rows.note(uniqueValues(of: change), of: change) }
    } else {
      for change in changed where !hasUniqueReferenceToNewModel(change) {
        rows.note(uniqueValues(of: change), of: change)
      }
    }
    var merged: [RowsToMerge.Row] = []
    for position in keyOrder() {
      let change = inserted[position]
      if let slot = change.entity.keySlot, case .integer(0) = change.storage.slots[slot] {
        change.storage.slots[slot] = .null
      }
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
        rows.forget(Row(change.entity.layout.table, other))
        for position in positions(sharing: other, change) {
          setKey(change.storage.key, of: inserted[position])
          isTaken[position] = true
        }
      }
      for other in found.stored where other != key {
        rows.noteMerged(Row(change.entity.layout.table, other))
        merged.append(RowsToMerge.Row(of: change, key: other))
      }
      // The row keeps its key, which may not be the one that the model had.
      let hasNewKey = key != nil && change.entity.keySlot != nil
      rows.note(hasNewKey ? uniqueValues(of: change) : values, of: change, isTaken: key != nil)
    }
    if !merged.isEmpty { throw RowsToMerge(rows: merged) }
    for (root, key) in highest {
      guard let recording = stores.entities[root].layout.recordKeyStatement else { continue }
      try run(recording, [key], session)
    }
    let new = zip(inserted, isTaken).map { NewRow(change: $0, isTaken: $1) }
    return isShared ? lastInsertedLast(new) : new
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

  /// The positions of the inserted models that have a key in the table of a model.
  private func positions(sharing key: Int64, _ change: Change) -> [Int] {
    inserted.indices.filter {
      let storage = inserted[$0].storage
      return storage.hasRow && storage.key == key
        && inserted[$0].entity.layout.table == change.entity.layout.table
    }
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
    let positions = Dictionary(
      inserted.indices.map { (ObjectIdentifier(inserted[$0].model), $0) },
      uniquingKeysWith: { first, _ in first })
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

  // MARK: Relationships stored outside the row

  private func writeMembers(_ change: Change, _ session: SQLSession) throws {
    for slot in change.entity.toManySlots {
      guard case .toMany(let relationship) = change.entity.slots[slot],
        relationship.isSavedFromHere, case .models(let members) = change.storage.slots[slot]
      else { continue }
      let saved = change.storage.savedMembers[slot] ?? []
      if saved.isEmpty, members.isEmpty { continue }
      let current = Set(members.all.compactMap(\._modelStorage.referenceKey))
      let links = Links(
        added: current.subtracting(saved).sorted(), removed: saved.subtracting(current).sorted())
      if !links.isEmpty { try write(links, relationship, of: change.storage.key, session) }
    }
  }

  /// The members that a save adds to a relationship and removes from it, by key.
  private struct Links {
    let added: [Int64]
    let removed: [Int64]
    var isEmpty: Bool { added.isEmpty && removed.isEmpty }
  }

  private func write(
    _ links: Links, _ relationship: EntityLayout.RelationshipStorage, of key: Int64,
    _ session: SQLSession
  ) throws {
    switch relationship.location {
    case .column: return
    case .foreignKey(let reference):
      guard let target = stores.entity(named: relationship.relationship.destination)?.layout
      else { return }
      let update = "UPDATE \(relationship.destinationTable) AS t0 SET"
      let isMember = target.key.condition("t0", equals: "?2")
      let addition = "\(update) \(reference.assignment(of: "?1")) WHERE \(isMember)"
      for member in links.added { try run(addition, [key, member], session) }
      // The member may have another owner by now, which was written before.
      let removal =
        "\(update) \(cleared(reference)) WHERE \(isMember) "
        + "AND \(reference.condition("t0", equals: "?1"))"
      for member in links.removed { try run(removal, [key, member], session) }
    case .joinTable(let name, let own, let other):
      // A relationship that is its own inverse has a row for each direction.
      let directions =
        relationship.keepsBothDirections
        ? [(own, other), (other, own)] : [(own, other)]
      for (own, other) in directions {
        let columns = (own.columns + other.columns).joined(separator: ", ")
        let values = (own.values(of: "?1") + other.values(of: "?2")).joined(separator: ", ")
        // Both sides may insert the same link.
        let addition = "INSERT OR IGNORE INTO \(name) (\(columns)) VALUES (\(values))"
        for member in links.added { try run(addition, [key, member], session) }
        let removal =
          "DELETE FROM \(name) AS j WHERE \(own.condition("j", equals: "?1")) "
          + "AND \(other.condition("j", equals: "?2"))"
        for member in links.removed { try run(removal, [key, member], session) }
      }
    }
  }

  func cleared(_ reference: ForeignKey) -> String {
    reference.columns.map { "\($0) = NULL" }.joined(separator: ", ")
  }

  func run(_ sql: String, _ keys: [Int64], _ session: SQLSession) throws {
    let statement = try session.statement(sql)
    for (offset, key) in keys.enumerated() { statement.bind(key, at: Int32(offset + 1)) }
    try statement.run()
  }
}

extension EntityLayout.RelationshipStorage {
  /// Whether a save writes the links of this to-many relationship itself. The foreign key of a relationship with an
  /// inverse is a slot of the member, and is written with its row.
  var isSavedFromHere: Bool {
    if case .foreignKey = location { relationship.inverseName == nil } else { true }
  }
}
