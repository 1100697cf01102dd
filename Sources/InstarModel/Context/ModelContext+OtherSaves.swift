import InstarStore

/// What other contexts, containers and processes saved, taken over before this context reads or saves.
///
/// A model that has no unsaved changes is read again; of one that has, only the values that were not changed here. What was
/// deleted elsewhere is gone, unless it has changes here: then `save()` throws.
extension ModelContext {
  /// Takes over what other contexts on the same connection saved.
  func seeSavesOfOthers() throws {
    for (position, store) in stores.all.enumerated() {
      let log = store.connection.saves
      switch log.news(since: &lastSeenSaves[position], for: ObjectIdentifier(self)) {
      case .nothing: break
      case .rows(let rows): take(rows, of: store)
      case .anything: take(try rowsInMemory(of: store), of: store)
      }
    }
  }

  /// Takes over what other connections and processes saved, as far as a statement has met it: SQLite notices it when it
  /// reads.
  ///
  /// - Returns: `false` where there was nothing; else models that were just read may hold old values.
  func seeCommitsOfOthers() throws -> Bool {
    var isAny = false
    for (position, store) in stores.all.enumerated() {
      let count = store.connection.commitCountOfOthers
      guard count != lastSeenCommitsOfOthers[position] else { continue }
      lastSeenCommitsOfOthers[position] = count
      take(try rowsInMemory(of: store), of: store)
      isAny = true
    }
    return isAny
  }

  private func take(_ rows: SaveLog.Rows, of store: ModelStore) {
    // All are held until the end: letting go of members may end models, of any entity.
    let living = registeredStorages
    for (root, storages) in zip(stores.entities, living)
    where root.store === store && !storages.isEmpty {
      let table = root.layout.table
      let changed = rows.changed[table] ?? []
      let deleted = rows.deleted[table] ?? []
      for storage in storages {
        if deleted.contains(storage.key), !storage.hasChanges {
          forget(storage)
          Self.detach(storage)
          continue
        }
        guard storage.state == .loaded else { continue }
        storage.unloadMembers()
        if changed.contains(storage.key), let entity = entity(of: storage) {
          storage.unloadValues(of: entity)
        }
      }
    }
    withExtendedLifetime(living) {}
  }

  /// All rows of a store that this context has in memory, as if each had been changed, or deleted where it is gone.
  private func rowsInMemory(of store: ModelStore) throws -> SaveLog.Rows {
    var rows = SaveLog.Rows()
    for (root, storages) in zip(stores.entities, registered)
    where root.store === store && !storages.isEmpty {
      let table = root.layout.table
      let living = try keys(storages.keys, of: root)
      rows.changed[table, default: []].formUnion(living)
      rows.deleted[table, default: []].formUnion(Set(storages.keys).subtracting(living))
    }
    return rows
  }

  private func keys(
    _ keys: some Collection<Int64>, of entity: ModelEntity
  ) throws -> Set<Int64> {
    let key = entity.layout.key.reading.sql("t0")
    return try entity.store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(key) FROM \(entity.layout.table) AS t0 WHERE \(key) IN \(Self.listed)")
      statement.bind([Self.list(keys)])
      defer { statement.reset() }
      var found: Set<Int64> = []
      while try statement.step() { found.insert(statement.integer(at: 0)) }
      return found
    }
  }
}

extension ModelStorage {
  /// Has the members of to-many relationships read again that were not set here.
  fileprivate func unloadMembers() {
    for slot in slots.indices where !changedSlots.contains(slot) {
      if case .models = slots[slot] { slots[slot] = .unloaded }
    }
  }

  /// Has the values read again that were not changed here.
  fileprivate func unloadValues(of entity: ModelEntity) {
    guard !changedSlots.isEmpty else {
      state = .fault
      return
    }
    for slot in entity.columnSlots where !changedSlots.contains(slot) { slots[slot] = .unloaded }
  }
}
