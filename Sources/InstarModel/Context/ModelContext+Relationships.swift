import InstarSchema
import InstarStore

/// Reads related models.
extension ModelContext {
  /// Returns the model that a to-one relationship references.
  func model(at slot: Int, of storage: ModelStorage, key: Int64) -> (any PersistentModel)? {
    guard let entity = entity(of: storage),
      case .toOne(_, let destination, _, _) = entity.slots[slot],
      let target = stores.entity(named: destination)
    else { return nil }
    return model(of: target, key: key)
  }

  /// Returns the members of a to-many relationship: those in the store, with the pending changes from the other side.
  func members(of storage: ModelStorage, slot: Int) -> [any PersistentModel] {
    guard let entity = entity(of: storage), case .toMany(let relationship) = entity.slots[slot],
      let target = stores.entity(named: relationship.relationship.destination)
    else { return [] }
    let reader = stores.reader(of: target)
    let columns = reader.columns(alias: "t")
    let table = target.layout.table
    let key = target.layout.key.reading.sql("t")
    // Another row may have the key.
    if storage.hasLostRow { return membersAsInMemory([], of: storage, slot: slot, relationship) }
    do {
      let models: [any PersistentModel]
      switch relationship.location {
      case .column: return []
      case .foreignKey(let reference):
        models = try rows(
          "SELECT \(columns) FROM \(table) AS t WHERE \(reference.condition("t", equals: "?1")) "
            + relationship.order("t", key: key),
          reader, [.key(storage.key)])
      case .joinTable(let name, let own, let other):
        models = try rows(
          "SELECT \(columns) FROM \(name) AS j JOIN \(table) AS t ON \(other.condition("j", refersTo: "t")) "
            + "WHERE \(own.condition("j", equals: "?1")) \(relationship.order("j", key: key))",
          reader, [.key(storage.key)])
      }
      return membersAsInMemory(models, of: storage, slot: slot, relationship)
    } catch {
      note(error)
      return []
    }
  }

  /// Returns members from the store, with the pending changes from the other side.
  func membersAsInMemory(
    _ stored: [any PersistentModel], of storage: ModelStorage, slot: Int,
    _ relationship: EntityLayout.RelationshipStorage
  ) -> [any PersistentModel] {
    var models = stored
    if relationship.isSavedFromHere {
      let keys = Self.keys(of: models)
      // A join table without a key may have a link twice.
      if keys.count < models.count { models = Members.withoutRepetition(models) }
      storage.savedMembers[slot] = keys
    }
    // Kept until the next save, because the members may be read again before.
    if let pending = storage.pendingMembers[slot] {
      models.removeAll { pending.removed.contains($0) }
      let present = Set(models.map { ObjectIdentifier($0) })
      models += pending.added.all.filter { !present.contains(ObjectIdentifier($0)) }
    }
    models.removeAll { $0._modelStorage.state == .deleted }
    return models
  }

  static func keys(of models: [any PersistentModel]) -> Set<Int64> {
    Set(models.lazy.map(\._modelStorage).filter(\.hasRow).map(\.key))
  }
}
