import InstarSchema
import InstarStore

/// From changes in memory to the store, or back.
extension ModelContext {
  /// Writes all changes in one transaction.
  ///
  /// - Throws: an error met by a getter before; `modelValidationFailure` for a required relationship without a value or a
  ///   `deny` rule; `sqlFailed`. Nothing is then written, and all changes are still pending.
  public func save() throws {
    try throwDeferredError()
    guard hasChanges else { return }
    try announcingSave { try saveChanges() }
  }

  private func saveChanges() throws {
    try seeSavesOfOthers()
    try applyDeleteRules()
    try validateCounts()
    try throwDeferredError()
    let save = try ModelSave(
      context: self, inserted: inserted.all, changed: changedModelsArray, deleted: deleted.all)
    let rows = try save.run()
    if store.connection.saves.hasOthers {
      store.connection.saves.note(rows, by: ObjectIdentifier(self))
    }
    // The inserted ones first: one of them may have taken the place of a changed one.
    for model in inserted.all { settle(model) }
    for model in changedModelsArray { settle(model) }
    for model in held.all { model._modelStorage.pendingMembers.removeAll() }
    for model in deleted.all {
      forget(model._modelStorage)
      Self.detach(model._modelStorage)
    }
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
    inserted.removeAll()
    changed.removeAll()
    deleted.removeAll()
    held.removeAll()
  }
}
