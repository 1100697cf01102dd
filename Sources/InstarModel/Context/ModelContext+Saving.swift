import InstarSchema
import InstarStore

/// Saves or discards the changes in memory.
extension ModelContext {
  /// Writes all changes, in one transaction for each store that has some.
  ///
  /// With several stores, all checks come first. The context then begins and writes the transactions in the order of
  /// the stores' paths, and commits them in the opposite order when all are written. An error before the first commit
  /// leaves all stores unchanged. SQLite cannot commit several files at once: if a commit fails after that of another
  /// store, for example on a full disk, the other store stays saved, and the error names the state of each store.
  ///
  /// - Throws: An earlier error of a getter; `modelValidationFailure` for a required relationship without a value, a
  ///   `deny` rule, NaN, or a changed unique value that another row keeps; `unreadableStore` if the configuration of a
  ///   store with changes does not allow saving; `storeChanged` if others have deleted the row of a changed model or of
  ///   one that a changed relationship references, or have migrated the store; `sqlFailed`. Nothing is then written,
  ///   and all changes stay pending. After a failed commit as above, the changes of the unsaved stores stay pending.
  public func save() throws {
    try throwDeferredError()
    try failingStageUntilSaved {
      guard hasChanges else { return }
      announceSave()
      try saveChanges()
    }
  }

  /// How often a save begins again because others have saved since it looked. Then it writes all the same, because
  /// others who save all the time would keep it waiting.
  private static let restartLimit = 3

  /// The changes of the app before a save changes more in memory. A save that begins again, or after an error, must not
  /// write these changes of its own: others may have moved the models that it would delete or take from their owners.
  private struct BeforeSave {
    /// Before the delete rules; `nil` if there is nothing to delete.
    var rules: UnsavedChanges?
    /// Before rows gave way to new models.
    var merge: UnsavedChanges?

    func restore(in context: ModelContext) {
      merge?.restore(in: context)
      rules?.restore(in: context)
    }
  }

  private func saveChanges() throws {
    for number in 0...Self.restartLimit {
      let isLast = number == Self.restartLimit
      var before = BeforeSave()
      do {
        while let conflict = try writeChanges(&before, despiteUnseen: isLast) {
          if before.merge == nil {
            // Others may have given members to the rows that give way, or these rows to an owner.
            if !isLast, hasUnseenSaves { throw ModelSave.UnseenSaves() }
            try seeSavesOfOthers()
            _ = try seeCommitsOfOthers()
            before.merge = UnsavedChanges(of: self)
          }
          try merge(conflict.rows)
        }
        return
      } catch is ModelSave.UnseenSaves where !isLast {
        before.restore(in: self)
      } catch {
        before.restore(in: self)
        throw error
      }
    }
  }

  /// - Parameters:
  ///   - before: Gets the changes before the delete rules; becomes empty if they cannot be restored.
  ///   - isUnseenIgnored: Whether to write even if others have saved since the context looked.
  /// - Returns: The rows that must give way to new models before the changes can be saved; `nil` if they are saved.
  private func writeChanges(
    _ before: inout BeforeSave, despiteUnseen isUnseenIgnored: Bool
  ) throws -> ModelSave.RowsToMerge? {
    if isInStage, stores.all.contains(where: { !$0.allowsSave }) { throw Self.readOnly() }
    // The merge has moved the links that it knew.
    if before.merge != nil, !isUnseenIgnored, hasUnseenSaves { throw ModelSave.UnseenSaves() }
    try lookForCommits()
    try seeSavesOfOthers()
    _ = try seeCommitsOfOthers()
    if before.merge == nil {
      try applyDeleteRules(keeping: &before.rules)
    } else {
      try applyDeleteRules()
    }
    readUniqueValues()
    try validateCounts()
    try throwDeferredError()
    let saves = try ModelSave.saves(of: self)
    for save in saves { try save.validate() }
    if saves.isEmpty { try commitOpenSave() }
    let notices = isAnnouncingSaves ? saves.map(\.notice) : []
    var waiting = saves.map(\.store)
    var taken: [ModelStorage] = []
    do {
      // Also commits that a statement of this save has met since the context looked.
      let hasUnseenSaves: (SQLSession) -> Bool = {
        !isUnseenIgnored && ($0.hasMetCommitsOfOthers || self.hasUnseenSaves)
      }
      try ModelSave.run(saves[...], hasUnseenSaves) { save, written in
        taken += written.taken
        if save.store.connection.saves.hasOthers {
          save.store.connection.saves.note(written.rows, by: ObjectIdentifier(self))
        }
        waiting.removeAll { $0 === save.store }
      }
    } catch let conflict as ModelSave.RowsToMerge {
      return conflict
    } catch {
      closeIfLost(error)
      guard waiting.count < saves.count else { throw error }
      // The models of a saved store have their rows.
      before = BeforeSave()
      markSaved(allBut: waiting, taken)
      announce(notices.filter { notice in !waiting.contains { $0 === notice.store } })
      throw Self.halfSaved(
        error, saved: saves.map(\.store).filter { store in !waiting.contains { $0 === store } },
        waiting: waiting)
    }
    openSave = nil
    unwritableCount = 0
    markSaved(allBut: [], taken)
    announce(notices)
    // The storages in `taken` do not retain their models.
    withExtendedLifetime(saves) {}
    return nil
  }

  /// Has SQLite look for commits of other connections, which it notices only when it reads. In a stage there are none.
  /// It does not read a store without changes, which another process may have locked.
  private func lookForCommits() throws {
    guard !isInStage else { return }
    let changing = stores.entities.filter {
      inserted.contains($0) || changed.contains($0) || deleted.contains($0)
    }
    for store in stores.all where changing.contains(where: { $0.store === store }) {
      try store.explainingLock {
        try store.connection.perform { _ = try $0.integer("PRAGMA data_version") }
      }
    }
  }

  /// Reads the values of unique groups that were changed in part, because the save compares whole groups. The unchanged
  /// ones may have been unloaded when another context saved.
  private func readUniqueValues() {
    for model in changedModelsArray {
      let storage = model._modelStorage
      if storage.hasLostRow { continue }
      let isInPart = storage.entity?.uniqueGroups.contains { group in
        group.slots.contains { storage.changedSlots.contains($0) }
          && group.slots.contains {
            if case .unloaded = storage.slots[$0] { true } else { false }
          }
      }
      if isInPart == true { fillUnloadedValues(of: storage) }
    }
  }

  private static func halfSaved(
    _ error: any Error, saved: [ModelStore], waiting: [ModelStore]
  ) -> InstarError {
    func list(_ stores: [ModelStore]) -> String {
      stores.map(\.place).joined(separator: ", ")
    }
    var known = InstarError(error, what: "cannot save all changes")
    known.what = "cannot save all changes"
    known.state = "\(list(saved)): saved; \(list(waiting)): unchanged"
    known.next =
      known.next ?? "call save() again to save the pending changes, or rollback() to discard them"
    return known
  }

  /// Marks the models of saved stores as unchanged.
  ///
  /// - Parameters:
  ///   - waiting: The stores that were not saved. Their models keep their changes.
  ///   - taken: The new models that took the rows of others.
  private func markSaved(allBut waiting: [ModelStore], _ taken: [ModelStorage]) {
    func isSaved(_ model: any PersistentModel) -> Bool {
      guard !waiting.isEmpty, let entity = entity(of: model._modelStorage) else { return true }
      return !waiting.contains { $0 === entity.store }
    }
    let moved = movedMembers(of: isSaved)
    // Released when the lists of changes are cleared: the `deinit` of a model may change other models of the context.
    var unloaded: [Slot] = []
    var replaced: [any PersistentModel] = []
    defer { withExtendedLifetime((unloaded, replaced)) {} }
    // Inserted models come first, because an upsert may have replaced a changed model.
    for model in inserted.all where isSaved(model) {
      if let former = markSavedNew(model, &unloaded) { replaced.append(former) }
    }
    for model in changedModelsArray where isSaved(model) { markSaved(model, &unloaded) }
    for model in held.values where isSaved(model) {
      model._modelStorage.notePendingMembersSaved()
    }
    detachDeleted(deleted.all.filter(isSaved).map(\._modelStorage))
    readUpsertsAgain(taken, replaced, &unloaded)
    readFormerOwnersAgain(of: moved, &unloaded)
    guard !waiting.isEmpty else { return forgetChanges() }
    clearing {
      inserted.removeAll(where: isSaved)
      changed.removeAll(where: isSaved)
      deleted.removeAll(where: isSaved)
      held = held.filter { !isSaved($0.value) }
    }
  }

  private func forgetChanges() {
    clearing {
      inserted.removeAll()
      changed.removeAll()
      deleted.removeAll()
      held.removeAll()
      orphans.removeAll()
      oneSidedOwners = nil
    }
  }

  /// Runs code that clears lists of changes, and only then releases what they retained: the `deinit` of a model may
  /// change other models of the context.
  func clearing(_ clear: () -> Void) {
    let lists = (inserted, changed, deleted, held, orphans, oneSidedOwners)
    clear()
    withExtendedLifetime(lists) {}
  }

  /// - Parameter unloaded: Gets what the model loses.
  func markSaved(_ model: any PersistentModel, _ unloaded: inout [Slot]) {
    let storage = model._modelStorage
    storage.state = .loaded
    let outdated = storage.hasOutdatedMembers ? storage.changedSlots : SlotSet()
    storage.changedSlots.removeAll()
    storage.pendingMembers.removeAll()
    storage.hasOutdatedMembers = false
    guard let entity = entity(of: storage) else { return }
    for slot in entity.generatedSlots { storage.slots[slot] = .unloaded }
    for slot in entity.toManySlots {
      if outdated.contains(slot) {
        storage.unload(slot, &unloaded)
        continue
      }
      // The initializer did not set it, so it is empty.
      if case .null = storage.slots[slot] { storage.slots[slot] = .models(Members()) }
      guard case .toMany(let relationship) = entity.slots[slot], relationship.isSavedFromHere,
        case .models(let members) = storage.slots[slot]
      else { continue }
      storage.savedMembers[slot] = Self.keys(of: members.all)
    }
  }

  /// Runs `block` and saves. If either throws, discards all pending changes.
  ///
  /// - Throws: Rethrows the error of `block`; otherwise the errors of `save()`.
  public func transaction(block: () throws -> Void) throws {
    do {
      try block()
      try save()
    } catch {
      rollback()
      throw error
    }
  }

  /// Discards all changes since the last `save()`. Inserted models leave the context; changed and deleted models read
  /// their rows again, and leave the context if another one of the container has deleted their rows.
  public func rollback() {
    working(rollBack)
  }

  private func rollBack() {
    deferredError = nil
    // What a failed save was to write is lost now, whatever is saved later.
    failedSave = nil
    let hadBatches = rollBackOpenSave()
    let new = inserted.all
    let living = modelsOfRows
    do {
      try seeSavesOfOthers()
      _ = try seeCommitsOfOthers()
    } catch {
      note(error)
    }
    for model in new { Self.detach(model._modelStorage) }
    for model in changed.all + deleted.all {
      let storage = model._modelStorage
      if storage.context == nil { continue }
      if storage.hasLostRow {
        forget(storage)
        Self.detach(storage)
        continue
      }
      storage.announcingAllChanges {
        storage.state = .fault
        storage.changedSlots.removeAll()
        storage.hasOutdatedMembers = false
      }
    }
    // Arrays that were changed from the other side are read again too.
    for model in living {
      let storage = model._modelStorage
      storage.pendingMembers.removeAll()
      guard storage.state == .loaded else { continue }
      if hadBatches {
        storage.state = .fault
        continue
      }
      for slot in storage.slots.indices {
        if case .models = storage.slots[slot] { storage.slots[slot] = .unloaded }
      }
    }
    forgetChanges()
    // Changes that the `deinit` of a lost model makes come after the rollback.
    withExtendedLifetime((new, living)) {}
  }
}
