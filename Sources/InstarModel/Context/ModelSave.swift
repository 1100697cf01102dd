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
  let inserted: [Change]
  let changed: [Change]
  let deleted: [Change]
  /// The author of the context, for the store's history.
  private let author: String?
  /// The save that `enumerate` or a large fetch has begun. It is committed with this one.
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
    if context.isInStage { _ = try changes(context.inserted.all, context) }
    let inserted = try changes(context.inserted.all, context)
    // If a lost model has changed only in properties that are never stored, the save has nothing to write.
    let changed = try changes(
      context.changedModelsArray.filter {
        !$0._modelStorage.hasLostRow || context.hasChangesToSave($0._modelStorage)
      }, context)
    // Others have deleted the rows of lost models, and another row may have the key.
    let deleted = try changes(context.deleted.all, context).filter { !$0.storage.hasLostRow }
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
    let changesByModel = changes.keyed { ObjectIdentifier($0.model) }
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

  /// Others have saved since the context looked, so models of the save may have lost their rows.
  struct UnseenSaves: Error {}

  /// Writes all saves, or none if one fails before the first commit.
  ///
  /// - Parameters:
  ///   - hasUnseenSaves: Asked in the first transaction whether others have saved since the context looked. Then this
  ///     throws `UnseenSaves`.
  ///   - onCommit: Called after each commit, before another thread can use the connection: its save must see this one.
  static func run(
    _ saves: ArraySlice<ModelSave>, _ hasUnseenSaves: (SQLSession) -> Bool,
    onCommit: (ModelSave, Written) -> Void
  ) throws {
    guard let first = saves.first else { return }
    try first.store.explainingLock {
      try first.run(with: saves.dropFirst(), hasUnseenSaves, onCommit: onCommit)
    }
  }

  /// Checks the changes before anything is written.
  ///
  /// - Throws: `modelValidationFailure`; `unreadableStore` if the store's configuration does not allow saving;
  ///   `storeChanged` for a changed model, or a new reference to one, whose row others have deleted.
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
    with otherSaves: ArraySlice<ModelSave>, _ hasUnseenSaves: (SQLSession) -> Bool,
    onCommit: (ModelSave, Written) -> Void
  ) throws {
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
          // From here on nobody else commits.
          if hasUnseenSaves(session) { throw UnseenSaves() }
          // Rows may reference each other in a circle, so SQLite checks foreign keys only at the commit.
          if store.layout.enforcesForeignKeys { try session.run("PRAGMA defer_foreign_keys = ON") }
          files = try filesReleased(by: deleted, changed, session)
          var history = try SaveHistory(
            of: store, author: author, continuing: open?.historyTransaction, session)
          try delete(others, session, &history)
          new = try assignKeys(besides: formerOwners, session)
          var writes = try RowWrites(of: self, changed, new, session)
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
          if !otherSaves.isEmpty {
            try Self.run(otherSaves, hasUnseenSaves, onCommit: onCommit)
          }
        }
        if open != nil { try session.commitLong() }
        onCommit(
          self,
          Written(
            rows: open == nil ? rows(new, ended) : nil,
            taken: new.filter(\.isTaken).map(\.change.storage)))
      }
    } catch {
      for (change, value) in zip(inserted, before) {
        change.storage.removeRow()
        if let slot = change.entity.keySlot, let value { change.storage.slots[slot] = value }
      }
      throw error
    }
    store.connection.externalValues.remove(files.union(open?.releasedFiles ?? []))
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
        var writes = try RowWrites(of: self, changed, [], session)
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
    // Before anything is written by its key, which another row may have.
    if change.storage.hasLostRow { throw lostRow(of: change) }
    if !stores.replacements.isEmpty { try change.requireColumns(store.schema) }
    for reference in change.entity.references { try validate(reference, of: change) }
    for slot in change.entity.fractionSlots
    where writes(slot, change) && change.storage.slots[slot].isNotANumber {
      let name = change.entity.descriptor.properties[slot].name
      throw SwiftDataError.validation(
        "cannot save \(change.storage.title)",
        "'\(name)' is not a number (NaN), which SQLite cannot store",
        next: "set '\(name)' to a number, or to nil if it is optional")
    }
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
    case .model(let model)
    where model._modelStorage.state == .gone && writes(reference.slot, change):
      throw InstarError(
        .storeChanged, what(),
        cause:
          "relationship '\(property())' references \(model._modelStorage.title), which is no longer in the context",
        state: "unchanged", next: "set '\(property())' to another model, or call rollback()")
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
}
