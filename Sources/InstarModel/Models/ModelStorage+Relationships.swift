import InstarSchema

/// Keeps both sides of a relationship consistent in memory. `save()` writes them.
extension ModelStorage {
  func toOne(at slot: Int) -> (any PersistentModel)? {
    noteAccess(to: slot)
    if state == .fault { fill() }
    if case .unloaded = slots[slot] { context?.fillUnloadedValues(of: self) }
    switch slots[slot] {
    case .model(let model): return model
    case .key(let key):
      guard let model = context?.model(at: slot, of: self, key: key) else { return nil }
      context?.hasRelatedModels = true
      slots[slot] = .model(model)
      return model
    default: return nil
    }
  }

  /// Returns the members of a to-many relationship and reads them at the first access.
  func toMany(at slot: Int) -> [any PersistentModel] {
    noteAccess(to: slot)
    if state == .fault { fill() }
    switch slots[slot] {
    case .models(let members): return members.all
    case .unloaded:
      guard let context else { return [] }
      let models = context.members(of: self, slot: slot)
      context.hasRelatedModels = true
      slots[slot] = .models(Members(models))
      return models
    default: return []
    }
  }

  /// Returns the list of a to-many relationship, an empty one if the slot has none.
  private func members(at slot: Int) -> Members {
    let models = toMany(at: slot)
    if case .models(let members) = slots[slot] { return members }
    return Members(models)
  }

  /// Returns the members of a to-many relationship as the class that the property is declared with.
  func toMany<Destination: PersistentModel>(
    _ type: Destination.Type, at slot: Int
  ) -> [Destination] {
    let models = toMany(at: slot)
    if case .models(let members) = slots[slot], let array = members.takeArray(of: type) {
      return array
    }
    return models.compactMap { declared($0, at: slot) }
  }

  func setToOne(_ new: (any PersistentModel)?, at slot: Int, of model: any PersistentModel) {
    let old = toOne(at: slot)
    if old === new { return }
    if let new, !joinContexts(of: model, with: [new], at: slot) { return }
    replaceToOne(new, at: slot, of: model)
    guard let inverse = inverse(ofSlot: slot) else {
      if let new { context?.oneSidedOwners?.note([new], of: (model, slot)) }
      return
    }
    if let old {
      old._modelStorage.unlink(model, at: inverse.slot, isToOne: inverse.isToOne, of: old)
    }
    if let new {
      new._modelStorage.link(
        model, at: inverse.slot, isToOne: inverse.isToOne, of: new, forwardSlot: slot)
    }
  }

  /// Sets a to-many relationship. Models that cannot be in the context of this one are left out, and the context's next
  /// fetch or save throws.
  func setToMany(_ new: any ModelList, at slot: Int, of model: any PersistentModel) {
    var new = new
    let members = members(at: slot)
    var difference = members.difference(to: new)
    if !joinContexts(of: model, with: difference.added, at: slot), let context {
      new = MixedModels(new.models.filter { !context.isOfAnotherContext($0) })
      difference = members.difference(to: new)
    }
    noteWillChange(slot)
    // Inserting the added models into the context may have added others.
    if !members.isCurrent(difference) { difference = members.difference(to: new) }
    members.assign(new, difference)
    slots[slot] = .models(members)
    noteDidChange(slot)
    if difference.added.isEmpty, difference.removed.isEmpty {
      // A new order is a change only if the relationship is ordered.
      if difference.isReordered, descriptor.isOrdered(slot) { markChanged(slot, of: model) }
      return
    }
    noteMembers(
      added: difference.added, removed: difference.removed, at: slot, of: model)
  }

  /// Marks the change of a to-many relationship, and makes it in the inverse.
  private func noteMembers(
    added: [any PersistentModel], removed: [any PersistentModel], at slot: Int,
    of model: any PersistentModel
  ) {
    // From here to the save the members are not read again.
    pendingMembers[slot] = nil
    markChanged(slot, of: model)
    guard let inverse = inverse(ofSlot: slot) else {
      context?.oneSidedOwners?.note(added, of: (model, slot))
      return
    }
    for other in removed {
      other._modelStorage.unlink(model, at: inverse.slot, isToOne: inverse.isToOne, of: other)
    }
    for other in added {
      other._modelStorage.link(
        model, at: inverse.slot, isToOne: inverse.isToOne, of: other, forwardSlot: slot)
    }
  }

  /// Returns the inverse of a relationship, among the models of the context if there is one.
  func inverse(ofSlot slot: Int) -> ModelDescriptor.Inverse? {
    context.map { $0.stores.inverse(of: descriptor, slot: slot) }
      ?? descriptor.inverse(ofSlot: slot)
  }

  /// Returns a related model as the class that the property is declared with.
  ///
  /// In a version that has another class of the entity it has no value. The context's next fetch or save then throws.
  func declared<Destination: PersistentModel>(
    _ model: any PersistentModel, at slot: Int
  ) -> Destination? {
    // Nearly always so, and much faster than a cast.
    if type(of: model) == Destination.self { return unsafeDowncast(model, to: Destination.self) }
    if let model = model as? Destination { return model }
    let (declared, used) = ModelDescriptor.names(
      of: Destination._modelDescriptor, and: model._modelStorage.descriptor)
    let name = descriptor.properties[slot].name
    context?.note(
      InstarError(
        .modelNotInSchema, "cannot read \(descriptor.name).\(name)",
        cause: "the property is declared with \(declared); in this version it references \(used)",
        next:
          "follow the relationship from \(used), or declare \(descriptor.name) in this version too"
      ))
    return nil
  }

  /// Inserts new models into the context of the model that they are related to.
  ///
  /// - Returns: Whether that context has them all. It cannot save links to models of another one, so the next fetch or
  ///   save throws.
  private func joinContexts(
    of model: any PersistentModel, with others: [any PersistentModel], at slot: Int
  ) -> Bool {
    if let context {
      for other in others where other._modelStorage.context == nil { context.insertAny(other) }
    } else if state == .detached,
      let context = others.lazy.compactMap({ $0._modelStorage.context }).first
    {
      context.insertAny(model)
    }
    guard let context, let foreign = others.first(where: context.isOfAnotherContext) else {
      return true
    }
    noteForeign(foreign, at: slot)
    return false
  }

  /// Removes a model of another context that an initializer has set.
  func removeForeign(_ other: any PersistentModel, at slot: Int) {
    noteForeign(other, at: slot)
    if case .models(let members) = slots[slot] {
      members.remove(other)
    } else {
      slots[slot] = .null
    }
  }

  private func noteForeign(_ other: any PersistentModel, at slot: Int) {
    let name = descriptor.properties[slot].name
    context?.note(
      InstarError(
        .invalidModel, "cannot set '\(name)' of \(title)",
        cause: "\(other._modelStorage.title) belongs to another context",
        next: "fetch that model with the context of this one, and set '\(name)' to what it returns")
    )
  }

  private func replaceToOne(
    _ new: (any PersistentModel)?, at slot: Int, of model: any PersistentModel
  ) {
    if new != nil { context?.noteOwner(of: model, slot) }
    noteWillChange(slot)
    slots[slot] = new.map { .model($0) } ?? .null
    markChanged(slot, of: model)
    noteDidChange(slot)
  }

  /// Sets the inverse side of a link from `other` to `model`, the model of this storage.
  func link(
    _ other: any PersistentModel, at slot: Int, isToOne: Bool, of model: any PersistentModel,
    forwardSlot: Int
  ) {
    if isToOne {
      let previous = toOne(at: slot)
      if previous === other { return }
      replaceToOne(other, at: slot, of: model)
      // Removes the model from the relationship of its previous owner.
      if let previous {
        previous._modelStorage.unlinkForward(model, at: forwardSlot, of: previous)
      }
      return
    }
    if state == .fault { fill() }
    noteWillChange(slot)
    defer { noteDidChange(slot) }
    switch slots[slot] {
    case .models(let members):
      if members.append(other) { noteAdded(other, at: slot, of: model) }
    case .unloaded:
      noteAdded(other, at: slot, of: model)
    case .null:
      slots[slot] = .models(Members([other]))
    default: break
    }
  }

  /// Removes `other` from the inverse side; `model` is the model of this storage.
  func unlink(
    _ other: any PersistentModel, at slot: Int, isToOne: Bool, of model: any PersistentModel
  ) {
    if isToOne {
      if toOne(at: slot) === other { replaceToOne(nil, at: slot, of: model) }
      return
    }
    if state == .fault { fill() }
    noteWillChange(slot)
    defer { noteDidChange(slot) }
    switch slots[slot] {
    case .models(let members):
      members.remove(other)
      noteRemoved(other, at: slot, of: model)
    case .unloaded:
      noteRemoved(other, at: slot, of: model)
    default: break
    }
  }

  /// Keeps a change from the other side apart from the members, because they may be read again before the next save:
  /// those of a deleted model too, for its delete rules.
  private func noteAdded(
    _ other: any PersistentModel, at slot: Int, of model: any PersistentModel
  ) {
    guard hasRowInMemory else { return }
    context?.hold(model)
    let pending = pendingMembers(at: slot)
    _ = pending.added.append(other)
    pending.removed.remove(other)
  }

  private func noteRemoved(
    _ other: any PersistentModel, at slot: Int, of model: any PersistentModel
  ) {
    guard hasRowInMemory else { return }
    context?.hold(model)
    let pending = pendingMembers(at: slot)
    _ = pending.removed.append(other)
    pending.added.remove(other)
  }

  /// Notes that the changes from the other sides are in the store. The next save of this side compares with them: else
  /// it would write a link again, or would not see that one is gone.
  func notePendingMembersSaved() {
    for (slot, pending) in pendingMembers where savedMembers[slot] != nil {
      savedMembers[slot]?.subtract(ModelContext.keys(of: pending.removed.all))
      savedMembers[slot]?.formUnion(ModelContext.keys(of: pending.added.all))
    }
    pendingMembers.removeAll()
  }

  private func pendingMembers(at slot: Int) -> PendingMembers {
    if let pending = pendingMembers[slot] { return pending }
    let pending = PendingMembers()
    pendingMembers[slot] = pending
    return pending
  }

  private func unlinkForward(
    _ other: any PersistentModel, at slot: Int, of model: any PersistentModel
  ) {
    guard case .relationship(let relationship) = descriptor.properties[slot].kind else { return }
    unlink(other, at: slot, isToOne: relationship.isToOne, of: model)
  }
}
