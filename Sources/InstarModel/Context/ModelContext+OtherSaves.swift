import InstarStore

/// Applies the saves of other contexts, containers and processes before this context reads or saves.
///
/// A model without unsaved changes is read again. Of a changed model, only unchanged values are read again. Assigned
/// members are read again after the save. A model that was deleted elsewhere is detached, unless it has changes here:
/// then `save()` throws, and `rollback()` detaches it. Until then it is not the model of its row, because another row
/// may get its key, and no fetch returns it.
extension ModelContext {
  /// Whether others have saved since this context looked, as far as the connections know.
  var hasUnseenSaves: Bool {
    stores.all.indices.contains { position in
      let connection = stores.all[position].connection
      return connection.saves.newest != lastSeenSaves[position]
        || connection.commitCountOfOthers != lastSeenCommitsOfOthers[position]
    }
  }

  /// Applies the saves of other contexts on the same connection.
  func seeSavesOfOthers() throws {
    for (position, store) in stores.all.enumerated() {
      let log = store.connection.saves
      // Another process may have locked the store. Then the next call must not take these saves for seen.
      var seen = lastSeenSaves[position]
      switch log.news(since: &seen, for: ObjectIdentifier(self)) {
      case .nothing: break
      case .rows(let rows): take(rows, of: store)
      case .anything: take(try rowsInMemory(of: store), of: store)
      }
      lastSeenSaves[position] = seen
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
      let rows = try rowsInMemory(of: store)
      lastSeenCommitsOfOthers[position] = count
      take(rows, of: store)
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
          lose(storage)
          continue
        }
        guard storage.hasRowInMemory else { continue }
        storage.unloadMembers()
        if changed.contains(storage.key), let entity = entity(of: storage) {
          storage.unloadValues(of: entity)
        }
      }
    }
    for former in formerModels.compactMap(\.storage) where !former.hasLostRow {
      guard let root = rootEntity(of: former), root.store === store,
        rows.deleted[root.layout.table]?.contains(former.key) == true
      else { continue }
      lose(former)
    }
    withExtendedLifetime(living) {}
    readFormerModelsAgain()
  }

  /// Takes a model whose row others have deleted out of the registered ones. With unsaved changes it stays in the
  /// context, so that the save reports them.
  private func lose(_ storage: ModelStorage) {
    // Without large fetches it would have its values, so reading one must be an error.
    if storage.state == .fault, storage.isOfLargeFetch { return keepChanges(ofMissing: storage) }
    forget(storage)
    guard hasChangesToSave(storage) else {
      if let model = storage.model { changed.remove(model) }
      return Self.detach(storage)
    }
    // Others may have moved its members before they deleted it.
    storage.unloadMembers()
    storage.hasLostRow = true
    formerModels.append(FormerModel(storage: storage))
  }

  /// Lets the app change a model whose row does not exist, as one whose row others have deleted: each save reports it.
  func keepChanges(ofMissing storage: ModelStorage) {
    forget(storage)
    storage.awaitValues()
    storage.hasLostRow = true
    formerModels.append(FormerModel(storage: storage))
  }

  /// Whether a save would write a change of a model. Some properties are in memory only.
  func hasChangesToSave(_ storage: ModelStorage) -> Bool {
    guard storage.state == .loaded, let entity = entity(of: storage) else {
      return storage.hasChanges
    }
    return entity.slots.indices.contains {
      !entity.slots[$0].isInMemory && storage.changedSlots.contains($0)
    }
  }

  private func rootEntity(of storage: ModelStorage) -> ModelEntity? {
    entity(of: storage).map { stores.entities[root(of: $0)] }
  }

  /// Returns all rows that this context has in memory: as changed if they exist, else as deleted.
  private func rowsInMemory(of store: ModelStore) throws -> SaveLog.Rows {
    var rows = SaveLog.Rows()
    let former = Dictionary(
      grouping: formerModels.compactMap(\.storage).filter { !$0.hasLostRow },
      by: { rootEntity(of: $0)?.position })
    for (root, models) in zip(stores.entities, registered) where root.store === store {
      let table = root.layout.table
      let known = models.keys + (former[root.position] ?? []).map(\.key)
      if known.isEmpty { continue }
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
