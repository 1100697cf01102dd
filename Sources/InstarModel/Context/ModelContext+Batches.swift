public import Foundation
import InstarSchema
import InstarStore

/// Works on more models than fit in memory, and finds models by their identifiers.
extension ModelContext {
  /// Returns the models that match a descriptor, and creates them in batches when they are read.
  ///
  /// - Throws: `includePendingChangesWithBatchSize` if the descriptor includes pending changes and the context has
  ///   some: save first, or set `includePendingChanges` to false. Otherwise the errors of `fetch(_:)`.
  public func fetch<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int
  ) throws -> FetchResultsCollection<T> {
    let (entity, keys) = try failingStage { try self.keys(descriptor) }
    let slots = try failingStage { try self.slots(of: descriptor, entity) }
    return FetchResultsCollection(count: keys.count, batchSize: batchSize) { range in
      do {
        let models: [T] = try self.models(entity, keys[range], slots)
        try self.prefetch(descriptor.relationshipKeyPathsForPrefetching, of: models, entity)
        if models.count == range.count { return models }
      } catch {
        self.note(error)
      }
      // A row may have been deleted meanwhile. Its key keeps its place; reading its model makes the next fetch throw.
      return keys[range].compactMap { self.model(of: entity, key: $0) as? T }
    }
  }

  /// Returns the identifiers of the models that match a descriptor, without creating models for rows.
  ///
  /// - Throws: The errors of `fetch(_:)`.
  public func fetchIdentifiers<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>
  ) throws -> [PersistentIdentifier] {
    try failingStage {
      let entity = try self.entity(for: T.self, to: "fetch")
      let statement = try FetchStatement(descriptor.predicate, entity: entity, stores: stores)
      if descriptor.includePendingChanges, hasPendingChanges(statement.entities) {
        return try fetch(descriptor).map(\.persistentModelID)
      }
      return try identifiers(entity, keys(descriptor).keys[...])
    }
  }

  /// Returns the identifiers of the models that match a descriptor, and reads them in batches.
  ///
  /// - Throws: The errors of `fetch(_:batchSize:)`.
  public func fetchIdentifiers<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int
  ) throws -> FetchResultsCollection<PersistentIdentifier> {
    let (entity, keys) = try failingStage { try self.keys(descriptor) }
    return FetchResultsCollection(count: keys.count, batchSize: batchSize) { range in
      do {
        return try self.identifiers(entity, keys[range])
      } catch {
        self.note(error)
        return keys[range].map { self.identifier(entity, $0) }
      }
    }
  }

  /// Calls `block` with each model that matches a descriptor, with one batch in memory at a time.
  ///
  /// Models that `block` changes stay in memory until they are saved. If `block` saves or changes nothing, memory
  /// does not grow with the number of rows; with `sortBy` it grows by eight bytes for each row. The predicate is
  /// applied when a batch is read.
  ///
  /// - Parameters:
  ///   - batchSize: The number of models in memory at once.
  ///   - allowEscapingMutations: Has no effect; changes always stay pending in the context.
  /// - Throws: Rethrows an error of `block` and stops; the changes made until then stay pending. Otherwise the errors
  ///   of `fetch(_:)`.
  public func enumerate<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int = 5_000, allowEscapingMutations: Bool = false,
    block: (T) throws -> Void
  ) throws {
    // An error of `block` does not fail the stage by itself.
    var isOfBlock = false
    do {
      try visitAll(descriptor, batchSize: batchSize) { model in
        do {
          try block(model)
        } catch {
          isOfBlock = true
          throw error
        }
      }
    } catch {
      if !isOfBlock { stores.stageFailures?.note(error) }
      throw error
    }
  }

  private func visitAll<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int, _ block: (T) throws -> Void
  ) throws {
    try throwDeferredError()
    try seeSavesOfOthers()
    let entity = try self.entity(for: T.self, to: "fetch")
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, stores: stores)
    let isPending = descriptor.includePendingChanges && hasPendingChanges(statement.entities)
    if isPending || statement.order == nil {
      for model in try fetch(descriptor) { try block(model) }
      return
    }
    let size = max(batchSize, 1)
    let isPaged =
      descriptor.sortBy.isEmpty && descriptor.fetchLimit == nil && descriptor.fetchOffset == nil
      && entity.layout.key.isRowID
    let keys = isPaged ? [] : try keys(descriptor).keys
    var start = 0
    var lastKey = Int64.min
    while true {
      let page =
        isPaged
        ? try keysOfPage(statement, after: lastKey, count: size)
        : keys.dropFirst(start).prefix(size)
      guard let last = page.last else { return }
      (start, lastKey) = (start + size, last)
      try visit(page, entity, descriptor, block)
      releaseRelationships()
    }
  }

  private func visit<T: PersistentModel>(
    _ keys: ArraySlice<Int64>, _ entity: ModelEntity, _ descriptor: FetchDescriptor<T>,
    _ block: (T) throws -> Void
  ) throws {
    let models: [T] = try models(entity, keys, slots(of: descriptor, entity))
    try prefetch(descriptor.relationshipKeyPathsForPrefetching, of: models, entity)
    for model in models where !model.isDeleted { try block(model) }
  }

  /// Marks each model that matches `predicate` for deletion, or all models if it is `nil`. The next `save()` deletes
  /// their rows and applies the delete rules.
  ///
  /// - Parameter includeSubclasses: Whether to delete models of subclasses too.
  /// - Throws: The errors of `fetch(_:)`; no model is then marked.
  public func delete<T: PersistentModel>(
    model: T.Type, where predicate: Predicate<T>? = nil, includeSubclasses: Bool = true
  ) throws {
    let entity = try failingStage {
      try self.entity(for: T.self, to: "delete")
    }
    for model in try fetch(FetchDescriptor(predicate: predicate)) {
      let own = self.entity(of: model._modelStorage)
      if includeSubclasses || own === entity { delete(model) }
    }
  }

  /// Returns the model with an identifier: the one in memory, or one that reads its row at the first access.
  ///
  /// If the row does not exist, reading a value makes the next fetch or save throw. If the schema does not have the
  /// entity, the next fetch or save throws, and the returned model has no row.
  public func model(for persistentModelID: PersistentIdentifier) -> any PersistentModel {
    if let model = registered(persistentModelID) { return model }
    if let entity = stores.entity(named: persistentModelID.entityName) {
      return model(of: entity, key: persistentModelID.id.key)
    }
    let name = persistentModelID.entityName
    note(
      InstarError(
        .modelNotInSchema, "cannot fetch \(persistentModelID)",
        cause: "the store is at \(stores.schema.version), whose models do not include \(name)"))
    return UnknownModel()
  }

  /// Returns the model with an identifier if the context has it in memory, else `nil`.
  public func registeredModel<T: PersistentModel>(
    for persistentModelID: PersistentIdentifier
  ) -> T? {
    registered(persistentModelID) as? T
  }

  private func registered(_ identifier: PersistentIdentifier) -> (any PersistentModel)? {
    if !identifier.id.key.isRowKey {
      return inserted.all.first { $0.persistentModelID == identifier }
    }
    guard let entity = stores.entity(named: identifier.entityName) else { return nil }
    return registeredStorage(entity, identifier.id.key)?.model
  }

  // MARK: Keys

  private func identifier(_ entity: ModelEntity, _ key: Int64) -> PersistentIdentifier {
    PersistentIdentifier(
      entityName: entity.layout.name, key: key, storeIdentifier: entity.store.uuid)
  }

  /// Returns the identifiers of existing rows. If entities share a table, only the row has the entity of its model.
  private func identifiers(
    _ entity: ModelEntity, _ keys: ArraySlice<Int64>
  ) throws -> [PersistentIdentifier] {
    let family = stores.family(of: entity)
    guard family.count > 1, let entityColumn = entity.layout.entityColumn else {
      return keys.map { identifier(entity, $0) }
    }
    let entities = Dictionary(
      family.map { (Int64($0.layout.number), $0) }, uniquingKeysWith: { first, _ in first })
    var found: [Int64: ModelEntity] = [:]
    let key = entity.layout.key.reading.sql("t0")
    try entity.store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(key), t0.\(entityColumn) FROM \(entity.layout.table) AS t0 WHERE \(key) IN \(Self.listed)"
      )
      statement.bind([Self.list(keys)])
      defer { statement.reset() }
      while try statement.step() {
        found[statement.integer(at: 0)] = entities[statement.integer(at: 1)]
      }
    }
    return keys.map { identifier(found[$0] ?? entity, $0) }
  }

  /// Returns the keys of the rows that match a descriptor, in its order.
  private func keys<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>
  ) throws -> (entity: ModelEntity, keys: [Int64]) {
    try throwDeferredError()
    try seeSavesOfOthers()
    let entity = try self.entity(for: T.self, to: "fetch")
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, stores: stores)
    if descriptor.includePendingChanges, hasPendingChanges(statement.entities) {
      throw SwiftDataError(
        .includePendingChangesWithBatchSize,
        InstarError(
          .unsupported, "cannot fetch \(entity.descriptor.qualifiedName) in batches",
          cause: "the context has unsaved changes, and the descriptor includes them",
          next: "save first, or set includePendingChanges to false"))
    }
    if statement.order == nil { return (entity, try fetch(descriptor).map(\._modelStorage.key)) }
    let sql = statement.sql(
      selecting: entity.layout.key.reading.sql("t0"), limit: descriptor.fetchLimit,
      offset: descriptor.fetchOffset)
    return (entity, Array(try readKeys(sql, statement.parameters, entity)))
  }

  private func keysOfPage(
    _ statement: FetchStatement, after key: Int64, count: Int
  ) throws -> ArraySlice<Int64> {
    let name = statement.entity.layout.key.reading.sql("t0")
    let sql = statement.sql(
      selecting: name, where: "\(name) > ?\(statement.parameters.count + 1)",
      ordering: " ORDER BY \(name)", limit: count)
    return try readKeys(sql, statement.parameters + [.integer(key)], statement.entity)
  }

  private func readKeys(
    _ sql: String, _ parameters: [Slot], _ entity: ModelEntity
  ) throws -> ArraySlice<Int64> {
    let keys = try integers(sql, parameters, entity)
    // The models are read later, in other statements, and must be as new as their keys.
    _ = try seeCommitsOfOthers()
    return keys[...]
  }

  /// Returns the first column of all rows of a statement.
  func integers(_ sql: String, _ parameters: [Slot], _ entity: ModelEntity) throws -> [Int64] {
    try entity.store.connection.perform { session in
      let statement = try session.statement(sql)
      statement.bind(parameters)
      defer { statement.reset() }
      var values: [Int64] = []
      while try statement.step() { values.append(statement.integer(at: 0)) }
      return values
    }
  }

  /// Returns the models of keys, in their order, without those whose rows were deleted meanwhile.
  private func models<T: PersistentModel>(
    _ entity: ModelEntity, _ keys: ArraySlice<Int64>, _ slots: [Int]?
  ) throws -> [T] {
    let models = try modelsByKey(keys, stores.reader(of: entity, slots: slots), entity)
    return keys.compactMap { models[$0] as? T }
  }

  /// Releases models that only relationships of other models retain. The next access reads them again.
  private func releaseRelationships() {
    // With unsaved changes the two sides of a relationship may differ from the store.
    guard !hasChanges else { return }
    for storage in registeredStorages.joined() where storage.state == .loaded {
      for slot in storage.slots.indices {
        switch storage.slots[slot] {
        case .model(let model) where model._modelStorage.key.isRowKey:
          storage.slots[slot] = .key(model._modelStorage.key)
        case .models: storage.slots[slot] = .unloaded
        default: break
        }
      }
    }
  }
}
