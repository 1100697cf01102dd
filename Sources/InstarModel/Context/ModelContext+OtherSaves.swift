import InstarStore

/// Applies the saves of other contexts, containers and processes before this context reads or saves.
///
/// A model without unsaved changes is read again; of a changed model only the values that were not changed here, and
/// after the save the members that were assigned. A model that was deleted elsewhere is detached, unless it has changes
/// here: then `save()` throws, and `rollback()` detaches it.
extension ModelContext {
  /// Applies the saves of other contexts on the same connection.
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

  /// Applies the commits of other connections and processes that SQLite noticed during the last statements.
  ///
  /// - Returns: Whether there were any. Models that were just read may then have old values.
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

  /// Reads the models in memory again after a statement of the plan, which may have changed any row.
  func readAgain(_ store: ModelStore) throws {
    if store.connection.saves.hasOthers {
      store.connection.saves.note(nil, by: ObjectIdentifier(self))
    }
    take(try rowsInMemory(of: store), of: store)
  }

  private func take(_ rows: SaveLog.Rows, of store: ModelStore) {
    let living = registeredModels
    for (root, models) in zip(stores.entities, living)
    where root.store === store && !models.isEmpty {
      let table = root.layout.table
      let changed = rows.changed[table] ?? []
      let deleted = rows.deleted[table] ?? []
      for model in models {
        let storage = model._modelStorage
        if deleted.contains(storage.key) {
          guard storage.hasChanges else {
            forget(storage)
            Self.detach(storage)
            continue
          }
          storage.hasLostRow = true
        }
        guard storage.hasRowInMemory else { continue }
        storage.unloadMembers()
        if changed.contains(storage.key), let entity = entity(of: storage) {
          storage.unloadValues(of: entity)
        }
      }
    }
    withExtendedLifetime(living) {}
    readFormerModelsAgain()
  }

  /// Returns all rows that this context has in memory: as changed if they exist, else as deleted.
  private func rowsInMemory(of store: ModelStore) throws -> SaveLog.Rows {
    var rows = SaveLog.Rows()
    for (root, models) in zip(stores.entities, registered)
    where root.store === store && !models.isEmpty {
      let table = root.layout.table
      let known = models.keys
      let living = try keys(known, of: root)
      rows.changed[table, default: []].formUnion(living)
      rows.deleted[table, default: []].formUnion(Set(known).subtracting(living))
    }
    return rows
  }

  private func keys(
    _ keys: some Collection<Int64>, of entity: ModelEntity
  ) throws -> Set<Int64> {
    let key = entity.layout.key.reading.sql("t0")
    let sql = "SELECT \(key) FROM \(entity.layout.table) AS t0 WHERE \(key) IN \(Self.listed)"
    return Set(try integers(sql, [Self.list(keys)], entity))
  }
}

extension ModelStorage {
  /// Makes the next access read the members of unchanged to-many relationships again, and the first one after the save
  /// those of changed ones.
  fileprivate func unloadMembers() {
    for slot in slots.indices {
      guard case .models = slots[slot] else { continue }
      if changedSlots.contains(slot) {
        hasOutdatedMembers = true
      } else {
        slots[slot] = .unloaded
      }
    }
  }

  /// Makes the next access read unchanged values again.
  fileprivate func unloadValues(of entity: ModelEntity) {
    if state == .loaded, changedSlots.isEmpty {
      state = .fault
      return
    }
    for slot in entity.columnSlots where !changedSlots.contains(slot) { slots[slot] = .unloaded }
  }
}
