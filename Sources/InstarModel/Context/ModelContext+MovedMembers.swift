import InstarSchema
import InstarStore

/// Members that a save gives to another owner by a relationship without inverse. Their rows reference one owner, and
/// nothing tells the former owner's array.
extension ModelContext {
  /// The foreign key with the links of relationships without inverse.
  struct OneSidedKey: Hashable {
    let table: String
    let location: EntityLayout.RelationshipStorage.Location

    /// - Returns: `nil` for other relationships.
    init?(_ slot: SlotStorage) {
      guard case .toMany(let relationship) = slot, relationship.isSavedFromHere,
        case .foreignKey = relationship.location
      else { return nil }
      table = relationship.destinationTable
      location = relationship.location
    }
  }

  /// By foreign key, the storage of the new owner of each member.
  typealias MovedMembers = [OneSidedKey: [ObjectIdentifier: ObjectIdentifier]]

  /// Returns the members with rows that get another owner. Call it before the models are marked as saved.
  ///
  /// - Parameter isSaved: Whether an owner was saved.
  func movedMembers(of isSaved: (any PersistentModel) -> Bool) -> MovedMembers {
    let keys = oneSidedKeys()
    if keys.isEmpty { return [:] }
    var moved: MovedMembers = [:]
    // In the order of the save, because the owner that is written last has the member.
    for owner in changedModelsArray + inserted.all where isSaved(owner) {
      let storage = owner._modelStorage
      for (slot, key) in oneSidedSlots(of: storage, keys) {
        guard case .models(let members) = storage.slots[slot] else { continue }
        let saved = storage.savedMembers[slot] ?? []
        for member in members.all {
          let other = member._modelStorage
          guard other.state != .inserted, !saved.contains(other.key) else { continue }
          moved[key, default: [:]][ObjectIdentifier(member)] = ObjectIdentifier(storage)
        }
      }
    }
    return moved
  }

  /// Makes the former owners read their members again.
  ///
  /// - Parameter unloaded: Gets what models lose, and the models themselves.
  func readFormerOwnersAgain(of moved: MovedMembers, _ unloaded: inout [Slot]) {
    if moved.isEmpty { return }
    let keys = oneSidedKeys()
    let living = modelsOfRows
    unloaded += living.map { .model($0) }
    for model in living where model._modelStorage.state == .loaded {
      let storage = model._modelStorage
      for (slot, key) in oneSidedSlots(of: storage, keys) {
        guard let owners = moved[key], case .models(let members) = storage.slots[slot] else {
          continue
        }
        let own = ObjectIdentifier(storage)
        let hasLost = members.all.contains { member in
          owners[ObjectIdentifier(member)].map { $0 != own } ?? false
        }
        if hasLost { storage.unload(slot, &unloaded) }
      }
    }
  }

  private typealias OneSidedSlot = (slot: Int, key: OneSidedKey)

  /// By the position of the entity.
  private func oneSidedKeys() -> [Int: [OneSidedSlot]] {
    var keys: [Int: [OneSidedSlot]] = [:]
    for entity in stores.entities {
      let own = entity.toManySlots.compactMap { slot -> OneSidedSlot? in
        OneSidedKey(entity.slots[slot]).map { (slot: slot, key: $0) }
      }
      if !own.isEmpty { keys[entity.position] = own }
    }
    return keys
  }

  private func oneSidedSlots(
    of storage: ModelStorage, _ keys: [Int: [OneSidedSlot]]
  ) -> [OneSidedSlot] {
    entity(of: storage).flatMap { keys[$0.position] } ?? []
  }
}
