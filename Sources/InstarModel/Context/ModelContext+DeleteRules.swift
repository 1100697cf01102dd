import InstarSchema
import InstarStore

/// What the deletion of a model does to the models that it is related to.
extension ModelContext {
  /// A member of a new model that was deleted before it was saved, and would have deleted the member with it.
  struct Orphan {
    let model: any PersistentModel
    let inverse: ModelDescriptor.Inverse?
  }

  /// The orphans of a context. Finding those of a model takes the same time for any number of others.
  struct Orphans {
    private var waiting: [ObjectIdentifier: [(number: Int, orphan: Orphan)]] = [:]
    private var lastNumber = 0

    var isEmpty: Bool { waiting.isEmpty }

    mutating func append(_ orphan: Orphan) {
      lastNumber += 1
      waiting[ObjectIdentifier(orphan.model), default: []].append((lastNumber, orphan))
    }

    /// Removes a model that got an owner.
    mutating func remove(_ model: any PersistentModel, _ slot: Int) {
      guard var own = waiting[ObjectIdentifier(model)] else { return }
      own.removeAll { $0.orphan.inverse?.slot == slot }
      waiting[ObjectIdentifier(model)] = own.isEmpty ? nil : own
    }

    mutating func removeAll() { waiting.removeAll() }

    /// Removes and returns all, in their order.
    mutating func takeAll() -> [Orphan] {
      defer { waiting.removeAll() }
      return waiting.values.joined().sorted { $0.number < $1.number }.map { $0.orphan }
    }
  }

  /// Where unsaved changes reference new models by relationships without inverse, so that finding the owners of one
  /// takes the same time for any number of others.
  struct OneSidedOwners {
    typealias Owner = (model: any PersistentModel, slot: Int)

    /// By referenced model. Some no longer reference it.
    private var owners: [ObjectIdentifier: [Owner]] = [:]

    /// Notes the members of a relationship. Those with rows are found in the store.
    mutating func note(_ members: [any PersistentModel], of owner: Owner) {
      for member in members where !member._modelStorage.hasRow {
        owners[ObjectIdentifier(member), default: []].append(owner)
      }
    }

    func owners(of model: any PersistentModel) -> [Owner] {
      owners[ObjectIdentifier(model)] ?? []
    }

    mutating func forget(_ model: any PersistentModel) { owners[ObjectIdentifier(model)] = nil }
  }

  // MARK: At the save

  /// - Parameter before: Gets the models that the rules read or change, as they are now. It stays `nil` if there is
  ///   nothing to delete.
  func applyDeleteRules(keeping before: inout UnsavedChanges?) throws {
    if !deleted.isEmpty || !orphans.isEmpty {
      beforeRules = UnsavedChanges(of: self, isWhole: false)
    }
    defer { before = beforeRules.take() }
    try applyDeleteRules()
  }

  func applyDeleteRules() throws {
    deleteOrphans()
    var waiting = deleted.all
    while !waiting.isEmpty {
      while let model = waiting.popLast() { waiting += try applyDeleteRules(of: model) }
      // A cascade may have deleted new models, whose members it does not reach.
      waiting = deleteOrphans()
    }
  }

  /// - Returns: The members with rows that are deleted with the model.
  private func applyDeleteRules(
    of model: any PersistentModel
  ) throws -> [any PersistentModel] {
    let storage = model._modelStorage
    var gone: [any PersistentModel] = []
    for slot in storage.descriptor.properties.indices {
      guard case .relationship(let relationship) = storage.descriptor.properties[slot].kind
      else { continue }
      keep(model)
      let living = storage.related(at: slot, relationship).filter {
        !$0._modelStorage.isDeleted && (!storage.hasLostRow || isStillMember($0, of: model, slot))
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
          keep(member)
          deleteAny(member)
          if deleted.contains(member) { gone.append(member) }
        }
      case .nullify:
        guard let inverse = storage.inverse(ofSlot: slot) else { continue }
        for member in living {
          keep(member)
          member._modelStorage.unlink(
            model, at: inverse.slot, isToOne: inverse.isToOne, of: member)
        }
      }
    }
    return gone
  }

  /// Whether a member in memory still belongs to a model whose row others have deleted. They may have moved it before.
  private func isStillMember(
    _ member: any PersistentModel, of model: any PersistentModel, _ slot: Int
  ) -> Bool {
    guard let inverse = model._modelStorage.inverse(ofSlot: slot) else {
      return inserted.contains(member)
    }
    return !inverse.isToOne || member._modelStorage.toOne(at: inverse.slot) === model
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

  /// Deletes the members of new models that were deleted before this save, unless they have another owner by now.
  ///
  /// - Returns: Those with rows.
  @discardableResult
  private func deleteOrphans() -> [any PersistentModel] {
    var gone: [any PersistentModel] = []
    while !orphans.isEmpty {
      for orphan in orphans.takeAll() where isLeftAlone(orphan) {
        deleteAny(orphan.model)
        if deleted.contains(orphan.model) { gone.append(orphan.model) }
      }
    }
    return gone
  }

  private func isLeftAlone(_ orphan: Orphan) -> Bool {
    let storage = orphan.model._modelStorage
    if storage.isDeleted { return false }
    keep(orphan.model)
    guard let inverse = orphan.inverse else {
      return oneSidedReferences(to: orphan.model).isEmpty
    }
    return inverse.isToOne || storage.toMany(at: inverse.slot).isEmpty
  }

  /// Keeps a model as it is, if the delete rules of a save run: they are about to read or change it.
  private func keep(_ model: any PersistentModel) { beforeRules?.add(model, self) }

  /// Notes that a model got an owner, so that the save does not delete it.
  func noteOwner(of model: any PersistentModel, _ slot: Int) {
    orphans.remove(model, slot)
  }

  // MARK: Of a new model

  /// Removes a new model from all relationships, because nobody can save a link to it any more. Members that it would
  /// delete wait for the save, which sees whether they have moved.
  func withdraw(_ model: any PersistentModel) {
    let storage = model._modelStorage
    for slot in storage.descriptor.properties.indices {
      guard case .relationship(let relationship) = storage.descriptor.properties[slot].kind
      else { continue }
      let members = storage.related(at: slot, relationship)
      let inverse = storage.inverse(ofSlot: slot)
      let isCascade = relationship.metadata.deleteRule == .cascade
      for member in members {
        // Without an inverse, an owner that is not in memory may have a saved member.
        if isCascade, inverse != nil || !member._modelStorage.hasRow {
          orphans.append(Orphan(model: member, inverse: inverse))
        }
        // A required reference has no other value. `save()` deletes the member, or reports it.
        guard let inverse, !isRequired(inverse, of: member) else { continue }
        keep(member)
        member._modelStorage.unlink(
          model, at: inverse.slot, isToOne: inverse.isToOne, of: member)
      }
      storage.noteWillChange(slot)
      storage.slots[slot] = relationship.isToOne ? .null : .models(Members())
      storage.noteDidChange(slot)
    }
    for (owner, slot) in oneSidedReferences(to: model) {
      guard
        case .relationship(let relationship) = owner._modelStorage.descriptor.properties[slot].kind
      else { continue }
      keep(owner)
      owner._modelStorage.unlink(model, at: slot, isToOne: relationship.isToOne, of: owner)
    }
    oneSidedOwners?.forget(model)
  }

  func isRequired(
    _ inverse: ModelDescriptor.Inverse, of model: any PersistentModel
  ) -> Bool {
    guard let entity = entity(of: model._modelStorage) else { return false }
    return entity.references.contains { $0.slot == inverse.slot && !$0.isOptional }
  }

  /// Returns where unsaved changes reference a new model by a relationship without inverse.
  private func oneSidedReferences(to model: any PersistentModel) -> [OneSidedOwners.Owner] {
    let known = oneSidedOwners ?? findOneSidedOwners()
    oneSidedOwners = known
    return known.owners(of: model).filter { owner in
      let storage = owner.model._modelStorage
      return storage.context === self && !storage.isDeleted
        && storage.references(model, at: owner.slot)
    }
  }

  private func findOneSidedOwners() -> OneSidedOwners {
    var slots: [Int: [Int]] = [:]
    for entity in stores.entities {
      let own = entity.descriptor.properties.indices.filter { slot in
        guard case .relationship = entity.descriptor.properties[slot].kind else { return false }
        return stores.inverse(of: entity.descriptor, slot: slot) == nil
      }
      if !own.isEmpty { slots[entity.position] = own }
    }
    var owners = OneSidedOwners()
    if slots.isEmpty { return owners }
    for owner in inserted.all + changed.all {
      let storage = owner._modelStorage
      for slot in entity(of: storage).flatMap({ slots[$0.position] }) ?? [] {
        owners.note(storage.membersInMemory(at: slot), of: (owner, slot))
      }
    }
    return owners
  }
}

extension ModelStorage {
  /// Returns the models that a relationship of either kind references.
  fileprivate func related(
    at slot: Int, _ relationship: Schema.PropertyMetadata.RelationshipKind
  ) -> [any PersistentModel] {
    relationship.isToOne ? toOne(at: slot).map { [$0] } ?? [] : toMany(at: slot)
  }

  /// Returns the models of a relationship that are in memory.
  fileprivate func membersInMemory(at slot: Int) -> [any PersistentModel] {
    switch slots[slot] {
    case .model(let model): [model]
    case .models(let members): members.all
    default: []
    }
  }

  /// Whether a model in memory is in a relationship.
  fileprivate func references(_ model: any PersistentModel, at slot: Int) -> Bool {
    switch slots[slot] {
    case .model(let other): other === model
    case .models(let members): members.contains(model)
    default: false
    }
  }
}
