import InstarSchema
import InstarStore

/// What the deletion of a model does to the models that it is related to.
extension ModelContext {
  func applyDeleteRules() throws {
    var waiting = deleted.all
    while let model = waiting.popLast() {
      let storage = model._modelStorage
      for slot in storage.descriptor.properties.indices {
        guard case .relationship(let relationship) = storage.descriptor.properties[slot].kind
        else { continue }
        let living = storage.related(at: slot, relationship).filter {
          !$0._modelStorage.isDeleted
        }
        switch relationship.metadata.deleteRule {
        case .noAction: continue
        case .deny:
          if !living.isEmpty {
            throw SwiftDataError.validation(
              "cannot delete \(storage.title)",
              "relationship '\(storage.descriptor.properties[slot].name)' has \(living.count) models, and its delete rule is 'deny'",
              next: "delete these models first, or remove them from the relationship"
            )
          }
        case .cascade:
          for member in membersThatGo(with: model, living, slot: slot) {
            deleteAny(member)
            if deleted.contains(member) { waiting.append(member) }
          }
        case .nullify:
          guard let inverse = storage.inverse(ofSlot: slot) else { continue }
          for member in living {
            member._modelStorage.unlink(
              model, at: inverse.slot, isToOne: inverse.isToOne, of: member)
          }
        }
      }
    }
  }

  /// Returns the members that a cascade deletes: not those that this save gives to other owners.
  private func membersThatGo(
    with model: any PersistentModel, _ members: [any PersistentModel], slot: Int
  ) -> [any PersistentModel] {
    if members.isEmpty { return [] }
    guard let inverse = model._modelStorage.inverse(ofSlot: slot) else {
      let taken = membersTakenOver(from: model._modelStorage, slot: slot)
      return members.filter { !taken.contains(ObjectIdentifier($0)) }
    }
    if inverse.isToOne { return members }
    // An array that was assigned says which owners are left. A deleted owner may not have been in it any more.
    return members.filter { member in
      let storage = member._modelStorage
      guard storage.changedSlots.contains(inverse.slot),
        case .models(let owners) = storage.slots[inverse.slot]
      else { return true }
      return owners.isEmpty || owners.contains(model)
    }
  }

  /// Returns the members of a relationship without inverse that belong to other owners after the save, as their rows
  /// reference one owner. Nothing tells the former owner's array.
  private func membersTakenOver(from storage: ModelStorage, slot: Int) -> Set<ObjectIdentifier> {
    guard let entity = entity(of: storage), case .toMany(let relationship) = entity.slots[slot],
      case .foreignKey = relationship.location
    else { return [] }
    var taken: Set<ObjectIdentifier> = []
    for owner in inserted.all + changedModelsArray {
      let other = owner._modelStorage
      guard let entity = self.entity(of: other), entity.slots.indices.contains(slot),
        case .toMany(let own) = entity.slots[slot], own.location == relationship.location,
        own.destinationTable == relationship.destinationTable,
        case .models(let members) = other.slots[slot]
      else { continue }
      let saved = other.savedMembers[slot] ?? []
      for member in members.all where !saved.contains(member._modelStorage.key) {
        taken.insert(ObjectIdentifier(member))
      }
    }
    return taken
  }
}

extension ModelStorage {
  /// Returns the models that a relationship of either kind references.
  fileprivate func related(
    at slot: Int, _ relationship: Schema.PropertyMetadata.RelationshipKind
  ) -> [any PersistentModel] {
    relationship.isToOne ? toOne(at: slot).map { [$0] } ?? [] : toMany(at: slot)
  }
}
