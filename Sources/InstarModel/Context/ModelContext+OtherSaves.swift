import InstarStore

/// What other contexts, containers and processes saved, taken over before this context reads or saves.
///
/// A model that has no unsaved changes is read again; of one that has, only the values that were not changed here. What was
/// deleted elsewhere is gone, unless it has changes here: then `save()` throws.
extension ModelContext {
  /// Takes over what other contexts on the same connection saved.
  func seeSavesOfOthers() throws {
    let log = store.connection.saves
    switch log.news(since: &lastSeenSave, for: ObjectIdentifier(self)) {
    case .nothing: break
    case .rows(let rows): take(rows)
    case .anything: take(try rowsInMemory())
    }
  }

  /// Takes over what other connections and processes saved, as far as a statement has met it: SQLite notices it when it
  /// reads.
  ///
  /// - Returns: `false` where there was nothing; else models that were just read may hold old values.
  func seeCommitsOfOthers() throws -> Bool {
    let count = store.connection.commitCountOfOthers
    guard count != lastSeenCommitOfOthers else { return false }
    lastSeenCommitOfOthers = count
    take(try rowsInMemory())
    return true
  }

  private func take(_ rows: SaveLog.Rows) {
    // All are held until the end: letting go of members may end models, of any entity.
    let living = registeredStorages
    for (position, storages) in living.enumerated() where !storages.isEmpty {
      let table = store.entities[position].layout.table
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

  /// All rows that this context has in memory, as if each had been changed, or deleted where it is gone.
  private func rowsInMemory() throws -> SaveLog.Rows {
    var rows = SaveLog.Rows()
    for (position, storages) in registered.enumerated() where !storages.isEmpty {
      let entity = store.entities[position].layout
      let table = entity.table
      let living = try keys(storages.keys, of: entity)
      rows.changed[table, default: []].formUnion(living)
      rows.deleted[table, default: []].formUnion(Set(storages.keys).subtracting(living))
    }
    return rows
  }

  private func keys(
    _ keys: some Collection<Int64>, of entity: EntityLayout
  ) throws -> Set<Int64> {
    let key = entity.key.reading.sql("t0")
    return try store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(key) FROM \(entity.table) AS t0 WHERE \(key) IN \(Self.listed)")
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
