import InstarSchema
import InstarStore

/// From changes in memory to the stores, or back.
extension ModelContext {
  /// Writes all changes, in one transaction of each store that has some.
  ///
  /// With several stores, all checks come first. Then the transactions of all stores are begun and written, in the order of
  /// the stores' paths, and committed when all are written, in the opposite order. What goes wrong before the first commit
  /// so leaves all stores as they were. SQLite cannot commit several files at once: where a commit itself fails, on a full
  /// disk, after that of another store, what is in the other store stays there, and the error says which store is at what.
  ///
  /// - Throws: an error met by a getter before; `modelValidationFailure` for a required relationship without a value or a
  ///   `deny` rule; `unreadableStore` where a store with changes may not be saved to; `sqlFailed`. Nothing is then written,
  ///   and all changes are still pending; after a commit that failed as told above, those that are not saved.
  public func save() throws {
    try throwDeferredError()
    try failingStageUntilSaved {
      guard hasChanges else { return }
      announceSave()
      try saveChanges()
    }
  }

  private func saveChanges() throws {
    try seeSavesOfOthers()
    try applyDeleteRules()
    try validateCounts()
    try throwDeferredError()
    let saves = try ModelSave.saves(of: self)
    for save in saves { try save.validate() }
    let notices = isAnnouncingSaves ? saves.map(\.notice) : []
    var waiting = saves.map(\.store)
    do {
      try ModelSave.run(saves[...]) { save, rows in
        if save.store.connection.saves.hasOthers {
          save.store.connection.saves.note(rows, by: ObjectIdentifier(self))
        }
        waiting.removeAll { $0 === save.store }
      }
    } catch {
      guard waiting.count < saves.count else { throw error }
      settle(allBut: waiting)
      announce(notices.filter { notice in !waiting.contains { $0 === notice.store } })
      throw Self.halfSaved(
        error, saved: saves.map(\.store).filter { store in !waiting.contains { $0 === store } },
        waiting: waiting)
    }
    settle(allBut: [])
    announce(notices)
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
    known.next = known.next ?? "call save() again for what is still pending, or rollback()"
    return known
  }

  /// After a save: the stores hold what the models hold.
  ///
  /// - Parameter waiting: stores that were not saved to; their models keep their changes.
  private func settle(allBut waiting: [ModelStore]) {
    func isSaved(_ model: any PersistentModel) -> Bool {
      guard !waiting.isEmpty, let entity = entity(of: model._modelStorage) else { return true }
      return !waiting.contains { $0 === entity.store }
    }
    // The inserted ones first: one of them may have taken the place of a changed one.
    for model in inserted.all where isSaved(model) { settle(model) }
    for model in changedModelsArray where isSaved(model) { settle(model) }
    for model in held.all where isSaved(model) {
      model._modelStorage.pendingMembers.removeAll()
    }
    for model in deleted.all where isSaved(model) {
      forget(model._modelStorage)
      Self.detach(model._modelStorage)
    }
    guard !waiting.isEmpty else { return forgetChanges() }
    inserted.removeAll(where: isSaved)
    changed.removeAll(where: isSaved)
    deleted.removeAll(where: isSaved)
    held.removeAll(where: isSaved)
  }

  private func forgetChanges() {
    inserted.removeAll()
    changed.removeAll()
    deleted.removeAll()
    held.removeAll()
  }

  /// After a save: the store holds what the model holds.
  private func settle(_ model: any PersistentModel) {
    let storage = model._modelStorage
    storage.state = .loaded
    storage.changedSlots.removeAll()
    storage.pendingMembers.removeAll()
    guard let entity = entity(of: storage) else { return }
    for slot in entity.generatedSlots { storage.slots[slot] = .unloaded }
    for slot in entity.slots.indices {
      guard case .toMany = entity.slots[slot] else { continue }
      switch storage.slots[slot] {
      case .models(let models): storage.savedMembers[slot] = Self.keys(of: models)
      // Never set by the initializer: empty.
      case .null:
        storage.slots[slot] = .models([])
        storage.savedMembers[slot] = []
      default: break
      }
    }
    if let other = registeredStorage(entity, storage.key), other !== storage {
      // The model took the place of a row by a unique value: another object of that row reads it anew.
      other.state = .fault
      other.changedSlots.removeAll()
      if let model = other.model { changed.remove(model) }
    }
    register(storage, entity)
  }

  private func applyDeleteRules() throws {
    var waiting = deleted.all
    while let model = waiting.popLast() {
      let storage = model._modelStorage
      for slot in storage.descriptor.properties.indices {
        guard case .relationship(let relationship) = storage.descriptor.properties[slot].kind
        else { continue }
        let members =
          relationship.isToOne
          ? storage.toOne(at: slot).map { [$0] } ?? [] : storage.toMany(at: slot)
        let living = members.filter { !$0._modelStorage.isDeleted }
        switch relationship.metadata.deleteRule {
        case .noAction: continue
        case .deny:
          if !living.isEmpty {
            throw SwiftDataError.validation(
              "cannot delete \(storage.descriptor.name) \(storage.key)",
              "its relationship '\(storage.descriptor.properties[slot].name)' denies deletion while it has \(living.count) models"
            )
          }
        case .cascade:
          for member in living {
            deleteAny(member)
            if deleted.contains(member) { waiting.append(member) }
          }
        case .nullify:
          guard let inverse = storage.descriptor.inverse(ofSlot: slot) else { continue }
          for member in living {
            member._modelStorage.unlink(
              model, at: inverse.slot, isToOne: inverse.isToOne, of: member)
          }
        }
      }
    }
  }

  /// Runs `block`, then saves; when either throws, the changes in memory are undone.
  ///
  /// - Throws: what `block` throws; else as `save()` does.
  public func transaction(block: () throws -> Void) throws {
    do {
      try block()
      try save()
    } catch {
      rollback()
      throw error
    }
  }

  /// Forgets all changes since the last `save()`.
  public func rollback() {
    deferredError = nil
    // What a failed save was to write is lost now, whatever is saved later.
    failedSave = nil
    for model in inserted.all { Self.detach(model._modelStorage) }
    for model in changed.all + deleted.all {
      let storage = model._modelStorage
      storage.announcingAllChanges {
        storage.state = .fault
        storage.changedSlots.removeAll()
      }
    }
    // Arrays changed from the other side are read again, too. All storages are held first: an array may be what keeps
    // models of other entities alive.
    let living = registeredStorages
    for storage in living.joined() {
      storage.pendingMembers.removeAll()
      guard storage.state == .loaded else { continue }
      for slot in storage.slots.indices {
        if case .models = storage.slots[slot] { storage.slots[slot] = .unloaded }
      }
    }
    // All are held until here: letting go of members may end models, of any entity.
    withExtendedLifetime(living) {}
    forgetChanges()
  }
}
