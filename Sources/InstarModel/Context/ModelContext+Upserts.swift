import InstarSchema
import InstarStore

/// New models that take the rows of others, whose unique values they have.
///
/// The new model becomes the object of the row. The former object stays usable: it reads the row again after each save,
/// so that its values, and those of the new model, are those of the store.
extension ModelContext {
  /// The former object of a row, which may exist no more.
  struct FormerModel {
    weak var storage: ModelStorage?
  }

  /// Marks a new model as saved.
  ///
  /// - Parameter unloaded: Gets what the model loses.
  /// - Returns: The former object of its row.
  func markSavedNew(
    _ model: any PersistentModel, _ unloaded: inout [Slot]
  ) -> (any PersistentModel)? {
    markSaved(model, &unloaded)
    let storage = model._modelStorage
    guard let entity = entity(of: storage) else { return nil }
    let former = registeredStorage(entity, storage.key)
    register(storage, entity)
    // The key of a row that this save deletes may be that of a new row.
    guard let former, former !== storage, former.state != .deleted, let model = former.model
    else { return nil }
    changed.remove(model)
    former.changedSlots.removeAll()
    former.pendingMembers.removeAll()
    if former.descriptor === storage.descriptor {
      formerModels.append(FormerModel(storage: former))
    } else {
      // An object of another class cannot read the row.
      Self.detach(former)
    }
    return model
  }

  /// Makes the models that are related to the rows that new models took read their relationships again.
  ///
  /// - Parameters:
  ///   - taken: The new models.
  ///   - replaced: The former objects of their rows.
  ///   - unloaded: Gets what models lose, and the models themselves.
  func readUpsertsAgain(
    _ taken: [ModelStorage], _ replaced: [any PersistentModel], _ unloaded: inout [Slot]
  ) {
    for storage in taken where storage.state == .loaded {
      for slot in storage.entity?.toManySlots ?? [] { storage.unload(slot, &unloaded) }
    }
    let former = Set(replaced.map { ObjectIdentifier($0) })
    let mayEnd = taken.contains { hasOneToOne($0) }
    if !former.isEmpty || mayEnd {
      let keys = mayEnd ? Set(taken.map(\.key)) : []
      let living = registeredModels.flatMap { $0 }
      unloaded += living.map { .model($0) }
      for model in living where model._modelStorage.state == .loaded {
        model._modelStorage.unloadReferences(to: former, keys, &unloaded)
      }
    }
    readFormerModelsAgain()
  }

  /// Whether the row of a model may have had a one-to-one relationship, as one of any class in its table.
  private func hasOneToOne(_ storage: ModelStorage) -> Bool {
    guard let own = storage.entity else { return false }
    let root = stores.rootPositions[own.position]
    return stores.entities.contains { entity in
      stores.rootPositions[entity.position] == root
        && entity.references.contains {
          stores.inverse(of: entity.descriptor, slot: $0.slot)?.isToOne == true
        }
    }
  }

  /// Makes the objects of rows that have two of them read the rows again, because each may have changes of the other.
  func readFormerModelsAgain() {
    if formerModels.isEmpty { return }
    formerModels.removeAll { $0.storage?.context == nil }
    for former in formerModels.compactMap(\.storage) where !former.hasLostRow {
      let current = entity(of: former).flatMap { registeredStorage($0, former.key) }
      for storage in [former, current].compactMap({ $0 })
      where storage.state == .loaded && storage.changedSlots.isEmpty
        && storage.pendingMembers.isEmpty
      {
        storage.announcingAllChanges { storage.state = .fault }
      }
    }
  }

  /// Detaches all objects of rows that were deleted.
  func detachDeleted(_ storages: [ModelStorage]) {
    func detach(_ storage: ModelStorage) {
      forget(storage)
      Self.detach(storage)
    }
    if formerModels.isEmpty { return storages.forEach(detach) }
    let former = Dictionary(grouping: formerModels.compactMap(\.storage), by: \.key)
    for storage in storages {
      // Another row may have its key.
      if storage.hasLostRow {
        detach(storage)
        continue
      }
      let current = entity(of: storage).flatMap { registeredStorage($0, storage.key) }
      let others = (former[storage.key] ?? []).filter { $0.descriptor === storage.descriptor }
      // The key may be that of a new row by now.
      let isNew = current?.model.map { inserted.contains($0) } ?? false
      for storage in [storage] + others + (isNew ? [] : [current].compactMap { $0 }) {
        detach(storage)
      }
    }
  }
}

extension ModelStorage {
  /// Makes the next access read a relationship again.
  ///
  /// - Parameter unloaded: Gets the models that the relationship loses.
  func unload(_ slot: Int, _ unloaded: inout [Slot]) {
    noteWillChange(slot)
    unloaded.append(slots[slot])
    slots[slot] = .unloaded
    noteDidChange(slot)
  }

  /// - Parameters:
  ///   - models: The former objects of rows.
  ///   - keys: Keys of rows that a one-to-one relationship may no longer reference.
  ///   - unloaded: Gets the models that the relationships lose.
  fileprivate func unloadReferences(
    to models: Set<ObjectIdentifier>, _ keys: Set<Int64>, _ unloaded: inout [Slot]
  ) {
    for slot in slots.indices {
      let isOutdated =
        switch slots[slot] {
        case .model(let model): models.contains(ObjectIdentifier(model))
        case .key(let key): keys.contains(key)
        case .models(let members):
          !models.isEmpty && members.all.contains { models.contains(ObjectIdentifier($0)) }
        default: false
        }
      if isOutdated { unload(slot, &unloaded) }
    }
  }
}
