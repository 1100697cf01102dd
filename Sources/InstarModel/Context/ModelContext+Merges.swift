import InstarSchema
import InstarStore

// Rows that give way to a new model with their unique values, beside the row that it takes.

extension ModelContext {
  /// The models of a context before a save changes them: before rows give way to new ones, or before the delete rules.
  /// If the save then fails, the models are again as they were: the app may change a value and save once more.
  struct UnsavedChanges {
    private let inserted: [any PersistentModel]
    private let changed: [any PersistentModel]
    private let deleted: [any PersistentModel]
    private let held: [ObjectIdentifier: any PersistentModel]
    private let orphans: Orphans
    private let oneSidedOwners: OneSidedOwners?
    private let isWhole: Bool
    private var models: [Model] = []
    private var registered: [any PersistentModel] = []
    private var added: Set<ObjectIdentifier> = []
    private let lastSeenSaves: [Int]
    private let lastSeenCommitsOfOthers: [Int]

    private struct Model {
      let model: any PersistentModel
      let state: ModelStorage.State
      let slots: ContiguousArray<Slot>
      let changedSlots: SlotSet
      let savedMembers: [Int: Set<Int64>]
      let pendingMembers: [Int: ModelStorage.PendingMembers]

      init(_ model: any PersistentModel) {
        let storage = model._modelStorage
        self.model = model
        state = storage.state
        // Lists of members are changed in place.
        slots = ContiguousArray(
          storage.slots.map { slot in
            if case .models(let members) = slot { .models(Members(members.all)) } else { slot }
          })
        changedSlots = storage.changedSlots
        savedMembers = storage.savedMembers
        pendingMembers = storage.pendingMembers.mapValues { .init(copying: $0) }
      }

      func restore(in context: ModelContext) {
        let storage = model._modelStorage
        storage.announcingAllChanges {
          storage.context = context
          storage.state = state
          storage.slots = slots
          storage.changedSlots = changedSlots
          storage.savedMembers = savedMembers
          storage.pendingMembers = pendingMembers
        }
        // Only the merge had changed it, and others have deleted its row since.
        if storage.hasLostRow, !storage.hasChanges { ModelContext.detach(storage) }
      }
    }

    /// - Parameter isWhole: Whether to keep all models in memory at once. Otherwise it keeps those that are added.
    init(of context: ModelContext, isWhole: Bool = true) {
      self.isWhole = isWhole
      inserted = context.inserted.all
      changed = context.changed.all
      deleted = context.deleted.all
      held = context.held
      orphans = context.orphans
      oneSidedOwners = context.oneSidedOwners
      lastSeenSaves = context.lastSeenSaves
      lastSeenCommitsOfOthers = context.lastSeenCommitsOfOthers
      guard isWhole else { return }
      let rows = context.modelsOfRows
      registered = context.registeredModels.flatMap { $0 }
      models = (inserted + Members.withoutRepetition(rows + changed + deleted)).map(Model.init)
    }

    /// Keeps a model that is about to change, unless it was added before.
    mutating func add(_ model: any PersistentModel, _ context: ModelContext) {
      guard added.insert(ObjectIdentifier(model)).inserted else { return }
      models.append(Model(model))
      let storage = model._modelStorage
      if storage.hasRow, let entity = context.entity(of: storage),
        context.registeredStorage(entity, storage.key) === storage
      {
        registered.append(model)
      }
    }

    func restore(in context: ModelContext) {
      let known = Set(models.map { ObjectIdentifier($0.model) })
      let living = context.modelsOfRows
      // Models that were read since have no changes of the app.
      for model in living where isWhole && !known.contains(ObjectIdentifier(model)) {
        let storage = model._modelStorage
        storage.announcingAllChanges {
          storage.state = .fault
          storage.changedSlots.removeAll()
          storage.pendingMembers.removeAll()
        }
      }
      for model in models { model.restore(in: context) }
      // Those whose rows others have deleted since were forgotten. The context sees these deletions once more, except
      // those of changed models: another row may have their keys.
      for storage in registered.map(\._modelStorage) where !storage.hasLostRow {
        if let entity = context.entity(of: storage) { context.register(storage, entity) }
      }
      context.clearing {
        context.inserted.removeAll()
        context.changed.removeAll()
        context.deleted.removeAll()
        for model in inserted { context.inserted.insert(model) }
        for model in changed { context.changed.insert(model) }
        for model in deleted { context.deleted.insert(model) }
        context.held = held
        context.orphans = orphans
        context.oneSidedOwners = oneSidedOwners
      }
      // The models are as old as then.
      context.lastSeenSaves = lastSeenSaves
      context.lastSeenCommitsOfOthers = lastSeenCommitsOfOthers
      withExtendedLifetime(living) {}
    }
  }

  /// Deletes rows that have unique values of new models beside the rows that these take. The members of their to-many
  /// relationships become members of the new models.
  ///
  /// - Throws: `modelValidationFailure` if a model would lose its required owner. Then nothing has changed.
  func merge(_ rows: [ModelSave.RowsToMerge.Row]) throws {
    let new = inserted.all.keyed { ObjectIdentifier($0) }
    let pairs = rows.map { row in
      (model(of: stores.entities[root(of: row.entity)], key: row.key), row)
    }
    for (former, row) in pairs { try requireNoRequiredOwner(former, row) }
    var successors: [ObjectIdentifier: any PersistentModel] = [:]
    for (former, row) in pairs { successors[ObjectIdentifier(former)] = new[row.model] }
    let moved = movedMembers { _ in true }
    try moveReferences(to: rows, successors)
    try moveMemberships(of: rows, successors, moved)
    for (former, row) in pairs {
      if let new = new[row.model] { moveMembers(of: former, to: new, moved) }
      // The save has deleted it already, and found it once more.
      if former._modelStorage.state == .deleted {
        throw InstarError(
          .invalidModel, "cannot save a new \(row.entity.layout.name)",
          cause:
            "\(row.entity.layout.name) \(row.key) has its unique value, and a trigger of table \(row.entity.layout.table) keeps the row from being deleted",
          state: "unchanged", next: "give one of the models another unique value, then save again")
      }
      deleteAny(former)
      // The save asks for a merge until no row has the values, so it must not go on with one that stays.
      guard former._modelStorage.state == .deleted else {
        throw InstarError(
          .storeChanged, "cannot save a new \(row.entity.layout.name)",
          cause:
            "\(row.entity.layout.name) \(row.key) has its unique value; it was deleted, and another context or process inserted it again",
          state: "unchanged", next: "save in a new context")
      }
    }
    try throwDeferredError()
  }

  private func requireNoRequiredOwner(
    _ former: any PersistentModel, _ row: ModelSave.RowsToMerge.Row
  ) throws {
    let storage = former._modelStorage
    storage.fill()
    for reference in entity(of: storage)?.references ?? [] {
      guard let inverse = storage.inverse(ofSlot: reference.slot), inverse.isToOne,
        let other = storage.toOne(at: reference.slot), !other._modelStorage.isDeleted,
        isRequired(inverse, of: other)
      else { continue }
      throw ModelSave.wouldLose(
        inverse, of: other._modelStorage.title, row.entity.layout.name, row.key)
    }
  }

  /// Makes the models that reference rows by relationships without inverse reference the new models.
  ///
  /// - Parameter successors: The new models by the former ones.
  private func moveReferences(
    to rows: [ModelSave.RowsToMerge.Row], _ successors: [ObjectIdentifier: any PersistentModel]
  ) throws {
    let keys = Dictionary(grouping: rows) { root(of: $0.entity) }.mapValues { $0.map(\.key) }
    let unsaved = Dictionary(grouping: inserted.all + changedModelsArray) {
      $0._modelStorage.entity?.position
    }
    for entity in stores.entities {
      for reference in entity.references {
        guard stores.inverse(of: entity.descriptor, slot: reference.slot) == nil,
          case .toOne(let column, _, _, _) = entity.slots[reference.slot],
          let target = stores.entity(named: reference.destination),
          let keys = keys[root(of: target)]
        else { continue }
        let layout = entity.layout
        let owners = try integers(
          "SELECT \(layout.key.reading.sql("t0")) FROM \(layout.table) AS t0 "
            + "WHERE \(column.reading.sql("t0")) IN \(Self.listed)", [Self.list(keys)], entity)
        let rootEntity = stores.entities[root(of: entity)]
        for owner in owners.map({ model(of: rootEntity, key: $0) })
          + (unsaved[entity.position] ?? [])
        {
          let storage = owner._modelStorage
          guard storage.descriptor.inherits(from: entity.descriptor), !storage.isDeleted,
            let former = storage.toOne(at: reference.slot),
            let new = successors[ObjectIdentifier(former)]
          else { continue }
          storage.setToOne(new, at: reference.slot, of: owner)
        }
      }
    }
  }

  /// Puts the new models into the to-many relationships without inverse that have the rows.
  ///
  /// - Parameter moved: The members that the save gives to other owners.
  private func moveMemberships(
    of rows: [ModelSave.RowsToMerge.Row], _ successors: [ObjectIdentifier: any PersistentModel],
    _ moved: MovedMembers
  ) throws {
    let rows = Dictionary(grouping: rows) { root(of: $0.entity) }
    for entity in stores.entities {
      for slot in entity.toManySlots {
        guard stores.inverse(of: entity.descriptor, slot: slot) == nil,
          case .toMany(let relationship) = entity.slots[slot],
          let target = stores.entity(named: relationship.relationship.destination),
          let rows = rows[root(of: target)]
        else { continue }
        func isOwner(_ model: any PersistentModel) -> Bool {
          let storage = model._modelStorage
          return storage.descriptor.inherits(from: entity.descriptor) && !storage.isDeleted
        }
        let unsaved = (inserted.all + changedModelsArray).filter {
          isOwner($0) && $0._modelStorage.hasMembersInMemory(at: slot)
        }
        let moved = OneSidedKey(entity.slots[slot]).flatMap { moved[$0] } ?? [:]
        var owned: Set<ObjectIdentifier>?
        if case .foreignKey(let reference) = relationship.location {
          owned = try ownedModels(rows, reference, target, entity, slot, unsaved, moved)
        }
        func replaceRows(of owner: any PersistentModel) {
          let members = members(of: owner, at: slot)
          let replaced = members.compactMap { member -> (any PersistentModel)? in
            guard let new = successors[ObjectIdentifier(member)] else { return member }
            // The save gives the row to another owner, and nothing tells the array of this one.
            if leaves(owner, member, moved) { return nil }
            return owned?.insert(ObjectIdentifier(new)).inserted == false ? nil : new
          }
          owner._modelStorage.setToMany(MixedModels(replaced), at: slot, of: owner)
        }
        let rootEntity = stores.entities[root(of: entity)]
        let keys = try owners(of: rows, entity, relationship, target)
        for owner in keys.map({ model(of: rootEntity, key: $0) }) where isOwner(owner) {
          replaceRows(of: owner)
        }
        for owner in unsaved {
          let members = owner._modelStorage.toMany(at: slot)
          if members.contains(where: { successors[ObjectIdentifier($0)] != nil }) {
            replaceRows(of: owner)
          }
        }
      }
    }
  }

  /// Returns the keys of the owners of rows.
  private func owners(
    of rows: [ModelSave.RowsToMerge.Row], _ entity: ModelEntity,
    _ relationship: EntityLayout.RelationshipStorage, _ target: ModelEntity
  ) throws -> [Int64] {
    let links: String
    switch relationship.location {
    case .column: return []
    case .foreignKey(let reference):
      links =
        "SELECT \(reference.reading.sql("t0")) FROM \(target.layout.table) AS t0 "
        + "WHERE \(target.layout.key.reading.sql("t0")) IN \(Self.listed)"
    case .joinTable(let name, let own, let other):
      links =
        "SELECT \(own.reading.sql("j")) FROM \(name) AS j "
        + "WHERE \(other.reading.sql("j")) IN \(Self.listed)"
    }
    let key = entity.layout.key.reading.sql("o")
    return try integers(
      "SELECT \(key) FROM \(entity.layout.table) AS o WHERE \(key) IN (\(links))",
      [Self.list(rows.map(\.key))], entity)
  }

  /// Returns the new models with an owner: one that the app gave them, or that of the row that they take. They stay
  /// with it, because a row has one.
  ///
  /// - Parameters:
  ///   - unsaved: The owners with members in memory that are new or changed.
  ///   - moved: The members that the save gives to other owners.
  private func ownedModels(
    _ rows: [ModelSave.RowsToMerge.Row], _ reference: ForeignKey, _ target: ModelEntity,
    _ entity: ModelEntity, _ slot: Int, _ unsaved: [any PersistentModel],
    _ moved: [ObjectIdentifier: ObjectIdentifier]
  ) throws -> Set<ObjectIdentifier> {
    var owned: Set<ObjectIdentifier> = []
    // By the key of their owner, the rows that lose it with this save.
    var lost: [Int64: Set<Int64>] = [:]
    for owner in unsaved {
      let storage = owner._modelStorage
      let members = storage.toMany(at: slot)
      owned.formUnion(members.map { ObjectIdentifier($0) })
      guard storage.hasRow, let saved = storage.savedMembers[slot] else { continue }
      lost[storage.key] = saved.subtracting(Self.keys(of: members))
    }
    let owners = try storedOwners(of: rows.map(\.keptKey), reference, target)
    for row in rows {
      let kept = registeredStorage(target, row.keptKey)?.model
      if let kept, moved[ObjectIdentifier(kept)] != nil {
        owned.insert(row.model)
      } else if let owner = owners[row.keptKey], lost[owner]?.contains(row.keptKey) != true,
        registeredStorage(entity, owner)?.state != .deleted
      {
        owned.insert(row.model)
      }
    }
    return owned
  }

  /// Returns the keys of the owners that rows reference, by the keys of the rows.
  private func storedOwners(
    of keys: [Int64], _ reference: ForeignKey, _ target: ModelEntity
  ) throws -> [Int64: Int64] {
    let (key, owner) = (target.layout.key.reading.sql("t0"), reference.reading.sql("t0"))
    return try target.store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(key), \(owner) FROM \(target.layout.table) AS t0 "
          + "WHERE \(key) IN \(Self.listed) AND \(owner) IS NOT NULL")
      statement.bind([Self.list(keys)])
      defer { statement.reset() }
      var owners: [Int64: Int64] = [:]
      while try statement.step() {
        owners[statement.integer(at: 0)] = statement.integer(at: 1)
      }
      return owners
    }
  }

  /// Gives the members of a row to a new model, and ends the other links of the row, so that its deletion does not
  /// reach them.
  ///
  /// - Parameter moved: The members that the save gives to other owners.
  private func moveMembers(
    of former: any PersistentModel, to new: any PersistentModel, _ moved: MovedMembers
  ) {
    let (from, to) = (former._modelStorage, new._modelStorage)
    for slot in from.descriptor.properties.indices {
      guard case .relationship(let relationship) = from.descriptor.properties[slot].kind
      else { continue }
      if relationship.isToOne {
        from.setToOne(nil, at: slot, of: former)
        continue
      }
      guard from.descriptor.shares(slot, with: to.descriptor) else { continue }
      let moved =
        entity(of: from).flatMap { OneSidedKey($0.slots[slot]) }.flatMap { moved[$0] } ?? [:]
      let members = members(of: former, at: slot).filter {
        !$0._modelStorage.isDeleted && !leaves(former, $0, moved)
      }
      to.setToMany(
        MixedModels(members + to.toMany(at: slot)), at: slot, of: new)
      from.setToMany(MixedModels([]), at: slot, of: former)
    }
  }

  /// Returns the members that a model has after the save: also those that others have added since the app assigned
  /// them, and without those that others have removed, because a save writes only differences. Members that were
  /// assigned are not read again.
  private func members(of model: any PersistentModel, at slot: Int) -> [any PersistentModel] {
    let storage = model._modelStorage
    let known = storage.toMany(at: slot)
    guard storage.changedSlots.contains(slot) else { return known }
    let saved = storage.savedMembers[slot] ?? []
    let stored = members(of: storage, slot: slot)
    if let inverse = storage.inverse(ofSlot: slot), inverse.isToOne {
      return Members.withoutRepetition(known + stored).filter {
        $0._modelStorage.toOne(at: inverse.slot) === model
      }
    }
    func isSaved(_ member: any PersistentModel) -> Bool {
      member._modelStorage.hasRow && saved.contains(member._modelStorage.key)
    }
    let present = Set(stored.map { ObjectIdentifier($0) })
    let kept = known.filter { !isSaved($0) || present.contains(ObjectIdentifier($0)) }
    return Members.withoutRepetition(kept + stored.filter { !isSaved($0) })
  }

  /// Whether the save gives a member to another owner.
  private func leaves(
    _ owner: any PersistentModel, _ member: any PersistentModel,
    _ moved: [ObjectIdentifier: ObjectIdentifier]
  ) -> Bool {
    moved[ObjectIdentifier(member)].map { $0 != ObjectIdentifier(owner._modelStorage) } ?? false
  }
}

extension ModelStorage {
  fileprivate func hasMembersInMemory(at slot: Int) -> Bool {
    if case .models = slots[slot] { true } else { false }
  }
}
