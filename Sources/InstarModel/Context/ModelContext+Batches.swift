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
    let reader = stores.reader(
      of: entity, slots: try failingStage { try self.slots(of: descriptor, entity) })
    return FetchResultsCollection(count: keys.count, batchSize: batchSize) { range in
      do {
        let models: [T] = try self.models(reader, keys[range], entity)
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
        return try fetchAtOnce(descriptor).map(\.persistentModelID)
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
  /// In the closure of a stage, the changed rows of a batch are written before the next one is read, in the transaction
  /// of the next save. So memory does not grow with the number of rows. `rollback()` undoes them too, and a model that
  /// the closure keeps stays the same object. Inserted and deleted models, and models that reference them, stay in
  /// memory until the save.
  ///
  /// In an app, models that `block` changes stay in memory until they are saved. If `block` saves or changes nothing,
  /// memory does not grow with the number of rows. With `sortBy` it grows by eight bytes for each row. The predicate is
  /// applied when a batch is read.
  ///
  /// Rows that `block` inserts and saves are not visited, so the call ends. The one exception: without `sortBy`, a row
  /// of an ordinary table is visited if `block` sets its key itself, to one between those of the current batch and the
  /// highest key when the call began.
  ///
  /// - Parameters:
  ///   - batchSize: The number of models in memory at once.
  ///   - allowEscapingMutations: In the closure of a stage, whether all changes stay pending in the context until they
  ///     are saved. In an app they always do.
  /// - Throws: Rethrows an error of `block` and stops; the changes made until then stay pending. Otherwise the errors
  ///   of `fetch(_:)`.
  public func enumerate<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int = 5_000, allowEscapingMutations: Bool = false,
    block: (T) throws -> Void
  ) throws {
    try failingStageUnlessInBlock {
      try visitAll(
        descriptor, batchSize: max(batchSize, 1), writesBatches: !allowEscapingMutations
      ) { model in
        try callBlock { try block(model) }
      }
    }
  }

  private func visitAll<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, batchSize: Int, writesBatches: Bool,
    _ block: (T) throws -> Void
  ) throws {
    try throwDeferredError()
    try seeSavesOfOthers()
    let entity = try self.entity(for: T.self, to: "fetch")
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, stores: stores)
    // With pending changes all models would have to be in memory.
    if writesBatches { writeBatch() }
    let isPending = descriptor.includePendingChanges && hasPendingChanges(statement.entities)
    // Counted once the work has taken long: most calls are short. Without a count, progress shows no share.
    let piece = meter?.begin("rows of \(entity.layout.name)") { [self] in
      isPending ? nil : try? self.rowCount(descriptor, entity)
    }
    defer { if let piece { meter?.end(piece) } }
    func visit(_ model: T) throws {
      try block(model)
      if let piece { meter?.advance(piece, by: 1) }
    }
    if isPending || statement.order == nil {
      for model in try fetchAtOnce(descriptor) { try visit(model) }
      return
    }
    let batches = try Batches(descriptor, statement, size: batchSize, self)
    var count = 0
    repeat {
      // In an app a canceled task goes on, as in SwiftData.
      if isInStage { try progress.checkCancellation() }
      // In its own scope, so that the batch is released before the next one is read.
      count = try self.visit(batches, descriptor, visit)
      if writesBatches, count == batchSize { writeBatch() }
      releaseRelationships()
    } while count > 0
  }

  /// Calls `block` with the models of the next batch.
  ///
  /// - Returns: The number of its rows.
  private func visit<T: PersistentModel>(
    _ batches: Batches, _ descriptor: FetchDescriptor<T>, _ block: (T) throws -> Void
  ) throws -> Int {
    let (models, count): ([T], Int) = try batches.next(self)
    try prefetch(descriptor.relationshipKeyPathsForPrefetching, of: models, batches.entity)
    for model in models where !model.isDeleted { try block(model) }
    return count
  }

  /// The rows of `enumerate`, in batches: by key, or by the list of all keys in the descriptor's order.
  private final class Batches {
    let entity: ModelEntity
    private let statement: FetchStatement
    private let reader: RowReader
    private let size: Int
    /// `nil` where the next batch has the rows with the next keys.
    private var keys: ArraySlice<Int64>?
    /// The keys of the rows that are left; `nil` if none is. The upper bound is the highest key at the beginning, so
    /// that rows that are inserted meanwhile do not make the work endless.
    private var rest: ClosedRange<Int64>?

    init<T: PersistentModel>(
      _ descriptor: FetchDescriptor<T>, _ statement: FetchStatement, size: Int,
      _ context: ModelContext
    ) throws {
      entity = statement.entity
      self.statement = statement
      self.size = size
      reader = context.stores.reader(of: entity, slots: try context.slots(of: descriptor, entity))
      let isByKey =
        descriptor.sortBy.isEmpty && descriptor.fetchLimit == nil && descriptor.fetchOffset == nil
        && entity.layout.key.isRowID
      keys = isByKey ? nil : try context.keys(descriptor).keys[...]
      rest = isByKey ? try highestKey(context).map { .min...$0 } : nil
    }

    private func highestKey(_ context: ModelContext) throws -> Int64? {
      let key = entity.layout.key.reading.sql("t0")
      return try context.integers(
        "SELECT \(key) FROM \(entity.layout.table) AS t0 ORDER BY \(key) DESC LIMIT 1", [], entity
      ).first
    }

    func next<T: PersistentModel>(_ context: ModelContext) throws -> (models: [T], count: Int) {
      guard let all = keys else {
        guard let keys = rest else { return ([], 0) }
        let models: [T] = try readPage(keys, context)
        let last = models.last?._modelStorage.key ?? keys.upperBound
        rest = last < keys.upperBound ? last + 1...keys.upperBound : nil
        return (models, models.count)
      }
      let batch = all.prefix(size)
      keys = all.dropFirst(size)
      return (try context.models(reader, batch, entity), batch.count)
    }

    private func readPage<T: PersistentModel>(
      _ keys: ClosedRange<Int64>, _ context: ModelContext
    ) throws -> [T] {
      let name = entity.layout.key.reading.sql("t0")
      let first = statement.parameters.count + 1
      let sql = statement.sql(
        selecting: reader.columns(), where: "\(name) BETWEEN ?\(first) AND ?\(first + 1)",
        ordering: " ORDER BY \(name)", limit: size)
      let parameters =
        statement.parameters + [.integer(keys.lowerBound), .integer(keys.upperBound)]
      let models: [T] = try context.models(sql, reader, parameters)
      return try context.seeCommitsOfOthers()
        ? context.models(sql, reader, parameters) : models
    }
  }

  /// Marks each model that matches `predicate` for deletion, or all models if it is `nil`. The next `save()` deletes
  /// their rows and applies the delete rules.
  ///
  /// A row whose stored value the property's type cannot decode never matches a condition on that property.
  ///
  /// - Parameter includeSubclasses: Whether to delete models of subclasses too.
  /// - Throws: The errors of `fetch(_:)`; no model is then marked.
  public func delete<T: PersistentModel>(
    model: T.Type, where predicate: Predicate<T>? = nil, includeSubclasses: Bool = true
  ) throws {
    let entity = try failingStage {
      try self.entity(for: T.self, to: "delete")
    }
    for model in try fetchToDelete(predicate) {
      let own = self.entity(of: model._modelStorage)
      if includeSubclasses || own === entity { delete(model) }
    }
  }

  /// Returns the model with an identifier: the one in memory, or one that reads its row at the first access.
  ///
  /// If the row does not exist, reading a value makes the next fetch or save throw.
  ///
  /// A temporary identifier, from before the first save, finds its model as long as that lives in this context. If no
  /// such model is known, if the identifier is of another store, or if the schema does not have the entity, the next
  /// fetch or save throws, and the returned model has no row and is of none of the schema's classes.
  ///
  /// In the closure of a stage, the model is an object of the class that the stage's version lists, or of another
  /// version's class that the closure fetched before. A cast to any other class (`as? OtherVersion.Note`) is `nil`.
  /// Instar cannot detect such a cast and reports no error. `registeredModel(for:)` and a fetch report such a class.
  public func model(for persistentModelID: PersistentIdentifier) -> any PersistentModel {
    if let model = registered(persistentModelID) { return model }
    if persistentModelID.id.isTemporary {
      note(Self.unknown(persistentModelID))
      return UnknownModel()
    }
    if let entity = stores.entity(named: persistentModelID.entityName) {
      // Otherwise `registered` has noted the error.
      return stores.mayHave(persistentModelID, in: entity.store)
        ? model(of: entity, key: persistentModelID.id.key) : UnknownModel()
    }
    let name = persistentModelID.entityName
    note(
      InstarError(
        .modelNotInSchema, "cannot fetch \(persistentModelID)",
        cause: "the store is at \(stores.schema.version), whose models do not include \(name)"))
    return UnknownModel()
  }

  /// Returns the model with an identifier if the context has it in memory as an object of the type, else `nil`.
  ///
  /// If the identifier is of another store, or the schema does not have the type, such as a class of another version in
  /// the closure of a stage, the next fetch or save throws.
  public func registeredModel<T: PersistentModel>(
    for persistentModelID: PersistentIdentifier
  ) -> T? {
    guard let model = registered(persistentModelID) else { return nil }
    if let model = model as? T { return model }
    do {
      _ = try entity(for: T.self, to: "fetch")
    } catch {
      note(error)
    }
    return nil
  }

  private func registered(_ identifier: PersistentIdentifier) -> (any PersistentModel)? {
    if identifier.id.isTemporary { return model(withTemporary: identifier) }
    guard let entity = stores.entity(named: identifier.entityName) else { return nil }
    guard stores.mayHave(identifier, in: entity.store) else {
      note(Self.ofAnotherStore(identifier, entity.store))
      return nil
    }
    return registeredStorage(entity, identifier.id.key)?.model
  }

  /// Returns the model that has, or had before it was saved, a temporary identifier. It searches all models in memory,
  /// because hardly any code keeps such an identifier, and an index would cost every insertion.
  private func model(withTemporary identifier: PersistentIdentifier) -> (any PersistentModel)? {
    func isThat(_ storage: ModelStorage) -> Bool {
      storage.temporaryKey == identifier.id.key && storage.descriptor.name == identifier.entityName
    }
    return inserted.all.first { isThat($0._modelStorage) }
      ?? registeredStorages.joined().first(where: isThat)?.model
  }

  private static func unknown(_ identifier: PersistentIdentifier) -> InstarError {
    InstarError(
      .invalidModel, "cannot fetch \(identifier)",
      cause:
        "the identifier is from before the first save, and no model in the context's memory has it",
      next: "save the model first, and read its persistentModelID then")
  }

  private static func ofAnotherStore(
    _ identifier: PersistentIdentifier, _ store: ModelStore
  ) -> InstarError {
    InstarError(
      .invalidModel, "cannot fetch \(identifier)",
      cause: "the identifier is of another store than \(store.place)",
      next: "use a context of the container that the identifier is from")
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
    let entities = family.keyed { Int64($0.layout.number) }
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
  fileprivate func keys<T: PersistentModel>(
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
    if statement.order == nil {
      return (entity, try fetchAtOnce(descriptor).map(\._modelStorage.key))
    }
    let sql = statement.sql(
      selecting: entity.layout.key.reading.sql("t0"), limit: descriptor.fetchLimit,
      offset: descriptor.fetchOffset)
    return (entity, Array(try readKeys(sql, statement.parameters, entity)))
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
  fileprivate func models<T: PersistentModel>(
    _ reader: RowReader, _ keys: ArraySlice<Int64>, _ entity: ModelEntity
  ) throws -> [T] {
    let models = try modelsByKey(keys, reader, entity)
    return keys.compactMap { models[$0].flatMap { Self.cast($0) } }
  }

  /// Releases models that only relationships of other models retain. The next access reads them again.
  func releaseRelationships() {
    // With unsaved changes the two sides of a relationship may differ from the store.
    guard !hasUnwrittenChanges, hasRelatedModels else { return }
    hasRelatedModels = false
    let living = registeredModels
    for model in living.joined() where model._modelStorage.state == .loaded {
      let storage = model._modelStorage
      for slot in storage.slots.indices {
        switch storage.slots[slot] {
        case .model(let model) where model._modelStorage.hasRow:
          storage.slots[slot] = .key(model._modelStorage.key)
        case .models: storage.slots[slot] = .unloaded
        default: break
        }
      }
    }
    withExtendedLifetime(living) {}
  }
}
