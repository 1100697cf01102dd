import InstarSchema
import InstarStore

/// A save of a stage's closure that `enumerate` or a large fetch has begun: its transaction has the changed rows of
/// earlier batches.
///
/// The next `save()` adds the other changes and commits it; `rollback()` undoes it. So nobody can tell it from a save
/// of all changes at once, except by the memory that it takes.
struct OpenSave {
  let store: ModelStore
  /// The number of its transaction in the store's history; `nil` if the store has none.
  var historyTransaction: Int64?
  /// The files with large values that no row will reference after the commit.
  var releasedFiles: Set<String> = []
  /// The newest save on the connection when this one began.
  let newestSave: Int
}

extension ModelContext {
  /// Writes the changed rows into the transaction of the next save, so that their models can be released.
  ///
  /// Only the context of a stage does: in an app, an open transaction would block others. Inserted and deleted models,
  /// and changes that depend on them, wait for the save. So do all changes if one cannot be written, as another change
  /// may be needed first; the save reports the error.
  func writeBatch() {
    guard isInStage, changed.count > unwritableCount, stores.all.count == 1,
      let store = stores.all.first, openSave != nil || !store.connection.saves.hasOthers
    else { return }
    let (models, areAll) = writableModels()
    do {
      if !models.isEmpty { try write(models, to: store) }
      for model in models { noteWritten(model) }
      if areAll { forgetHeld() }
    } catch {
      unwritableCount = .max
      closeIfLost(error)
    }
    if unwritableCount != .max { unwritableCount = 2 * changed.count }
  }

  private func write(_ models: [any PersistentModel], to store: ModelStore) throws {
    let isNew = openSave == nil
    var open = try openSave ?? begin(store)
    do {
      try ModelSave(of: models, self, store).write(into: &open)
      openSave = open
    } catch {
      if isNew { try store.connection.perform { $0.rollBackLong() } }
      throw error
    }
  }

  private func begin(_ store: ModelStore) throws -> OpenSave {
    let newest = store.connection.saves.newest
    try store.connection.perform { try $0.beginLong() }
    return OpenSave(store: store, newestSave: newest)
  }

  /// Returns the changed models whose rows can be written now, and whether these are all unsaved changes.
  private func writableModels() -> (models: [any PersistentModel], areAll: Bool) {
    let all = changedModelsArray
    let areAll =
      inserted.isEmpty && deleted.isEmpty && !stores.hasCountLimits
      && all.allSatisfy { isWritable($0._modelStorage, withReferences: true) }
    return areAll
      ? (all, true) : (all.filter { isWritable($0._modelStorage, withReferences: false) }, false)
  }

  private func isWritable(_ storage: ModelStorage, withReferences: Bool) -> Bool {
    guard let entity = storage.entity else { return false }
    if storage.changedSlots.isSubset(of: entity.attributeSlots) { return true }
    guard withReferences, !entity.hasOrderedLinks else { return false }
    return entity.slots.indices.allSatisfy { slot in
      guard storage.changedSlots.contains(slot) else { return true }
      switch entity.slots[slot] {
      case .attribute, .composite: return true
      case .toMany, .none: return false
      case .toOne:
        guard case .model(let other) = storage.slots[slot] else { return true }
        return other._modelStorage.referenceKey != nil
      }
    }
  }

  private func noteWritten(_ model: any PersistentModel) {
    let storage = model._modelStorage
    storage.changedSlots.removeAll()
    for slot in storage.entity?.generatedSlots ?? [] { storage.slots[slot] = .unloaded }
    changed.remove(model)
  }

  /// Forgets the changes from the other sides of relationships, which are written.
  private func forgetHeld() {
    for model in held.values { model._modelStorage.notePendingMembersSaved() }
    clearing { held.removeAll() }
  }

  /// Commits a save that has batches only.
  func commitOpenSave() throws {
    guard let open = openSave else { return }
    do {
      try open.store.connection.perform { try $0.commitLong() }
    } catch {
      closeIfLost(error)
      throw error
    }
    let connection = open.store.connection
    connection.externalValues.remove(open.releasedFiles)
    if connection.saves.hasOthers { connection.saves.note(nil, by: ObjectIdentifier(self)) }
    openSave = nil
  }

  /// After an error, forgets the open save if SQLite has undone it: on a full disk, for example. Its models are gone,
  /// so the stage cannot succeed any more.
  func closeIfLost(_ error: any Error) {
    guard let open = openSave else { return }
    let isOpen = (try? open.store.connection.perform { $0.isInTransaction }) ?? false
    if isOpen { return }
    openSave = nil
    stores.stageFailures?.note(error)
  }

  /// Undoes the batches of an open save.
  ///
  /// - Returns: Whether there was one.
  func rollBackOpenSave() -> Bool {
    unwritableCount = 0
    guard let open = openSave else { return false }
    openSave = nil
    do {
      try open.store.connection.perform { $0.rollBackLong() }
    } catch {
      note(error)
    }
    if open.store.connection.saves.newest != open.newestSave {
      note(
        InstarError(
          .unsupported, "cannot roll back",
          cause:
            "another context saved while 'enumerate' or a fetch had unsaved batches; both are undone",
          next: "save before another context saves"))
    }
    return true
  }
}
